// Functions of numbers that every explorer may need; each is tested against Python.

export const range = (n) => Array.from({ length: n }, (_, i) => i);
export const linspace = (a, b, n) => range(n).map((i) => a + ((b - a) * i) / (n - 1));
export const geomspace = (a, b, n) => linspace(Math.log(a), Math.log(b), n).map(Math.exp);

export const ndtr = (x) => {
  const a = Math.abs(x);
  if (a > 37) return x > 0 ? 1 : 0;
  const fold = (list) => list.reduce((sum, c) => sum * a + c);
  let tail = Math.exp((-a * a) / 2);
  if (a < 7.07106781186547) {
    tail *= fold([3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383,
      112.079291497871, 221.213596169931, 220.206867912376]);
    tail /= fold([8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461,
      296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752]);
  } else tail /= (a + 1 / (a + 2 / (a + 3 / (a + 4 / (a + 0.65))))) * 2.506628274631;
  return x > 0 ? 1 - tail : tail;
};

const rational = (x, top, bottom) =>
  top.reduceRight((s, c) => s * x + c, 0) / bottom.reduceRight((s, c) => s * x + c, 0);
export const ndtri = (p) => { // Wichura's AS 241
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    return q * rational(0.180625 - q * q,
      [3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
        45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727],
      [1, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867,
        39307.89580009271061, 28729.085735721942674, 5226.495278852854561]);
  }
  const r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p));
  const x = r <= 5
    ? rational(r - 1.6,
      [1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
        1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4],
      [1, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459,
        0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9])
    : rational(r - 5,
      [6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123,
        0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5, 2.01033439929228813265e-7],
      [1, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525,
        7.868691311456132591e-4, 1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15]);
  return q < 0 ? -x : x;
};

// The uniform number of a place in a stream: the same in utils/explorers/base.py.
export const uniform = (seed, place) => {
  let h = (Math.imul(seed, 0x9e3779b1) + Math.imul(place, 0x85ebca77)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (((h ^ (h >>> 16)) >>> 0) + 0.5) / 2 ** 32;
};

// A smooth curve through points that overshoots nowhere (Fritsch and Carlson), at other places.
export const smooth = (xs, ys, places) => {
  const n = xs.length, h = range(n - 1).map((i) => xs[i + 1] - xs[i]);
  const s = h.map((w, i) => (ys[i + 1] - ys[i]) / w);
  const m = range(n).map((i) => {
    if (i === 0) return s[0];
    if (i === n - 1) return s[n - 2];
    if (s[i - 1] * s[i] <= 0) return 0;
    const a = 2 * h[i] + h[i - 1], b = h[i] + 2 * h[i - 1];
    return (a + b) / (a / s[i - 1] + b / s[i]);
  });
  return places.map((x) => {
    let k = 0;
    while (k < n - 2 && x > xs[k + 1]) k += 1;
    const t = (x - xs[k]) / h[k], u = 1 - t;
    return u * u * ((1 + 2 * t) * ys[k] + t * h[k] * m[k]) + t * t * ((1 + 2 * u) * ys[k + 1] - u * h[k] * m[k + 1]);
  });
};

// Numbers as they are written.
export const show = (x, digits = 3) => {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x), exponent = Math.floor(Math.log10(size * (1 + 1e-12)));
  if (exponent >= 6 || exponent < -4) {
    const power = [...String(exponent)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
    const factor = (x / 10 ** exponent).toPrecision(Math.min(digits, 2)).replace(/\.?0+$/, "");
    return (factor === "1" ? "" : `${factor}·`).replace("-", "−") + `10${power}`;
  }
  const text = x.toFixed(Math.max(0, digits - 1 - exponent)).replace("-", "−");
  const plain = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return size >= 10000 ? plain.replace(/\B(?=(\d{3})+$)/g, " ") : plain;
};
export const percent = (x, digits = 2) => (x === null ? "–" : `${show(100 * x, digits)}\u00a0%`);
export const orNull = (x) => (Number.isFinite(x) ? x : null);
