// Chapter 10: one pass over fresh bags, from tables at the sliders' stops.
import { explorer } from "./frame.mjs";
import { range } from "./maths.mjs";
import { table } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const SHARES = [0.1, 0.2, 0.35, 0.5], RATES = [0.3, 3, 24];
const SAMPLES = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12];
const NAMES = ["query", "readout", "test"];

export const prepare = (data) => Object.fromEntries(NAMES.map((name) => {
  const read = table(data[name]);
  return [name, range(SHARES.length).map((i) => range(RATES.length).map((j) => read(i, j)))];
}));

export const compute = ({ pi, lr_b, alpha }, data) => {
  const [i, j, now] = [SHARES.indexOf(pi), RATES.indexOf(lr_b), SAMPLES.indexOf(alpha)];
  const rows = Object.fromEntries(NAMES.map((name) => [name, data[name][i][j]]));
  return {
    ...rows, here: Object.fromEntries(NAMES.map((name) => [name, rows[name][now]])), lowest: Math.min(...rows.query),
    how: "The flow, computed beforehand at these settings, right to 1 %.",
  };
};

export const render = explorer({
  panels: [{ title: "cosines with the needle", height: 255 }, { title: "test error", height: 255 }],
  draw: ([cosines, errors], values, { pi, alpha }, { frame }) => {
    const now = frame === null ? SAMPLES.indexOf(alpha) : Math.min(frame, SAMPLES.length) - 1, x = { label: "samples per dimension α", short: "α", domain: [0, 12] };
    cosines.begin({ x, y: { label: "cosine with ξ", domain: [-0.2, 1] } });
    cosines.line("zero", [0, 12], [0, 0], "muted", { width: 1, legend: false, read: false });
    cosines.line("query", SAMPLES, values.query, "attention");
    cosines.line("readout", SAMPLES, values.readout, "pooled", { dash: true });
    cosines.dot(SAMPLES[now], values.query[now], "attention", { r: 6, name: "here" });
    cosines.end();
    const guess = Math.min(pi, 1 - pi), most = Math.max(guess, ...values.test);
    errors.begin({ x, y: { label: "test error", domain: [0, 1.05 * most], precise: percent } });
    errors.line("new bags", SAMPLES, values.test, "attention");
    errors.line("guessing", [0, 12], [guess, guess], "noise", { dash: true, read: false });
    errors.dot(SAMPLES[now], values.test[now], "attention", { r: 6, name: "here" });
    errors.end();
  },
  play: { label: "Play the pass", frames: () => SAMPLES.length, pause: 200 },
  numbers: (values) => [["query", `cosine ${show(values.here.query, 2)}`, "attention"], ["readout", `cosine ${show(values.here.readout, 2)}`, "pooled"], ["new bags", percent(values.here.test), "attention"]],
  sentence: ({ here, lowest, test }, { pi, alpha }) => {
    const turned = lowest < -0.005 ? `The query first turns away, down to a cosine of ${show(lowest, 2)}` : "The query never turns away";
    return `After ${show(alpha)} samples per dimension the query has a cosine of ${show(here.query, 2)} with the needle, and ${percent(here.test)} of new bags are misread, where guessing misreads ${percent(Math.min(pi, 1 - pi))}. ${turned}; at the end of the pass ${percent(test.at(-1))} are.`;
  },
});
