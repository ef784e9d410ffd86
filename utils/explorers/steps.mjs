// Chapter 4: the limit of two gradient steps, the same integrals as utils.alignment.
import { explorer, geomspace, orNull, show } from "./common.mjs";

const ALPHAS = geomspace(0.1, 100, 31);

// E of a pull, its square and g(t) = tanh(t/2)/2 over t ~ N(mean, sd²); by the trapezoidal rule,
// whose error is exponentially small while the step in t stays below 0.7.
const moments = (mean, sd, y) => {
  const step = Math.min(0.25, 0.6 / Math.max(sd, 1e-12));
  let total = 0, first = 0, second = 0, tilt = 0;
  for (let x = -8.5; x <= 8.5; x += step) {
    const w = Math.exp((-x * x) / 2), g = 0.5 * Math.tanh(0.5 * (mean + sd * x)), pull = y / 2 - g;
    total += w; first += w * pull; second += w * pull * pull; tilt += w * g;
  }
  return [first / total, second / total, tilt / total];
};

const limit = ({ L, R, pi, theta, lr_w, lr_b }, inverse) => {
  const balance = pi - 0.5;
  const along = (lr_w * pi * 0.5 * theta * R) / L, across = (lr_w * lr_w * 0.25) / L;
  const power = along * along + across * inverse, sd = Math.sqrt(power / L);
  const at = (y, shift) => moments(shift + (lr_w * (y / 2) * inverse) / L + lr_b * balance, sd, y);
  const [p1, p2, pt] = at(1, (theta * R * along) / L), [n1, n2, nt] = at(-1, 0);
  const first = [pi * p1, (1 - pi) * n1], tilt = pi * pt + (1 - pi) * nt;
  const size = ([a, b]) => Math.max(Math.abs(a), Math.abs(b));
  const [a, b] = size(first) <= size([balance, -tilt]) ? first : [balance, -tilt];
  const excess = (theta * theta * R * (L - R)) / L;
  return {
    along, across, A: excess * first[0], B: (L - 1) * (a + b),
    noise: (L - 1) * power * (pi * p2 + (1 - pi) * n2) + excess * along * along * pi * p2,
  };
};

const predict = (p, alpha0) => {
  const { L } = p, { along, across, A, B, noise } = limit(p, 1 / alpha0);
  const wide = Math.sqrt(across / alpha0), readout = Math.hypot(along, wide);
  const loud = Math.sqrt(noise / alpha0) / L, overlap = ((A + B) / L) * along;
  const norm = Math.hypot(overlap, (B / L) * wide, loud), clip = (c) => Math.min(1, Math.max(-1, c));
  return {
    query_cos: norm ? clip(overlap / norm) : 0, readout_cos: readout ? clip(along / readout) : 0,
    norm, overlap, signal: (A / L) * along, echo: (B / L) * readout, noise: loud,
  };
};

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
    cosines.mark(alpha0, "α₀", "ink", { top: 200 });
    cosines.line("zero", [0.1, 100], [0, 0], "muted", { width: 1, legend: false, read: false });
    cosines.line("query", ALPHAS, values.query, "attention");
    cosines.line("readout", ALPHAS, values.readout, "vectorized", { dash: true });
    cosines.dot(alpha0, values.query_cos, "attention", { name: "query" });
    cosines.end();
    const { norm, signal, echo, noise, overlap, readout_cos: c } = values, s = Math.sqrt(1 - c * c);
    const unit = norm || 1, arrows = [
      [[signal / unit, 0], "attention", "signal", { dy: 16 }],
      [[(echo * c) / unit, (echo * s) / unit], "vectorized", "echo", {}],
      [[0, noise / unit], "noise", "noise", { dx: 6, anchor: "start" }],
      [[overlap / unit, Math.sqrt(Math.max(0, 1 - (overlap / unit) ** 2))], "ink", "query", {}],
    ];
    const reach = Math.max(1, ...arrows.flatMap(([[x, y]]) => [Math.abs(x), Math.abs(y)])) * 1.1;
    parts.begin({ x: { label: "along ξ, in units of |q|", domain: [-reach, reach] }, y: { label: "across ξ", domain: [-reach, reach] } });
    parts.line("axis", [0, 0], [-reach, reach], "muted", { width: 1, legend: false, read: false });
    parts.line("axis", [-reach, reach], [0, 0], "muted", { width: 1, legend: false, read: false });
    for (const [tip, color, name, where] of arrows) parts.arrow([0, 0], tip, color, name, where);
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
