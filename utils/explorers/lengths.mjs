// Chapter 11: the rules for the sharpness at another length, from a stored table of the exact law.
import { explorer } from "./frame.mjs";
import { range } from "./maths.mjs";
import { tables } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const SHARES = [0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2], TIMES = [0.25, 4, 16, 64], STRENGTHS = [5, 6, 7], SIZES = [100, 1000];
const RULES = ["none", "root", "log", "yarn", "llama4", "capture", "best"];

export const prepare = tables;

const sharpnesses = (T, L, next) => { // as `rescaled` in needle/readout/lengths.py
  const growth = Math.log(next) / Math.log(L), s = next / L, frozen = Math.sqrt(2 * Math.log(next));
  const capture = () => {
    if (2 * Math.log(L) <= T * T) return Math.max(T, frozen);
    const height = Math.log(L) / T + T / 2;
    return height <= frozen ? frozen : (2 * Math.log(next)) / (height + Math.sqrt(height ** 2 - frozen ** 2));
  };
  return {
    none: T, root: T * Math.sqrt(growth), log: T * growth, yarn: T * (1 + 0.1 * Math.log(Math.max(s, 1))) ** 2,
    llama4: T * (1 + 0.1 * Math.log(Math.floor(s) + 1)), capture: capture(),
  };
};

export const compute = ({ L, theta, share, times, how }, { error, best }) => {
  const row = [SIZES.indexOf(L), STRENGTHS.indexOf(theta)], tail = [TIMES.indexOf(times), how];
  const at = (k) => error(...row, k, ...tail), all = range(SHARES.length).map(at), k = SHARES.indexOf(share);
  const T = share * Math.sqrt(2 * Math.log(L)), pick = (list) => Object.fromEntries(RULES.map((rule, i) => [rule, list(i)]));
  return {
    ...pick((i) => all.map((errors) => errors[i])), here: pick((i) => all[k][i]),
    sharpness: { ...sharpnesses(T, L, Math.round(times * L)), best: best(...row, k, ...tail) },
    how: "Exact law, computed beforehand at every stop.",
  };
};

const NAMES = { none: "no change", root: "root of the logarithm", log: "logarithm", yarn: "YaRN", llama4: "Llama 4", capture: "height of capture", best: "best found" };
const COLORS = { none: "noise", root: "pooled", log: "vectorized", yarn: "elementwise", llama4: "message", capture: "attention", best: "bayes" };

export const render = explorer({
  panels: [{ title: "error in use, by sharpness in training", height: 300, margin: { top: 70 } }, { title: "error against the sharpness in use", height: 300 }],
  draw: ([over, dial], { here, sharpness, ...curves }, { share }) => {
    const all = RULES.flatMap((rule) => curves[rule]);
    const bottom = 0.8 * Math.min(...all), top = Math.min(0.6, 1.3 * Math.max(...all));
    const y = { label: "test error", domain: [bottom, top], log: true, precise: percent, ticks: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5] };
    over.begin({ x: { label: "T/√(2 log L) in training", short: "T/√(2 log L)", domain: [0.27, 1.23] }, y });
    over.mark(share, "");
    for (const rule of RULES) over.line(NAMES[rule], SHARES, curves[rule], COLORS[rule], { dash: rule !== "capture" && rule !== "best" });
    over.end();
    const used = RULES.map((rule) => sharpness[rule]), wide = 0.12 * (Math.max(...used) - Math.min(...used)) + 0.1;
    dial.begin({ x: { label: "sharpness in use T′", short: "T′", domain: [Math.min(...used) - wide, Math.max(...used) + wide] }, y });
    const order = RULES.slice().sort((a, b) => sharpness[a] - sharpness[b]);
    dial.line("all rules", order.map((rule) => sharpness[rule]), order.map((rule) => here[rule]), "muted", { width: 1, legend: false, read: false });
    for (const rule of RULES) dial.dot(sharpness[rule], here[rule], COLORS[rule], { name: NAMES[rule], r: 5.5 });
    dial.reader = (x) => { // the rule that is nearest
      const near = order.reduce((a, b) => (Math.abs(sharpness[b] - x) < Math.abs(sharpness[a] - x) ? b : a));
      return [sharpness[near], [NAMES[near], `T′ = ${show(sharpness[near])}`, percent(here[near], 3)]];
    };
    dial.end();
  },
  numbers: ({ here, sharpness }) => RULES.map((rule) => [NAMES[rule], `T′ ${show(sharpness[rule])}, ${percent(here[rule], 3)}`, COLORS[rule]]),
  sentence: ({ here }, { L, times, how }) => {
    const own = RULES.slice(0, 6).sort((a, b) => here[a] - here[b])[0], words = ["kept", "re-set without labels", "re-tuned"][how];
    return `Trained at ${show(L)} tokens, used at ${show(times * L)}, the intercept ${words}: doing nothing gives ${percent(here.none, 3)} errors, the best rule here (${NAMES[own]}) ${percent(here[own], 3)}, the height of capture ${percent(here.capture, 3)}, the best sharpness ${percent(here.best, 3)}.`;
  },
});
