// The limit of two gradient steps: the integrals of needle.steps.alignment.

// E of a pull, its square and g(t) = tanh(t/2)/2 over t ~ N(mean, sd²); by the trapezoidal rule,
// whose error is exponentially small while the step in t stays below 0.7.
const moments = (mean, sd, y) => {
  const step = Math.min(0.5, 0.6 / Math.max(sd, 1e-12));
  let total = 0, first = 0, second = 0, tilt = 0;
  for (let x = -12; x <= 12; x += step) {
    const w = Math.exp((-x * x) / 2), t = mean + sd * x, pull = y / (1 + Math.exp(y * t));
    total += w; first += w * pull; second += w * pull * pull; tilt += w * 0.5 * Math.tanh(0.5 * t);
  }
  return [first / total, second / total, tilt / total];
};

// log E of 1/(1 + e^u) over u ~ N(t, sd²), right in the far tail too, and minus its derivative by t.
const logTail = (t, sd) => {
  const s = Math.max(sd, 1e-12), step = Math.min(0.5, 0.6 / s), peak = -Math.min(Math.max(t, 0) / s, s);
  const softplus = (u) => Math.max(u, 0) + Math.log1p(Math.exp(-Math.abs(u)));
  const many = Math.ceil(9 / step), top = -(peak * peak) / 2 - softplus(t + s * peak);
  let total = 0, right = 0;
  for (let k = -many; k <= many; k += 1) {
    const g = peak + step * k, u = t + s * g, w = Math.exp((-g * g) / 2 - softplus(u) - top);
    total += w;
    right += w / (1 + Math.exp(-u));
  }
  return [Math.log(total) + top + Math.log(step / Math.sqrt(2 * Math.PI)), right / total];
};

// What both classes weigh and how they pull at the start; balanced, each class counts one half.
const rule = ({ pi, balanced }) => {
  const weight = balanced ? [0.5 / pi, 0.5 / (1 - pi)] : [1, 1];
  return { weight, balance: balanced ? 0 : pi - 0.5, start: [weight[0] / 2, -weight[1] / 2] };
};

// ω, |w⁽¹⁾ − ωξ|² per 1/α₀, the spread of a score and the class scores before the bias moves.
const scores = ({ L, R, pi, theta, lr_w }, start, inverse) => {
  const along = (lr_w * pi * start[0] * theta * R) / L;
  const across = (lr_w * lr_w * (pi * start[0] ** 2 + (1 - pi) * start[1] ** 2)) / L;
  const power = along * along + across * inverse;
  const shift = [(lr_w * start[0] * inverse) / L + (theta * R * along) / L, (lr_w * start[1] * inverse) / L];
  return { along, across, power, sd: Math.sqrt(power / L), shift };
};
const excess = ({ L, R, theta }) => (theta * theta * R * (L - R)) / L;

export const limit = (p, inverse) => {
  const { L, pi, lr_b } = p, { weight, balance, start } = rule(p);
  const { along, across, power, sd, shift } = scores(p, start, inverse);
  const [[p1, p2, pt], [n1, n2, nt]] = [1, -1].map((y, k) => {
    const [first, second, tilt] = moments(shift[k] + lr_b * balance, sd, y);
    return [weight[k] * first, weight[k] ** 2 * second, weight[k] * tilt];
  });
  const first = [pi * p1, (1 - pi) * n1], tilt = pi * pt + (1 - pi) * nt;
  const size = ([a, b]) => Math.max(Math.abs(a), Math.abs(b));
  const [a, b] = size(first) <= size([balance, -tilt]) ? first : [balance, -tilt];
  const gain = excess(p);
  return {
    along, across, A: gain * first[0], B: (L - 1) * (a + b),
    noise: (L - 1) * power * (pi * p2 + (1 - pi) * n2) + gain * along * along * pi * p2,
  };
};

// The best intercept when each positive counts more: the query is aligned below it (steps/sign.py).
export const intercept = (p, alpha0) => {
  const { weight, start } = rule(p), { sd, shift } = scores(p, start, 1 / alpha0);
  const size = [p.pi * (1 + excess(p) / (p.L - 1)) * weight[0], (1 - p.pi) * weight[1]];
  const odds = Math.log(size[0] / size[1]);
  let high = 2 + Math.abs(odds) + Math.max(...shift.map(Math.abs)) + 40 * sd, low = -high;
  let b = Math.min(high, Math.max(low, (odds - shift[0] - shift[1]) / 2));
  for (let k = 0; k < 100; k += 1) { // Newton's method on the log of the quotient of the two pulls
    const [up, fall] = logTail(b + shift[0], sd), [down, rise] = logTail(-b - shift[1], sd);
    const gap = odds + up - down;
    if (gap > 0) low = b; else high = b;
    let next = b + gap / (fall + rise);
    if (!(next >= low && next <= high)) next = (low + high) / 2;
    const done = Math.abs(next - b) <= 1e-12 * (1 + Math.abs(b));
    b = next;
    if (done) break;
  }
  return b;
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
