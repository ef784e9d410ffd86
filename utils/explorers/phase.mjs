// Chapter 9: one round of message passing as a map, its fixed points, and the phase diagram.
import { explorer } from "./frame.mjs";
import { linspace, range } from "./maths.mjs";
import { tables } from "./tables.mjs";
import { orNull, show } from "./maths.mjs";

const SIZES = [10, 30, 100, 300, 1000, 3000, 1e4, 1e5, 1e6], STRENGTHS = linspace(2, 12, 21);
const GRID = linspace(0, 1, 101), ROUNDS = 60, STEP = 0.02;

export const prepare = (data) => {
  const { weight, information, algorithm } = tables(data);
  return {
    weight: SIZES.map((_, k) => weight(k)), information: SIZES.map((_, k) => information(k)),
    algorithm: SIZES.map((_, k) => algorithm(k)),
  };
};

// log W at a height r of the field, by a cubic through four neighbours.
const read = (rows, r) => {
  const at = r / STEP, k = Math.min(Math.max(Math.floor(at) - 1, 0), rows.length - 4), t = at - k - 1;
  const [a, b, c, d] = rows.slice(k, k + 4);
  return (-t * (t - 1) * (t - 2) * a) / 6 + ((t + 1) * (t - 1) * (t - 2) * b) / 2
    - ((t + 1) * t * (t - 2) * c) / 2 + ((t + 1) * t * (t - 1) * d) / 6;
};

const expit = (t) => 1 / (1 + Math.exp(-t));

export const compute = ({ L, theta, pi, alpha }, data) => {
  const size = SIZES.indexOf(L), rows = data.weight[size];
  const weight = (m) => Math.exp(Math.min(0, read(rows, theta * Math.sqrt(m))));
  const gain = alpha * pi * theta * theta, round = (w) => (gain * w) / (1 + gain * w);
  const gap = (t) => t - Math.log(gain) - Math.min(0, read(rows, theta * Math.sqrt(expit(t))));
  const low = Math.log(gain / L) - 1e-3, places = linspace(low, Math.log(gain) + 1e-9, 500), heights = places.map(gap);
  const fixed = [];
  for (let k = 0; k + 1 < places.length; k += 1) {
    if (heights[k] * heights[k + 1] >= 0) continue;
    let [a, b] = [places[k], places[k + 1]];
    for (let i = 0; i < 40; i += 1) {
      const middle = (a + b) / 2;
      if (gap(middle) * heights[k] > 0) a = middle; else b = middle;
    }
    fixed.push(expit((a + b) / 2));
  }
  const path = [round(1 / L)];
  while (path.length < ROUNDS) path.push(round(weight(path.at(-1))));
  return {
    map: GRID.map((m) => round(weight(m))), fixed, path,
    information: data.information[size].map((x) => orNull(Math.exp(x) / pi)),
    algorithm: data.algorithm[size].map((x) => orNull(Math.exp(x) / pi)),
    how: "Interpolated between 600 heights of the field, right to 0.0001.",
  };
};

const place = ({ information, algorithm }, { theta, alpha }) => {
  const k = STRENGTHS.findIndex((x) => Math.abs(x - theta) < 1e-9), [i, a] = [information[k], algorithm[k]];
  if (i === null) return ["gradual", "there is no threshold here: more bags teach more, gradually"];
  if (alpha < i) return ["impossible", `below ${show(i)} bags per dimension even the posterior hardly knows the needle`];
  if (alpha < a) return ["hard", `the needle is in the data since ${show(i)}, but message passing finds it only from ${show(a)} bags per dimension on`];
  return ["easy", `from ${show(a)} bags per dimension on message passing finds the needle`];
};

export const render = explorer({
  panels: [{ title: "one round of message passing", height: 315, margin: { top: 54 } }, { title: "impossible, hard, easy", height: 315, margin: { top: 54 }, drag: ["theta", "alpha"] }],
  draw: ([round, plane], values, { theta, alpha }, { frame }) => {
    round.begin({ x: { label: "squared cosine m before a round", short: "m", domain: [0, 1] }, y: { label: "squared cosine after it", domain: [0, 1] } });
    round.line("no change", [0, 1], [0, 1], "muted", { dash: true, width: 1, read: false });
    round.line("one round", GRID, values.map, "message");
    const shown = values.path.slice(0, frame ?? ROUNDS), xs = [0], ys = [shown[0] ?? 0];
    shown.forEach((m, k) => { xs.push(m, m); ys.push(m, shown[k + 1] ?? m); });
    round.line("rounds from nothing", xs, ys, "message", { width: 1.3, dash: true, read: false });
    values.fixed.forEach((m, k) => round.dot(m, m, k % 2 ? "noise" : "bayes", { r: 5.5, name: k % 2 ? "unstable" : "stable" }));
    round.end();
    plane.begin({ x: { label: "strength θ", short: "θ", domain: [2, 12] }, y: { label: "bags per dimension α", domain: [0.01, 1000], log: true } });
    const known = range(STRENGTHS.length).filter((k) => values.information[k] !== null);
    const info = known.map((k) => [STRENGTHS[k], values.information[k]]), algo = known.map((k) => [STRENGTHS[k], values.algorithm[k]]);
    if (known.length > 1) {
      plane.area([...info, ...algo.slice().reverse()], "message", { opacity: 0.2, name: "hard" });
      plane.area([...info, [info.at(-1)[0], 0.01], [info[0][0], 0.01]], "noise", { opacity: 0.25, name: "impossible" });
    }
    plane.line("easy from here", STRENGTHS, values.algorithm, "message");
    plane.line("possible from here", STRENGTHS, values.information, "bayes", { dash: true });
    plane.dot(theta, alpha, "ink", { r: 6, name: "here" });
    plane.end();
  },
  play: { label: "Play the rounds", frames: () => ROUNDS, pause: 200 },
  numbers: (values, p) => [["here", place(values, p)[0], "ink"], ["cosine reached", show(Math.sqrt(values.path.at(-1))), "message"], ["fixed points, cosine", values.fixed.map((m) => show(Math.sqrt(m), 2)).join(", "), "ink"]],
  sentence: (values, p) => `${place(values, p)[0] === "gradual" ? "Gradual" : `${place(values, p)[0][0].toUpperCase()}${place(values, p)[0].slice(1)}`}: ${place(values, p)[1]}. After ${ROUNDS} rounds from nothing the cosine is ${show(Math.sqrt(values.path.at(-1)))}.`,
});
