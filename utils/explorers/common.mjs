// What all explorers share: numbers, a panel of SVG with real text, and the frame around it
// (sliders, address, a spoken sentence, reset, download). A module exports `compute`, which gives
// in a browser what its Python function gives with a kernel, and `render`, made by `explorer`.

// ---- numbers

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

// The uniform number of a place in a stream: the same in utils/explore.py.
export const uniform = (seed, place) => {
  let h = (Math.imul(seed, 0x9e3779b1) + Math.imul(place, 0x85ebca77)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (((h ^ (h >>> 16)) >>> 0) + 0.5) / 2 ** 32;
};

export const range = (n) => Array.from({ length: n }, (_, i) => i);
export const linspace = (a, b, n) => range(n).map((i) => a + ((b - a) * i) / (n - 1));
export const geomspace = (a, b, n) => linspace(Math.log(a), Math.log(b), n).map(Math.exp);

// ---- tables: numbers on a grid of stops, read back by straight lines between the stops

export const table = ({ kind, shape, low, high, data }) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const ticks = kind === "float32" ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
  const strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, b) => a * b, 1));
  const value = kind === "float32" ? (i) => ticks[i]
    : (i) => (ticks[i] === 65535 ? NaN : low + ((high - low) * ticks[i]) / 65534);
  // place: one (possibly fractional) index for each axis but those left out at the end
  return (...place) => {
    let corners = [[0, 1]];
    place.forEach((x, k) => {
      const at = Math.min(Math.max(x, 0), shape[k] - 1), i = Math.min(Math.floor(at), Math.max(shape[k] - 2, 0));
      const t = at - i, next = [];
      for (const [offset, weight] of corners) {
        if (t < 1) next.push([offset + i * strides[k], weight * (1 - t)]);
        if (t > 0) next.push([offset + (i + 1) * strides[k], weight * t]);
      }
      corners = next;
    });
    const length = place.length < shape.length ? strides[place.length - 1] : 0;
    const read = (j) => corners.reduce((sum, [offset, weight]) => sum + weight * value(offset + j), 0);
    return length ? range(length).map(read) : read(0);
  };
};

// Where a number stands on a rising list of stops, as a fractional index.
export const index = (stops, x) => {
  let k = 0;
  while (k < stops.length - 2 && x > stops[k + 1]) k += 1;
  return k + (x - stops[k]) / (stops[k + 1] - stops[k]);
};

export const tables = (data) => Object.fromEntries(Object.entries(data).map(([key, packed]) => [key, table(packed)]));
export const orNull = (x) => (Number.isFinite(x) ? x : null);

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

// ---- a panel: axes, curves, a cursor that reads them

const SVG = "http://www.w3.org/2000/svg";
const node = (name, attributes = {}, parent = null) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
};
const escape = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
const fixed = (x) => Math.round(x * 100) / 100;

