// The limit of two gradient steps: the integrals of needle.steps.alignment.

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

export const limit = ({ L, R, pi, theta, lr_w, lr_b }, inverse) => {
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

export const predict = (p, alpha0) => {
  const { L } = p, { along, across, A, B, noise } = limit(p, 1 / alpha0);
  const wide = Math.sqrt(across / alpha0), readout = Math.hypot(along, wide);
  const loud = Math.sqrt(noise / alpha0) / L, overlap = ((A + B) / L) * along;
  const norm = Math.hypot(overlap, (B / L) * wide, loud), clip = (c) => Math.min(1, Math.max(-1, c));
  return {
    query_cos: norm ? clip(overlap / norm) : 0, readout_cos: readout ? clip(along / readout) : 0,
    norm, overlap, signal: (A / L) * along, echo: (B / L) * readout, noise: loud,
  };
};
