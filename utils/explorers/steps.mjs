// Chapter 4: the limit of two gradient steps, the same integrals as needle.steps.alignment.
import { limit, predict } from "./alignment.mjs";
import { explorer } from "./frame.mjs";
import { geomspace } from "./maths.mjs";
import { orNull, show } from "./words.mjs";

const ALPHAS = geomspace(0.1, 100, 31);

export const compute = (p) => {
  const path = ALPHAS.map((alpha0) => predict(p, alpha0)), { along, across, A, B, noise } = limit(p, 0);
  const towards = (A + B) * along;
  return {
    query: path.map((q) => q.query_cos), readout: path.map((q) => q.readout_cos), ...predict(p, p.alpha0),
    rate: orNull((B * B * across + noise) / (2 * towards * towards)),
    how: "Exact: the same integrals, computed in your browser.",
  };
};

export const render = explorer({
  panels: [{ title: "cosines with the signal against α₀", height: 270 }, { title: "the parts of the query", height: 270 }],
  draw: ([cosines, parts], values, { alpha0 }) => {
    cosines.begin({ x: { label: "samples per dimension α₀", short: "α₀", domain: [0.1, 100], log: true }, y: { label: "cosine with ξ", domain: [Math.min(0, ...values.query) < -0.01 ? -1 : 0, 1.02] } });
    cosines.mark(alpha0, "α₀", "ink", { top: 180 });
    cosines.line("zero", [0.1, 100], [0, 0], "muted", { width: 1, legend: false, read: false });
    cosines.line("query", ALPHAS, values.query, "attention");
    cosines.line("readout", ALPHAS, values.readout, "vectorized", { dash: true });
    cosines.dot(alpha0, values.query_cos, "attention", { name: "query" });
    cosines.end();
    const { norm, signal, echo, noise, overlap, readout_cos: c } = values, s = Math.sqrt(1 - c * c);
    const unit = norm || 1, arrows = [
      [[signal / unit, 0], "attention", "signal"],
      [[(echo * c) / unit, (echo * s) / unit], "vectorized", "echo"],
      [[0, noise / unit], "noise", "noise"],
      [[overlap / unit, Math.sqrt(Math.max(0, 1 - (overlap / unit) ** 2))], "ink", "query"],
    ];
    const reach = Math.max(1, ...arrows.flatMap(([[x, y]]) => [Math.abs(x), Math.abs(y)])) * 1.25;
    const wide = reach * parts.shape, x = { label: "along ξ, in units of |q|", domain: [-wide, wide] }; // angles are true
    parts.begin({ x, y: { label: "across ξ", domain: [-reach, reach] } });
    parts.line("axis", [0, 0], [-reach, reach], "muted", { width: 1, legend: false, read: false });
    parts.line("axis", [-wide, wide], [0, 0], "muted", { width: 1, legend: false, read: false });
    for (const [tip, color, name] of arrows) parts.arrow([0, 0], tip, color, name);
    parts.end();
  },
  numbers: (v) => [
    ["query", `cosine ${show(v.query_cos)}`, "attention"], ["readout", `cosine ${show(v.readout_cos)}`, "vectorized"],
    ["signal : echo : noise", [v.signal, v.echo, v.noise].map((x) => show(x / (v.norm || 1), 2)).join(" : "), "ink"],
    ["1 − |cosine| ≈ C/α₀, C", show(v.rate), "ink"],
  ],
  sentence: ({ query_cos, readout_cos, signal, echo }, { alpha0 }) => {
    const away = query_cos < 0;
    const reason = away ? "the query points AWAY from the needle (anti-aligned): the echo outweighs the signal" : Math.abs(echo) > Math.abs(signal) && echo > 0 ? "the query is aligned, mostly by the echo of the first step" : "the query is aligned";
    return `After two steps on ${show(alpha0)} samples per dimension ${reason}. Its cosine with the signal is ${show(query_cos)}, the readout's ${show(readout_cos)}.`;
  },
});
