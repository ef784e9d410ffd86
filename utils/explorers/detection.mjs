// Chapter 3: errors of all classifiers against the strength, and where attention's boundaries lie.
import { explorer } from "./frame.mjs";
import { linspace, ndtr, range } from "./maths.mjs";
import { index, tables } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const HEIGHTS = range(13);
const TAUS = [0.5, 1, 1.5, 2, 3, 5, 8];

export const prepare = tables;

const pooled = (theta, L) => ndtr(-theta / Math.sqrt(L) / 2);

export const critical = (L, tau, c) => {
  const log = Math.log(L);
  return tau * c < Math.sqrt(2 * log) ? log / (c * tau) + (c * tau) / 2 : Math.sqrt(2 * log);
};

export const compute = ({ L, theta, tau }, { attention, largest, bayes, excess }) => {
  const size = Math.round(Math.log10(L)) - 1, sharp = index(TAUS, tau);
  const at = (t) => ({
    pooled: pooled(t, L), attention: ndtr(attention(size, t, sharp)),
    largest: ndtr(largest(size, 2 * t)), excess: ndtr(excess(size, 2 * t)), bayes: ndtr(bayes(size, 2 * t)),
  });
  const rows = HEIGHTS.map(at), column = (key) => rows.map((row) => row[key]);
  return {
    pooled: column("pooled"), attention: column("attention"), largest: column("largest"), excess: column("excess"), bayes: column("bayes"),
    here: at(theta),
    weight: critical(L, tau, 1), error_vanishes: critical(L, tau, 2), limit: Math.sqrt(2 * Math.log(L)),
    how: "Attention: 600 simulated bags, right to 0.03; the other rules exact. Excess rule: level 0.9 √(2 log L).",
  };
};

const NAMES = [["pooled", "averaging", "pooled"], ["attention", "attention", "attention"], ["largest", "largest token", "noise"], ["excess", "excess rule", "elementwise"], ["bayes", "best possible", "bayes"]];

export const render = explorer({
  panels: [{ title: "test error against strength", height: 285, margin: { top: 54 } }, { title: "phase diagram of attention", height: 285, margin: { top: 54 } }],
  draw: ([errors, plane], values, { L, theta, tau }) => {
    errors.begin({ x: { label: "strength θ", short: "θ", domain: [0, 12] }, y: { label: "test error", domain: [0, 0.52], precise: percent } });
    errors.mark(theta, "θ");
    for (const [key, name, color] of NAMES) {
      errors.line(name, HEIGHTS, values[key], color, { dash: key === "largest" });
      errors.dot(theta, values.here[key], color, { name });
    }
    errors.end();
    const taus = linspace(0.5, 8, 76);
    const weight = taus.map((t) => critical(L, t, 1)), vanish = taus.map((t) => critical(L, t, 2));
    plane.begin({ x: { label: "sharpness τ", short: "τ", domain: [0.5, 8] }, y: { label: "strength θ", domain: [0, 12] } });
    plane.area([...taus.map((t, i) => [t, weight[i]]), [8, 12], [0.5, 12]], "attention", { opacity: 0.22, name: "weight" });
    plane.area([...taus.map((t, i) => [t, vanish[i]]), [8, 12], [0.5, 12]], "attention", { opacity: 0.12, name: "error" });
    plane.line("the needle wins the weight", taus, weight, "attention");
    plane.line("error vanishes", taus, vanish, "bayes", { dash: true });
    plane.dot(tau, theta, "ink", { r: 6, name: "here" });
    plane.end();
  },
  numbers: ({ here }) => NAMES.map(([key, name, color]) => [name, percent(here[key], 3), color]),
  sentence: ({ here, weight, error_vanishes }, { L, theta, tau }) => {
    const place = theta > weight ? "the needle wins the softmax" : theta > error_vanishes ? "the needle moves the error but not the weight" : "attention at this sharpness fails as L grows";
    return `Among ${show(L)} tokens a needle of strength ${show(theta)} leaves averaging with ${percent(here.pooled, 3)} errors, attention at τ = ${show(tau)} with ${percent(here.attention)}, the best possible rule with ${percent(here.bayes)}; ${place}.`;
  },
});
