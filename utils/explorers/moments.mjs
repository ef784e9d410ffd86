// The landing page, "The needle in ten minutes": six moments, each one figure and one handle, drawn
// by the panels of the explorers and computed by their modules.
import { predict } from "./alignment.mjs";
import { compute as errors, prepare as errorTables } from "./detection.mjs";
import { linspace, ndtr, range } from "./maths.mjs";
import { compute as sample } from "./needle.mjs";
import { Panel } from "./panel.mjs";
import { percent, show } from "./maths.mjs";

const FIVE = 3.2897; // θ/√L at which averaging errs on 5 % of balanced bags: 2Φ⁻¹(0.95)
const density = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
// The chance that a needle is the tallest of L tokens.
const tallest = (theta, L) =>
  linspace(theta - 8, theta + 8, 801).reduce((sum, x) => sum + density(x - theta) * ndtr(x) ** (L - 1) * 0.02, 0);
const strong = (text, color = "ink") => `<b class="c-${color}">${text}</b>`;
const few = () => innerWidth < 600;
const file = (name) => fetch(new URL(`${name}.json`, import.meta.url)).then((answer) => answer.json()).then(({ data }) => data);

// The parts that all moments have: a panel that follows its width, a handle, a sentence.
const stage = (place, { title, height = 290, small = 225, margin = { top: 24 }, label, stops, start, text = show }) => {
  const box = place.querySelector(".stage"), told = place.querySelector(".told");
  const panel = new Panel(box, { title, height: few() ? small : height, margin });
  const name = document.createElement("label"), words = document.createElement("span");
  const output = document.createElement("output"), input = document.createElement("input");
  words.innerHTML = label;
  Object.assign(input, { type: "range", min: 0, max: stops.length - 1, step: 1, value: stops.indexOf(start) });
  name.append(words, output, input);
  place.querySelector(".handle").append(name);
  const moment = {
    panel, value: start, draw: () => {}, changed: () => {},
    say(sentence) { if (told.innerHTML !== sentence) told.innerHTML = sentence; },
    button(action) {
      const made = place.querySelector("button");
      made.addEventListener("click", () => { action(); moment.draw(); });
      return made;
    },
  };
  const show_value = () => {
    output.textContent = text(moment.value);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    moment.value = stops[+input.value];
    show_value();
    moment.changed();
    moment.draw();
  });
  show_value();
  let width = 0;
  new ResizeObserver(() => {
    if (!box.clientWidth || Math.abs(box.clientWidth - width) <= 1) return;
    width = box.clientWidth;
    panel.room = panel.box.clientWidth;
    moment.draw();
  }).observe(box);
  return moment;
};

const TOKENS = { label: "token", domain: [0, 51], ticks: [10, 20, 30, 40, 50] };

const find = (place) => { // 1: which of fifty tokens is it?
  const L = 50, state = { draw: 3, chosen: null, found: 0, tried: 0 };
  const moment = stage(place, {
    title: "fifty tokens, seen along the direction of the needle",
    label: "strength <i>θ</i> of the needle", stops: range(13).map((k) => k / 2), start: 2,
  });
  const { panel } = moment;
  const bag = () => sample({ theta: moment.value, L, R: 1, cos: 1, T: 0, draw: state.draw });
  const choose = (x) => {
    if (state.chosen !== null) return;
    state.chosen = Math.min(L, Math.max(1, Math.round(x)));
    state.tried += 1;
    state.found += bag().needles[0] === state.chosen - 1;
    next.hidden = false;
    moment.draw();
  };
  const next = moment.button(() => { state.draw += 1; state.chosen = null; next.hidden = true; });
  moment.changed = () => { Object.assign(state, { draw: state.draw + 1, chosen: null, found: 0, tried: 0 }); next.hidden = true; };
  panel.hit.addEventListener("click", (event) => choose(panel.inverse(event.clientX - panel.svg.getBoundingClientRect().left)));
  panel.hit.addEventListener("keydown", ({ key }) => { if (key === "Enter" && panel.cursor !== null) choose(51 * panel.cursor); });
  moment.draw = () => {
    const { height, needles: [n] } = bag(), places = range(L), open = state.chosen !== null;
    const rest = places.filter((l) => !open || l !== n), top = Math.max(7, ...height) * 1.03;
    panel.begin({ x: TOKENS, y: { label: "projection", domain: [-3.6, top] } });
    panel.stems("", rest.map((l) => l + 1), rest.map((l) => height[l]), "noise", { width: 2.2, legend: false, head: 3.2 });
    if (open) {
      panel.stems("", [n + 1], [height[n]], "attention", { width: 3, head: 5, legend: false });
      panel.text(n + 1, height[n], "the needle", { color: "attention", dy: -11 });
      const mine = height[state.chosen - 1];
      if (state.chosen !== n + 1) panel.text(state.chosen, mine, "yours", { dy: mine > 0 ? -10 : 18 });
    }
    panel.reader = (x) => {
      const l = Math.min(L, Math.max(1, Math.round(x)));
      return [l, [`token ${l}: ${show(height[l - 1])}`]];
    };
    panel.end();
    const score = `${state.found} of ${state.tried}`;
    if (!open) return moment.say(state.tried ? `Found: ${score}. Click again.` : "Click a token.");
    const verdict = state.chosen === n + 1 ? "Found it" : "That was a straw";
    moment.say(`${verdict}: ${score}. The tallest is the best guess; at this strength it is right in ${strong(percent(tallest(moment.value, L)))} of all bags.`);
  };
  return moment;
};

