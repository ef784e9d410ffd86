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
