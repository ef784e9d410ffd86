// Where the ticks of an axis stand, and what a curve is worth between its points.
import { range } from "./maths.mjs";

export const ticksOf = ({ domain: [low, high], log, ticks }, room) => {
  if (ticks) return ticks.filter((t) => t >= low * (1 - 1e-9) && t <= high * (1 + 1e-9));
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) / room));
    const found = range(last - first + 1).filter((k) => k % every === 0).map((k) => 10 ** (first + k));
    if (found.length > 2 || high / low > 500) return found;
    return range(last - first + 2).flatMap((k) => [1, 2, 5].map((m) => m * 10 ** (first - 1 + k)))
      .filter((t) => t >= low * 0.999 && t <= high * 1.001);
  }
  const raw = (high - low) / room, size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 2.5, 5, 10].find((m) => m * size >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1).map((k) => Math.abs(first + k) < 1e-9 ? 0 : (first + k) * step);
};

// A curve at x: straight between its points, as it is drawn on its axes, logarithmic or not.
export const along = (xs, ys, x, log, steep) => {
  if (!(x >= Math.min(xs[0], xs.at(-1)) - 1e-12 && x <= Math.max(xs[0], xs.at(-1)) + 1e-12)) return null;
  let k = 0;
  while (k < xs.length - 2 && x > xs[k + 1]) k += 1;
  const f = log ? Math.log : (v) => v, t = (f(x) - f(xs[k])) / (f(xs[k + 1]) - f(xs[k]));
  if (!Number.isFinite(ys[k]) || !Number.isFinite(ys[k + 1]) || ys[k] === null || ys[k + 1] === null) return null;
  if (steep && ys[k] > 0 && ys[k + 1] > 0) return ys[k] * (ys[k + 1] / ys[k]) ** t;
  return ys[k] + t * (ys[k + 1] - ys[k]);
};