const average = (place) => { // 2: what is left of a needle in a mean
  const theta = 5, xs = linspace(-4, 7, 221);
  const moment = stage(place, {
    title: "the average of a bag, with a needle and without", small: 210, label: "tokens <i>L</i>",
    stops: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000], start: 10,
  });
  const { panel } = moment;
  moment.draw = () => {
    const gap = theta / Math.sqrt(moment.value);
    panel.begin({ x: { label: "average of the bag, in units of its noise", domain: [-4, 7] }, y: { label: "", domain: [0, 0.47], ticks: [] } });
    for (const [shift, color] of [[0, "noise"], [gap, "pooled"]]) {
      const ys = xs.map((x) => density(x - shift));
      panel.area([[-4, 0], ...xs.map((x, i) => [x, ys[i]]), [7, 0]], color, { opacity: 0.28 });
      panel.line("", xs, ys, color, { legend: false, read: false });
    }
    panel.text(-1.1, 0.41, "without", { color: "noise", anchor: "end", dx: -4 });
    panel.text(gap + 0.5, 0.41, "with a needle", { color: "pooled", anchor: "start", dx: 4 });
    panel.end();
    moment.say(`Averaging ${show(moment.value)} token${moment.value > 1 ? "s" : ""} errs on ${strong(percent(ndtr(-gap / 2)), "pooled")} of bags. For 5 % it would need a needle of ${strong(show(FIVE * Math.sqrt(moment.value)), "pooled")}.`);
  };
  return moment;
};

const compete = (place) => { // 3: where a softmax puts its weight
  const L = 50, state = { draw: 22 };
  const moment = stage(place, {
    title: "softmax weights on fifty tokens", label: "sharpness <i>τ</i> of the softmax",
    stops: range(25).map((k) => k / 4), start: 1.5,
  });
  const { panel } = moment;
  moment.button(() => { state.draw += 1; });
  moment.draw = () => {
    const { height, weight, needles: [n], share, attended, pooled } = sample({ theta: 3, L, R: 1, cos: 1, T: moment.value, draw: state.draw });
    const straws = range(L).filter((l) => l !== n);
    panel.begin({ x: TOKENS, y: { label: "projection; disk: weight", domain: [-3.6, 8] } });
    panel.stems("", straws.map((l) => l + 1), straws.map((l) => height[l]), "noise", { width: 1.4, legend: false });
    panel.stems("", [n + 1], [height[n]], "attention", { width: 2.4, legend: false });
    height.forEach((h, l) => panel.dot(l + 1, h, l === n ? "attention" : "noise", { r: Math.max(1, 19 * Math.sqrt(weight[l])) }));
    panel.end();
    moment.say(`The needle gets ${strong(percent(share), "attention")} of the weight. Signal to noise: ${strong(show(attended, 2), "attention")}, averaging ${strong(show(pooled, 2), "pooled")}.`);
  };
  return moment;
};

const grow = async (place) => { // 4: a haystack up to a trillion
  const tables = errorTables(await file("detection")), strengths = range(13);
  const moment = stage(place, {
    title: "test error against the strength of the needle", height: 310, small: 235, label: "tokens <i>L</i>",
    stops: range(12).map((k) => 10 ** (k + 1)), start: 10000,
  });
  const { panel } = moment;
  const crossing = (ys) => { // of 5 %, on a straight line in log error
    const k = ys.findIndex((y) => y < 0.05), [a, b] = [ys[k - 1], ys[k]].map((y) => Math.log(Math.max(y, 1e-9)));
    return k < 1 ? null : strengths[k - 1] + (a - Math.log(0.05)) / (a - b);
  };
  moment.draw = () => {
    const L = moment.value, found = errors({ L, theta: 6, tau: Math.sqrt(2 * Math.log(L)) }, tables);
    const scale = { domain: [0, 0.52], ticks: [0, 0.1, 0.2, 0.3, 0.4, 0.5], format: (t) => percent(t) };
    panel.begin({ x: { label: "strength θ of the needle", short: "θ", domain: [0, 12] }, y: { label: "test error", ...scale } });
    panel.line("averaging", strengths, found.pooled, "pooled", { legend: false, width: 2.6 });
    panel.line("attention", strengths, found.attention, "attention", { legend: false, width: 2.6 });
    panel.line("best possible", strengths, found.bayes, "bayes", { legend: false, width: 1.6 });
    panel.line("", [0, 12], [0.05, 0.05], "muted", { legend: false, read: false, width: 1, dash: true });
    panel.text(12, found.pooled[12], "averaging", { color: "pooled", anchor: "end", dy: found.pooled[12] > 0.42 ? 16 : -8 });
    const needed = crossing(found.attention), best = crossing(found.bayes);
    panel.text(needed ?? 8, 0.14, "attention", { color: "attention", anchor: "start", dx: 2 });
    panel.text(Math.max(1.6, (best ?? 7) - 1.1), 0.09, "best possible", { anchor: "end", dx: -2 });
    panel.end();
    moment.say(`For 5 % errors averaging needs a needle of ${strong(show(FIVE * Math.sqrt(L), 2), "pooled")}, attention one of ${strong(show(needed, 2), "attention")}, the best rule there is ${strong(show(best, 2))}.`);
  };
  return moment;
};

