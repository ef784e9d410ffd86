// Chapter 8: descent on the same bags in time, from tables at the sliders' stops.
import { explorer } from "./frame.mjs";
import { range } from "./maths.mjs";
import { table } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const TIMES = [...range(37).map((k) => 2 + k / 2), 24, 30, 40, 60, 100, 150];
const ALPHAS = [0.5, 1, 2, 4, 8];
const NAMES = ["test", "train", "cosine", "length"];

export const prepare = (data) => Object.fromEntries(NAMES.map((name) => {
  const read = table(data[name]), [alphas, decays] = data[name].shape;
  return [name, range(alphas).map((i) => range(decays).map((j) => read(i, j)))];
}));

export const compute = ({ alpha, decay, time }, data) => {
  const [i, j, now] = [ALPHAS.indexOf(alpha), Math.round(10 * decay), TIMES.indexOf(time)];
  const rows = Object.fromEntries(NAMES.map((name) => [name, data[name][i][j]])), least = Math.min(...rows.test);
  return {
    ...rows, here: Object.fromEntries(NAMES.map((name) => [name, rows[name][now]])), least, when: TIMES[rows.test.indexOf(least)],
    how: "Computed beforehand: the limit d → ∞. But for small training errors right to 1 %.",
  };
};

const shown = (values, { time }, frame) => Math.min(frame === null ? TIMES.indexOf(time) : frame - 1, TIMES.length - 1);
const tips = ({ cosine, length }) => cosine.map((c, k) => [c * length[k], Math.sqrt(1 - c * c) * length[k]]);

export const render = explorer({
  panels: [{ title: "errors against time", height: 270 }, { title: "the query as training goes on", height: 270 }],
  draw: ([errors, plane], values, p, { frame }) => {
    const now = shown(values, p, frame), end = now + 1;
    errors.begin({ x: { label: "time, steps × rate", short: "time", domain: [2, 150], log: true, ticks: [2, 5, 10, 20, 50, 100] }, y: { label: "error", domain: [0.01, 0.5], log: true, ticks: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5], format: percent, precise: percent } });
    errors.line("new bags", TIMES, values.test, "attention");
    errors.line("bags trained on", TIMES, values.train, "noise", { dash: true });
    errors.mark(values.when, "best", "bayes");
    errors.dot(TIMES[now], values.test[now], "attention", { r: 6, name: "here" });
    errors.end();
    // the plane of ξ and the rest of q, angles true: a short query averages, a long one off ξ errs
    const path = tips(values), reach = 1.15 * Math.max(0.6, ...path.flat().map(Math.abs));
    plane.begin({ x: { label: "part of the query along ξ", domain: [0, reach * plane.shape] }, y: { label: "across ξ", domain: [0, reach] } });
    plane.line("the way", path.map(([x]) => x), path.map(([, y]) => y), "muted", { width: 1, dash: true, read: false });
    plane.line("so far", [0, ...path.slice(0, end).map(([x]) => x)], [0, ...path.slice(0, end).map(([, y]) => y)], "attention", { read: false });
    plane.dot(...path[TIMES.indexOf(values.when)], "bayes", { r: 5.5, name: "best" });
    plane.arrow([0, 0], path[now], "ink", "query");
    plane.legend = [];
    plane.reader = (x) => {
      const k = path.reduce((near, [at], i) => (Math.abs(at - x) < Math.abs(path[near][0] - x) ? i : near), 0);
      return [path[k][0], [`time ${show(TIMES[k])}`, `cosine: ${show(values.cosine[k])}`, `length: ${show(values.length[k])}`]];
    };
    plane.end();
  },
  play: { label: "Play the training", frames: () => TIMES.length, pause: 160 },
  numbers: (values) => [["new bags", percent(values.here.test), "attention"], ["bags trained on", percent(values.here.train), "noise"], ["query", `cosine ${show(values.here.cosine)}, length ${show(values.here.length)}`, "ink"], [`best, at time ${show(values.when)}`, percent(values.least), "bayes"]],
  sentence: ({ here, least, when }, { alpha, decay, time }) => {
    const late = time > when && here.test > 1.1 * least, early = time < when && here.test > 1.1 * least;
    const why = here.cosine < 0.9 ? `its query has turned away, cosine ${show(here.cosine, 2)}` : `its query still points at the needle, cosine ${show(here.cosine, 2)}, but is ${show(here.length, 2)} long, too short to pick it out`;
    const story = late ? `It was better at time ${show(when)}, with ${percent(least)}: ${why}` : early ? `It is not done: at time ${show(when)} it will err on ${percent(least)}` : `That is about as good as it gets`;
    return `With ${show(alpha)} bags per dimension and ${decay ? `a decay of ${show(decay)},` : "no decay,"} descent errs at time ${show(time)} on ${percent(here.test)} of new bags and ${percent(here.train)} of those it trains on. ${story}.`;
  },
});