const ticksOf = ({ domain: [low, high], log, ticks }, room) => {
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

export class Panel {
  constructor(parent, options) {
    this.options = { height: 250, ...options };
    this.box = document.createElement("div");
    this.box.className = "explorer-panel";
    parent.append(this.box);
    this.svg = node("svg", { role: "group", "aria-label": options.title }, this.box);
    this.back = node("g", { "aria-hidden": "true" }, this.svg);
    this.front = node("g", { class: "cursor", "aria-hidden": "true" }, this.svg);
    this.hit = node("rect", {
      class: "hit", tabindex: 0, role: "slider", "aria-label": `read the figure: ${options.title}`,
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0, "aria-valuetext": "not reading",
    }, this.svg);
    this.cursor = null;
    this.hit.addEventListener("pointermove", (e) => this.point(e));
    this.hit.addEventListener("pointerdown", (e) => this.point(e));
    this.hit.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") this.read(null); });
    this.hit.addEventListener("blur", () => this.read(null));
    this.hit.addEventListener("keydown", (e) => this.key(e));
  }

  // Start a drawing: the axes, and nothing on them.
  begin({ x, y, note = "" }) {
    this.room ??= this.box.clientWidth; // asked for once, and after a change: asking costs a layout
    const width = Math.max(240, this.room || 320), { height } = this.options;
    Object.assign(this, { x, y, width, height, marks: [], series: [], legend: [] });
    this.margin = { left: 48, right: 12, top: 40, bottom: 42, ...this.options.margin };
    const { left, right, top, bottom } = this.margin;
    this.plot = { left, top, right: width - right, bottom: height - bottom };
    this.sx = this.scale(x, left, width - right);
    this.sy = this.scale(y, height - bottom, top);
    this.note = note;
    return this;
  }

  scale({ domain: [low, high], log }, from, to) {
    const f = log ? Math.log : (v) => v, a = f(low), b = f(high);
    return (v) => from + ((to - from) * (f(log ? Math.max(v, 1e-300) : v) - a)) / (b - a);
  }

  inverse(px) {
    const { domain: [low, high], log } = this.x, { left, right } = this.plot;
    const share = (px - left) / (right - left);
    return log ? low * (high / low) ** share : low + (high - low) * share;
  }

  // A curve; `name` is what the legend and the reader call it.
  line(name, xs, ys, color, { dash = false, legend = true, read = true, digits = 3, width = 2 } = {}) {
    let d = "", pen = "M";
    xs.forEach((x, i) => {
      if (ys[i] === null || !Number.isFinite(ys[i])) { pen = "M"; return; }
      d += `${pen}${fixed(this.sx(x))},${fixed(this.sy(ys[i]))}`;
      pen = "L";
    });
    const style = dash ? ' stroke-dasharray="5 4"' : "";
    this.marks.push(`<path class="line c-${color}" data-curve="${escape(name)}" clip-path="url(#${this.clip})" stroke-width="${width}"${style} d="${d}"/>`);
    if (read) this.series.push({ name, xs, ys, color, digits });
    if (legend) this.legend.push({ name, color, dash });
    return this;
  }

  dot(x, y, color, { r = 4.5, name = "" } = {}) {
    if (x === null || y === null || !Number.isFinite(x) || !Number.isFinite(y)) return this;
    this.marks.push(`<circle class="dot c-${color}" data-dot="${escape(name)}" cx="${fixed(this.sx(x))}" cy="${fixed(this.sy(y))}" r="${r}"/>`);
    return this;
  }

  stems(name, xs, ys, color, { width = 1.5, legend = true, head = 0 } = {}) {
    const zero = fixed(this.sy(Math.max(0, this.y.domain[0])));
    const d = xs.map((x, i) => `M${fixed(this.sx(x))},${zero}V${fixed(this.sy(ys[i]))}`).join("");
    this.marks.push(`<path class="line c-${color}" data-curve="${escape(name)}" stroke-width="${width}" d="${d}"/>`);
    if (head) xs.forEach((x, i) => this.dot(x, ys[i], color, { r: head }));
    if (legend) this.legend.push({ name, color });
    return this;
  }

  area(points, color, { opacity = 0.16, name = "" } = {}) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${fixed(this.sx(x))},${fixed(this.sy(y))}`).join("");
    this.marks.push(`<path class="area c-${color}" data-area="${escape(name)}" clip-path="url(#${this.clip})" fill-opacity="${opacity}" d="${d}Z"/>`);
    return this;
  }

  mark(x, label, color = "ink", { top = 12, anchor = null } = {}) { // an upright line with its name
    const px = fixed(this.sx(x)), { left, right, top: up, bottom } = this.plot;
    if (!(px >= left - 0.5 && px <= right + 0.5)) return this;
    const side = anchor ?? (px > (left + right) / 2 ? "end" : "start");
    this.marks.push(`<path class="thin c-${color}" d="M${px},${up}V${bottom}"/>`);
    this.marks.push(`<text class="c-${color}" x="${px + (side === "end" ? -4 : 4)}" y="${up + top}" text-anchor="${side}">${escape(label)}</text>`);
    return this;
  }

  text(x, y, label, { anchor = "middle", color = "ink", dx = 0, dy = 0 } = {}) {
    this.marks.push(`<text class="c-${color}" x="${fixed(this.sx(x)) + dx}" y="${fixed(this.sy(y)) + dy}" text-anchor="${anchor}">${escape(label)}</text>`);
    return this;
  }

  arrow([x0, y0], [x1, y1], color, label, { dx = 0, dy = -6, anchor = "middle" } = {}) {
    const a = [this.sx(x0), this.sy(y0)], b = [this.sx(x1), this.sy(y1)];
    const angle = Math.atan2(b[1] - a[1], b[0] - a[0]), length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const head = Math.min(9, length / 2), wing = (turn) =>
      `${fixed(b[0] - head * Math.cos(angle + turn))},${fixed(b[1] - head * Math.sin(angle + turn))}`;
    this.marks.push(`<path class="line c-${color}" data-arrow="${escape(label)}" stroke-width="2.2" d="M${a.map(fixed)}L${b.map(fixed)}M${wing(0.42)}L${b.map(fixed)}L${wing(-0.42)}"/>`);
    this.marks.push(`<text class="c-${color}" x="${fixed((a[0] + b[0]) / 2) + dx}" y="${fixed((a[1] + b[1]) / 2) + dy}" text-anchor="${anchor}">${escape(label)}</text>`);
    this.legend.push({ name: label, color });
    return this;
  }

  get clip() {
    return `clip-${(this.id ??= Math.random().toString(36).slice(2, 9))}`;
  }

  end() {
    const { left, right, top, bottom } = this.plot, { x, y, svg } = this;
    const out = [`<clipPath id="${this.clip}"><rect x="${left}" y="${top - 3}" width="${right - left}" height="${bottom - top + 6}"/></clipPath>`];
    for (const t of ticksOf(y, Math.max(2, Math.floor((bottom - top) / 38)))) {
      const py = fixed(this.sy(t));
      out.push(`<path class="grid" d="M${left},${py}H${right}"/><text x="${left - 6}" y="${py + 4}" text-anchor="end">${(y.format ?? show)(t)}</text>`);
    }
    for (const t of ticksOf(x, Math.max(2, Math.floor((right - left) / 62)))) {
      const px = fixed(this.sx(t));
      out.push(`<path class="grid" d="M${px},${top}V${bottom}"/><text x="${px}" y="${bottom + 16}" text-anchor="middle">${(x.format ?? show)(t)}</text>`);
    }
    out.push(`<path class="axis" d="M${left},${top}V${bottom}H${right}"/>`);
    out.push(`<text class="label" x="${(left + right) / 2}" y="${bottom + 35}" text-anchor="middle">${escape(x.label)}</text>`);
    out.push(`<text class="label" x="${left - 40}" y="14">${escape(y.label)}</text>`);
    let at = left - 40, down = 26;
    const row = [];
    for (const { name, color, dash } of this.legend) {
      const wide = 26 + 6.4 * name.length;
      if (at + wide - 8 > this.width && at > left) [at, down] = [left - 40, down + 15];
      row.push(`<path class="line c-${color}" stroke-width="3"${dash ? ' stroke-dasharray="4 3"' : ""} d="M${at},${down}h14"/><text class="c-${color}" x="${at + 18}" y="${down + 4}">${escape(name)}</text>`);
      at += wide;
    }
    this.back.innerHTML = out.concat(row, this.marks).join("");
    svg.setAttribute("width", this.width);
    svg.setAttribute("height", this.height);
    svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    svg.dataset.x = JSON.stringify([...x.domain, x.log ? 1 : 0, left, right]);
    svg.dataset.y = JSON.stringify([...y.domain, y.log ? 1 : 0, bottom, top]);
    const frame = { x: left, y: top, width: right - left, height: bottom - top };
    for (const [key, value] of Object.entries(frame)) this.hit.setAttribute(key, value);
    const readable = this.series.length > 0 || this.reader;
    this.hit.setAttribute("tabindex", readable ? 0 : -1);
    this.read(this.cursor);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.read((event.clientX - box.left - this.plot.left) / (this.plot.right - this.plot.left));
  }

  key(event) {
    const step = { ArrowLeft: -0.02, ArrowDown: -0.02, ArrowRight: 0.02, ArrowUp: 0.02, PageUp: 0.1, PageDown: -0.1 }[event.key];
    const end = { Home: 0, End: 1 }[event.key];
    if (event.key === "Escape") this.read(null);
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab has plans of its own for the arrows
    this.read(end ?? Math.min(1, Math.max(0, (this.cursor ?? 0.5) + step)));
  }

  // Show the numbers at a place, 0 at the left end of the axis and 1 at the right; null hides them.
  read(share) {
    this.cursor = share;
    if (share === null || !(this.series.length || this.reader)) {
      this.front.innerHTML = "";
      this.hit.setAttribute("aria-valuetext", "not reading");
      return;
    }
    const { left, right, top, bottom } = this.plot;
    let x = this.inverse(left + Math.min(1, Math.max(0, share)) * (right - left));
    let lines = [], dots = "";
    if (this.reader) [x, lines] = this.reader(x);
    else {
      lines.push(`${this.x.short ?? this.x.label} = ${(this.x.format ?? show)(x)}`);
      for (const { name, xs, ys, color, digits } of this.series) {
        const value = along(xs, ys, x, this.x.log);
        if (value === null) continue;
        lines.push(`${name}: ${(this.y.precise ?? ((v) => show(v, digits)))(value)}`);
        if (value >= Math.min(...this.y.domain) && value <= Math.max(...this.y.domain)) dots += `<circle class="dot c-${color}" cx="${fixed(this.sx(x))}" cy="${fixed(this.sy(value))}" r="3.5"/>`;
      }
    }
    const px = fixed(this.sx(x)), wide = Math.max(...lines.map((l) => l.length)) * 6.7 + 14;
    const bx = px + 10 + wide < right ? px + 10 : Math.max(2, px - 10 - wide), tall = lines.length * 16 + 8;
    this.front.innerHTML = `<path class="thin c-ink" d="M${px},${top}V${bottom}"/>${dots}<rect class="tip" x="${bx}" y="${top + 2}" width="${wide}" height="${tall}" rx="3"/>`
      + lines.map((l, i) => `<text x="${bx + 7}" y="${top + 18 + 16 * i}">${escape(l)}</text>`).join("");
    this.hit.setAttribute("aria-valuenow", Math.round(100 * share));
    this.hit.setAttribute("aria-valuetext", lines.join("; "));
  }
}

const along = (xs, ys, x, log) => {
  if (!(x >= Math.min(xs[0], xs.at(-1)) - 1e-12 && x <= Math.max(xs[0], xs.at(-1)) + 1e-12)) return null;
  let k = 0;
  while (k < xs.length - 2 && x > xs[k + 1]) k += 1;
  const f = log ? Math.log : (v) => v, t = (f(x) - f(xs[k])) / (f(xs[k + 1]) - f(xs[k]));
  if (!Number.isFinite(ys[k]) || !Number.isFinite(ys[k + 1]) || ys[k] === null || ys[k + 1] === null) return null;
  return ys[k] + t * (ys[k + 1] - ys[k]);
};

// ---- the frame

const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const save = (figure, name) => { // one SVG with its colours written out
  const panels = [...figure.querySelectorAll(".explorer-panel svg")];
  const width = Math.max(...panels.map((s) => +s.getAttribute("width")));
  const whole = node("svg", { xmlns: SVG, width, "font-family": "sans-serif", "font-size": 12 });
  let height = 0;
  for (const panel of panels) {
    const copy = panel.cloneNode(true), shown = panel.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((part, i) => {
      const style = getComputedStyle(shown[i]);
      for (const key of ["fill", "stroke", "stroke-width", "fill-opacity", "font-size"]) part.setAttribute(key, style.getPropertyValue(key));
    });
    copy.querySelectorAll(".hit, .cursor").forEach((part) => part.remove());
    copy.setAttribute("y", height);
    height += +panel.getAttribute("height");
    whole.append(copy);
  }
  whole.setAttribute("height", height);
  const ground = node("rect", { width: "100%", height: "100%", fill: getComputedStyle(figure.closest(".explorer")).getPropertyValue("--ground") || "white" });
  whole.prepend(ground);
  const link = make("a", { download: `${name}.svg`, href: URL.createObjectURL(new Blob([whole.outerHTML], { type: "image/svg+xml" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const nearest = (stops, value) =>
  stops.reduce((best, stop, i) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best), 0);

// definition: panels [{title, …}], draw(panels, values, params), sentence(values, params),
// numbers(values, params) → [[name, text, color], …]
export const explorer = (definition) => ({ model, el }) => {
  const spec = model.get("spec"), controls = new Map();
  const params = { ...model.get("params") };
  const root = make("div", { class: "explorer-frame", role: "group", "aria-label": spec.title });
  const knobs = make("div", { class: "explorer-knobs" });
  const figure = make("div", { class: "explorer-figure" });
  const numbers = make("dl", { class: "explorer-numbers" });
  const spoken = make("p", { class: "explorer-sentence" });
  const live = make("p", { class: "explorer-live", "aria-live": "polite", role: "status" });
  const status = make("p", { class: "explorer-status" });
  const foot = make("div", { class: "explorer-foot" });
  root.append(make("p", { class: "explorer-title" }, make("strong", {}, spec.title)), knobs, figure, numbers, spoken, live, foot);
  el.replaceChildren(root);
  const panels = definition.panels.map((options) => new Panel(figure, options));

  const label = (slider, value) =>
    slider.labels ? slider.labels[slider.stops.indexOf(value)] : `${show(value, slider.digits ?? 4)}${slider.unit ?? ""}`;
  for (const slider of spec.sliders) {
    const id = `${spec.name}-${slider.name}-${Math.random().toString(36).slice(2, 7)}`;
    const input = make("input", {
      type: "range", id, min: 0, max: slider.stops.length - 1, step: 1, name: slider.name,
      "data-lm-suppress-shortcuts": "true", autocomplete: "off",
    });
    const value = make("output", { for: id });
    const [letter, below] = slider.symbol.split("_");
    const symbol = make("b", {}, letter, ...(below ? [make("sub", {}, below)] : []));
    const words = make("label", { for: id }, symbol, ` ${slider.label}`);
    knobs.append(make("div", { class: "explorer-knob" }, words, value, input));
    controls.set(slider.name, () => {
      input.value = nearest(slider.stops, params[slider.name]);
      value.textContent = label(slider, params[slider.name]);
      input.setAttribute("aria-valuetext", `${value.textContent}, ${slider.label}`);
    });
    input.addEventListener("input", () => {
      params[slider.name] = slider.stops[+input.value];
      changed();
    });
  }
  const button = (text, action, extra = {}) => {
    const made = make("button", { type: "button", ...extra }, text);
    made.addEventListener("click", action);
    foot.append(made);
    return made;
  };
  if (spec.again) button("Draw again", () => { params.draw = (params.draw % 9999) + 1; changed(); });
  if (definition.play) {
    let timer = null;
    const stop = () => { clearInterval(timer); timer = null; run.textContent = definition.play.label; };
    const run = button(definition.play.label, () => {
      if (timer) return stop();
      const values = model.get("values"), frames = definition.play.frames(values);
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return show_frame(frames);
      let k = 0;
      run.textContent = "Stop";
      timer = setInterval(() => { k += 1; show_frame(k); if (k >= frames) stop(); }, definition.play.pause ?? 250);
    });
    const show_frame = (k) => { state.frame = k; draw(); };
  }
  const state = { frame: null };
  button("Reset", () => { Object.assign(params, spec.start); state.frame = null; changed(); });
  button("Save the picture (SVG)", () => save(figure, spec.name));
  foot.append(status);

  let sent = JSON.stringify(params), waiting = false, late = false, saying = null, writing = null;
  const changed = () => {
    for (const refresh of controls.values()) refresh();
    state.frame = null;
    if (waiting) { late = true; return; }
    if (JSON.stringify(params) === sent) return draw();
    sent = JSON.stringify(params);
    waiting = true;
    model.set("params", { ...params });
    model.save_changes();
  };
  const draw = () => {
    const values = model.get("values");
    if (!values || !values.of) return;
    if (values.error) { status.textContent = values.error; root.classList.add("failed"); return; }
    root.classList.remove("failed");
    definition.draw(panels, values, values.of, state);
    const rows = definition.numbers?.(values, values.of) ?? [];
    numbers.hidden = !rows.length;
    numbers.innerHTML = rows.map(([name, text, color]) => `<div><dt class="c-${color ?? "ink"}">${escape(name)}</dt><dd>${escape(text)}</dd></div>`).join("");
    const sentence = definition.sentence(values, values.of, state);
    spoken.textContent = sentence;
    status.textContent = values.how;
    clearTimeout(saying);
    saying = setTimeout(() => { live.textContent = sentence; }, 600);
  };
  model.on("change:values", () => {
    waiting = false;
    draw();
    el.dispatchEvent(new CustomEvent("explorer:drawn", { bubbles: true }));
    if (late) { late = false; changed(); }
  });
  model.on("change:params", () => {
    const now = model.get("params");
    if (JSON.stringify(now) !== JSON.stringify(params) && !waiting) {
      Object.assign(params, now);
      sent = JSON.stringify(params);
      for (const refresh of controls.values()) refresh();
    }
  });
  for (const refresh of controls.values()) refresh();
  draw();
  let width = 0;
  const watch = new ResizeObserver(() => { // a drawing keeps the size of its type
    const now = figure.clientWidth;
    if (now && Math.abs(now - width) > 1) {
      width = now;
      for (const panel of panels) panel.room = panel.box.clientWidth;
      draw();
    }
  });
  watch.observe(figure);
  return () => { watch.disconnect(); clearTimeout(saying); clearTimeout(writing); };
};