const learn = (place) => { // 5: the query after two gradient steps, as a sum
  const task = { L: 10, R: 1, theta: 3, pi: 0.2, lr_w: 0.5 };
  const moment = stage(place, {
    title: "the query after two gradient steps", margin: { top: 8, bottom: 8, left: 8, right: 8 }, small: 235,
    label: "rate of the bias <i>η</i><sub>b</sub>", stops: range(25).map((k) => k / 4), start: 0.5,
  });
  const { panel } = moment;
  moment.draw = () => {
    const { norm, signal, echo, noise, readout_cos: c, query_cos } = predict({ ...task, lr_b: moment.value }, 5);
    const turn = [signal / norm, 0], tip = [(signal + echo * c) / norm, (echo * Math.sqrt(1 - c * c)) / norm];
    const r = noise / norm, reach = 1.1, wide = reach * panel.shape;
    panel.begin({ x: { label: "", domain: [-wide, wide], ticks: [] }, y: { label: "", domain: [-reach, reach], ticks: [] } });
    panel.line("", [-wide, wide], [0, 0], "muted", { width: 0.7, legend: false, read: false });
    panel.text(-wide, 0, "the needle’s direction →", { color: "muted", anchor: "start", dy: -7 });
    panel.area(range(65).map((k) => [tip[0] + r * Math.cos((k * Math.PI) / 32), tip[1] + r * Math.sin((k * Math.PI) / 32)]), "noise", { opacity: 0.2 });
    panel.arrow([0, 0], turn, "attention", "signal");
    panel.arrow(turn, tip, "pooled", "");
    if (Math.abs(echo / norm) > 0.2) panel.text((turn[0] + tip[0]) / 2, tip[1] / 2, "echo", { color: "pooled", anchor: "start", dx: 8, dy: 4 });
    panel.arrow([0, 0], tip, "ink", "query");
    panel.legend = [];
    panel.end();
    const verdict = query_cos < 0 ? "it has learned to look <em>away</em>" : query_cos < 0.5 ? "it begins to turn" : "it looks at the needle";
    moment.say(`The query's cosine with the needle is ${strong(show(query_cos, 2), "attention")}: ${verdict}.`);
  };
  return moment;
};

const cost = async (place) => { // 6: what labels buy
  const found = await fetch(new URL("../landing.json", import.meta.url)).then((answer) => answer.json());
  const alphas = found.alpha;
  const moment = stage(place, {
    title: "test error against labeled bags per dimension", height: 310, small: 240,
    label: "labeled bags per dimension <i>α</i>", stops: alphas, start: alphas.find((a) => a >= 1), text: (a) => show(a, 2),
  });
  const { panel } = moment;
  const learners = [["pooled", "averaging", 14, "start", -8], ["attention", "attention", 12, "start", -8], ["message", "message passing", 3, "start", 14]];
  moment.draw = () => {
    const k = alphas.indexOf(moment.value);
    const scale = { domain: [0.014, 0.55], log: true, ticks: [0.02, 0.05, 0.1, 0.2, 0.5], format: (t) => percent(t), precise: (t) => percent(t) };
    panel.begin({ x: { label: "labeled bags per dimension α", short: "α", domain: [alphas[0], alphas.at(-1)], log: true }, y: { label: "test error", ...scale } });
    panel.mark(moment.value, "");
    for (const [color, name, at, anchor, dy] of learners) {
      panel.line(name, alphas, found[color], color, { legend: false, width: 2.4 });
      panel.dot(moment.value, found[color][k], color, { r: 5 });
      panel.text(alphas[at], found[color][at], name, { color, anchor, dx: 6, dy });
    }
    panel.end();
    const told = (color) => strong(percent(found[color][k]), color);
    moment.say(`At ${strong(show(moment.value, 2))}: averaging errs on ${told("pooled")}, attention after two steps on ${told("attention")}, message passing, the best algorithm known, on ${told("message")}.`);
  };
  return moment;
};

const MOMENTS = { find, average, compete, grow, learn, cost };

export const start = (places) => Promise.all([...places].map(async (place) => {
  try {
    const moment = await MOMENTS[place.dataset.explorer.replace("moment-", "")](place);
    moment.draw();
  } catch (error) {
    console.error(error);
    place.querySelector(".told").textContent = "This figure could not be started.";
  }
  place.dataset.ready = "true";
}));
