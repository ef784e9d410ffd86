// Chapter 5: learning curves of the three trained classifiers, from tables at the sliders' stops.
import { explorer } from "./frame.mjs";
import { geomspace, smooth } from "./maths.mjs";
import { index, tables } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const MANY = [0.25, 0.5, 0.7, 1, 1.4, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 64];
const BUDGETS = { pooled: MANY, vectorized: MANY, attention: [0.25, 0.5, 0.7, 1, 1.4, 2, 4, 8, 16, 64] };
const STOPS = { theta: [3, 5, 7], cos: [0.5, 0.8, 0.95], T: [1, 2, 4], lam: [0.001, 0.03, 1], pi: [0.2, 0.5], loss: [0, 1] };
const KINDS = [["pooled", "pooled"], ["vectorized", "vectorized"], ["attention", "attention"]];

export const prepare = tables;

export const compute = (p, data) => {
  const place = Object.fromEntries(Object.entries(STOPS).map(([key, stops]) => [key, Math.round(index(stops, p[key]))]));
  const few = [place.theta, place.lam, place.pi, place.loss];
  const all = [place.theta, place.cos, place.T, place.lam, place.pi, place.loss];
  const found = { how: "Computed beforehand at these settings, right to 3 % of an error; smooth curves in between, errors right to 0.02, losses to 0.05." };
  for (const [kind] of KINDS) {
    const at = kind === "attention" ? all : few;
    found[kind] = { error: data[`${kind}_error`](...at).map(Math.exp), loss: data[`${kind}_loss`](...at).map(Math.exp) };
  }
  return found;
};

const ALPHAS = [...new Set([...geomspace(0.25, 64, 33).map((a) => +a.toPrecision(10)), ...MANY])].sort((a, b) => a - b);
const inLogs = (kind, ys, alphas = ALPHAS) => smooth(BUDGETS[kind].map(Math.log), ys.slice(0, -1).map((y) => Math.log(Math.max(y, 1e-9))), alphas.map(Math.log)).map(Math.exp);

// Errors and losses at any number of samples, as they are drawn.
export const read = (values, alpha) => Object.fromEntries(KINDS.flatMap(([kind]) => ["error", "loss"].map((what) => [`${kind}/${what}`, inLogs(kind, values[kind][what], [alpha])[0]])));

// Where attention's error falls below pooling's, or rises above it.
const crossing = (a, b) => {
  const gap = ALPHAS.map((_, i) => Math.log(a[i] / b[i]));
  const k = gap.findIndex((g, i) => i > 0 && g * gap[i - 1] < 0);
  return k < 0 ? null : ALPHAS[k - 1] * (ALPHAS[k] / ALPHAS[k - 1]) ** (gap[k - 1] / (gap[k - 1] - gap[k]));
};

// The curves between the budgets and where two of them cross, once for each set of values.
let kept = {};
const smoothed = (values) => {
  if (kept.values !== values) {
    const [errors, losses] = ["error", "loss"].map((what) => Object.fromEntries(KINDS.map(([kind]) => [kind, inLogs(kind, values[kind][what])])));
    kept = { values, errors, losses, cross: crossing(errors.attention, errors.pooled) };
  }
  return kept;
};

export const render = explorer({
  panels: [{ title: "test error against samples", height: 280 }, { title: "training loss against samples", height: 280 }],
  draw: ([errors, losses], values) => {
    const drawn = smoothed(values), { cross } = drawn;
    const x = { label: "readout samples per dimension α", short: "α", domain: [0.25, 64], log: true };
    const floor = 0.7 * Math.min(...KINDS.map(([kind]) => Math.min(...values[kind].error)));
    errors.begin({ x, y: { label: "test error", domain: [Math.max(1e-4, floor), 0.6], log: true, precise: (v) => percent(v, 3) } });
    for (const [kind, color] of KINDS) {
      errors.line(kind, ALPHAS, drawn.errors[kind], color);
      errors.line(`${kind}, all the data in the world`, [0.25, 64], [values[kind].error.at(-1), values[kind].error.at(-1)], color, { dash: true, width: 1, legend: false, read: false });
    }
    if (cross) errors.mark(cross, "attention crosses pooling", "ink", { top: 190 });
    errors.end();
    const most = Math.max(...KINDS.map(([kind]) => Math.max(...values[kind].loss.slice(0, -1))));
    losses.begin({ x, y: { label: "training loss", domain: [0, most * 1.05] } });
    for (const [kind, color] of KINDS) losses.line(kind, ALPHAS, drawn.losses[kind], color);
    losses.end();
  },
  numbers: (values) => KINDS.map(([kind, color]) => [`${kind}, α → ∞`, percent(values[kind].error.at(-1), 3), color]),
  sentence: (values) => {
    const { cross } = smoothed(values), last = values.attention.error.at(-1) < values.pooled.error.at(-1);
    const story = cross ? `Attention's error crosses pooling's near ${show(cross, 2)} samples per dimension` : `Attention is ${last ? "better" : "worse"} than pooling at every budget`;
    return `${story}; with all the data in the world attention errs on ${percent(values.attention.error.at(-1))}, pooling on ${percent(values.pooled.error.at(-1))}, the vectorized model on ${percent(values.vectorized.error.at(-1))}. The query is given: its samples are not counted.`;
  },
});
