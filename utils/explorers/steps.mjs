// Chapter 4: the limit of two gradient steps, the same integrals as needle.steps.alignment.
import { intercept, limit, predict } from "./alignment.mjs";
import { explorer } from "./frame.mjs";
import { geomspace, range } from "./maths.mjs";
import { orNull, show } from "./maths.mjs";

const ALPHAS = geomspace(0.1, 100, 31);
const SHARES = range(19).map((k) => (k + 1) / 20).filter((pi) => pi !== 0.5); // of the boundary

export const compute = (p) => {
  const path = ALPHAS.map((alpha0) => predict(p, alpha0)), { along, across, A, B, noise } = limit(p, 0);
  const towards = (A + B) * along;
  return {
    query: path.map((q) => q.query_cos), readout: path.map((q) => q.readout_cos), ...predict(p, p.alpha0),
    rate: orNull((B * B * across + noise) / (2 * towards * towards)),
    intercept: intercept(p, p.alpha0),
    boundary: [0.1, p.alpha0, 100].map((alpha0) => SHARES.map((pi) => intercept({ ...p, pi }, alpha0))),
    how: "Exact: the same integrals, computed in your browser.",
  };
};

// The plane of the share of positives and the rate of the bias: where the query points away.
const drawn = (plane, { boundary, query_cos }, { pi, lr_b, balanced }) => {
  const top = 6, y = { label: "rate of the bias η_b", domain: [0, top] };
  plane.begin({ x: { label: "share of positives π", short: "π", domain: [0.05, 0.95] }, y });
  const sides = [[0, 9, 0], [9, 18, top]]; // left of ½ the query points away below the line, right of it above
  const rates = boundary.map((row) => row.map((b, k) => b / (SHARES[k] - 0.5)));
  for (const [from, to, edge] of sides) {
    const at = SHARES.slice(from, to);
    if (balanced) { // the bias does not move: a share of positives is aligned at every rate or at none
      const lost = at.filter((_, k) => boundary[1][from + k] < 0);
      if (lost.length) plane.area([[lost[0], 0], [lost.at(-1), 0], [lost.at(-1), top], [lost[0], top]], "pooled", { name: "away" });
      continue;
    }
    const inside = (r) => Math.min(2 * top, Math.max(-top, r)), shown = (r) => Math.min(top, Math.max(0, r));
    plane.area([[at[0], edge], ...at.map((x, k) => [x, shown(rates[1][from + k])]), [at.at(-1), edge]], "pooled", { name: "away" });
    const show_in_legend = { legend: from === 0, read: true };
    plane.line("α₀ = 0.1", at, rates[0].slice(from, to).map(inside), "muted", { ...show_in_legend, dash: true, width: 1.4 });
    plane.line("α₀ = 100", at, rates[2].slice(from, to).map(inside), "muted", { ...show_in_legend, width: 1.4 });
    plane.line("turns at this α₀", at, rates[1].slice(from, to).map(inside), "attention", show_in_legend);
  }
  if (balanced && boundary[1].every((b) => b > 0)) plane.text(0.5, top / 2, "aligned at every rate", { color: "attention" });
  else plane.text(0.93, top / 2, "shaded: points away", { color: "pooled", anchor: "end" });
  plane.dot(pi, lr_b, query_cos < 0 ? "pooled" : "attention", { r: 6, name: "here" });
  plane.end();
};

export const render = explorer({
  panels: [
    { title: "cosines with the signal against α₀", height: 270 }, { title: "the parts of the query", height: 270 },
    { title: "where the query points away", height: 270, drag: ["pi", "lr_b"] },
  ],
  draw: ([cosines, parts, plane], values, params) => {
    const { alpha0 } = params;
    drawn(plane, values, params);
    cosines.begin({ x: { label: "samples per dimension α₀", short: "α₀", domain: [0.1, 100], log: true }, y: { label: "cosine with ξ", domain: [Math.min(0, ...values.query) < -0.01 ? -1 : 0, 1.02] } });
    cosines.mark(alpha0, "α₀", "ink", { top: 180 });
    cosines.line("zero", [0.1, 100], [0, 0], "muted", { width: 1, legend: false, read: false });
    cosines.line("query", ALPHAS, values.query, "attention");
    cosines.line("readout", ALPHAS, values.readout, "pooled", { dash: true });
    cosines.dot(alpha0, values.query_cos, "attention", { name: "query" });
    cosines.end();
    // the plane of ξ and w⁽¹⁾: the echo begins where the signal ends; the noise, out of the plane, is a disk
    const { norm, signal, echo, noise, readout_cos: c } = values, s = Math.sqrt(1 - c * c), unit = norm || 1;
    const turn = [signal / unit, 0], tip = [(signal + echo * c) / unit, (echo * s) / unit], r = noise / unit;
    const reach = 1.25 * Math.max(1, ...[turn, tip].flat().map(Math.abs), Math.abs(tip[1]) + r);
    const wide = reach * parts.shape, x = { label: "along ξ, in units of |q|", domain: [-wide, wide] }; // angles are true
    parts.begin({ x, y: { label: "across ξ", domain: [-reach, reach] } });
    parts.line("axis", [0, 0], [-reach, reach], "muted", { width: 1, legend: false, read: false });
    parts.line("axis", [-wide, wide], [0, 0], "muted", { width: 1, legend: false, read: false });
    const round = Array.from({ length: 65 }, (_, k) => (k * Math.PI) / 32);
    parts.area(round.map((a) => [tip[0] + r * Math.cos(a), tip[1] + r * Math.sin(a)]), "noise", { opacity: 0.2 });
    parts.arrow([0, 0], turn, "attention", "signal");
    parts.arrow(turn, tip, "pooled", "");
    parts.arrow([0, 0], tip, "ink", "query");
    if (Math.abs(echo) > 0.2 * unit) parts.text((turn[0] + tip[0]) / 2, tip[1] / 2, "echo", { color: "pooled", anchor: "start", dx: 8, dy: 4 });
    if (r > 0.1) parts.text(tip[0], tip[1] - r, "noise", { color: "noise", dy: 14 });
    parts.legend = [];
    parts.end();
  },
  numbers: (v, { alpha0, pi, balanced }) => [
    ["query", `cosine ${show(v.query_cos)}`, "attention"], ["readout", `cosine ${show(v.readout_cos)}`, "pooled"],
    ["signal : echo : noise", [v.signal, v.echo, v.noise].map((x) => show(x / (v.norm || 1), 2)).join(" : "), "ink"],
    ["turns at η_b", balanced || pi === 0.5 ? "none" : show(v.intercept / (pi - 0.5)), "ink"],
    ...(v.rate < alpha0 / 4 ? [["1 − |cosine| ≈ C/α₀, C", show(v.rate), "ink"]] : []), // a law of small angles
  ],
  sentence: ({ query_cos, readout_cos, signal, echo, intercept }, { alpha0, pi, balanced }) => {
    const away = query_cos < 0;
    const reason = away ? "the query points AWAY from the needle (anti-aligned): the echo outweighs the signal" : Math.abs(echo) > Math.abs(signal) && echo > 0 ? "the query is aligned, mostly by the echo of the first step" : "the query is aligned";
    const all = intercept > 0 ? "at every rate of the bias" : "at no rate of the bias";
    const some = `for η_b ${pi < 0.5 ? "above" : "below"} ${show(intercept / (pi - 0.5))}`;
    return `After two steps on ${show(alpha0)} samples per dimension ${reason}. Its cosine with the signal is ${show(query_cos)}, the readout's ${show(readout_cos)}. With this share of positives it is aligned ${balanced || pi === 0.5 ? all : some}.`;
  },
});
