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
  numbers: (v, { alpha0 }) => [
    ["query", `cosine ${show(v.query_cos)}`, "attention"], ["readout", `cosine ${show(v.readout_cos)}`, "pooled"],
    ["signal : echo : noise", [v.signal, v.echo, v.noise].map((x) => show(x / (v.norm || 1), 2)).join(" : "), "ink"],
    ...(v.rate < alpha0 / 4 ? [["1 − |cosine| ≈ C/α₀, C", show(v.rate), "ink"]] : []), // a law of small angles
  ],
  sentence: ({ query_cos, readout_cos, signal, echo }, { alpha0 }) => {
    const away = query_cos < 0;
    const reason = away ? "the query points AWAY from the needle (anti-aligned): the echo outweighs the signal" : Math.abs(echo) > Math.abs(signal) && echo > 0 ? "the query is aligned, mostly by the echo of the first step" : "the query is aligned";
    return `After two steps on ${show(alpha0)} samples per dimension ${reason}. Its cosine with the signal is ${show(query_cos)}, the readout's ${show(readout_cos)}.`;
  },
});
