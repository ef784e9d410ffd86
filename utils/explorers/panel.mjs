// A panel: SVG with real text; axes, curves, and a cursor that reads them.
import { along, ticksOf } from "./axes.mjs";
import { show } from "./maths.mjs";

export const SVG = "http://www.w3.org/2000/svg";
export const node = (name, attributes = {}, parent = null) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
};
const fixed = (x) => Math.round(x * 100) / 100;

// Bring the children of a group to a list of [name, attributes, text], touching only what differs
// from the last list: to draw everything anew costs a browser twice as much.
const patch = (parent, wanted) => {
  const kept = (parent.kept ??= []);
  wanted.forEach(([name, attributes, text = ""], i) => {
    let old = kept[i];
    if (old?.name !== name) {
      const made = node(name);
      if (old) old.made.replaceWith(made); else parent.append(made);
      old = kept[i] = { name, made, attributes: {}, text: "" };
    }
    amend(old.made, attributes, old.attributes);
    for (const key in old.attributes) if (attributes[key] === undefined) old.made.removeAttribute(key);
    if (old.text !== text) old.made.textContent = text;
    old.attributes = attributes;
    old.text = text;
  });
  for (const { made } of kept.splice(wanted.length)) made.remove();
};
const amend = (made, attributes, known) => {
  for (const key in attributes) {
    const value = attributes[key];
    if (value !== undefined && value !== known[key]) made.setAttribute(key, value);
    known[key] = value;
  }
};

export class Panel {
  constructor(parent, options) {
    this.options = { height: 250, ...options };
    this.margin = { left: 48, right: 12, top: 40, bottom: 42, ...options.margin };
    this.box = document.createElement("div");
    this.box.className = "explorer-panel";
    parent.append(this.box);
    this.svg = node("svg", { role: "group", "aria-label": options.title }, this.box);
    this.frame = node("rect", {}, node("clipPath", { id: this.clip }, this.svg));
    this.back = ["axes", "keys", "marks"].map(() => node("g", { "aria-hidden": "true" }, this.svg));
    this.front = node("g", { class: "cursor", "aria-hidden": "true" }, this.svg);
    this.hit = node("rect", {
      class: "hit", tabindex: 0, role: "slider", "aria-label": `read the figure: ${options.title}`,
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0, "aria-valuetext": "not reading",
    }, this.svg);
    this.cursor = null;
    this.known = { svg: {}, frame: {}, hit: {} }; // attributes that stand
    this.hit.addEventListener("pointermove", (e) => this.point(e));
    this.hit.addEventListener("pointerdown", (e) => this.point(e));
    this.hit.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") this.read(null); });
    this.hit.addEventListener("blur", () => this.read(null));
    this.hit.addEventListener("keydown", (e) => this.key(e));
  }

  get width() {
    this.room ??= this.box.clientWidth; // asked for once, and after a change: asking costs a layout
    return Math.max(240, this.room || 320);
  }

  get shape() { // of the plot, width to height
    const { left, right, top, bottom } = this.margin;
    return (this.width - left - right) / (this.options.height - top - bottom);
  }

  // Start a drawing: the axes, and nothing on them.
  begin({ x, y, note = "" }) {
    const { height } = this.options, { left, right, top, bottom } = this.margin, { width } = this;
    Object.assign(this, { x, y, height, marks: [], series: [], legend: [] });
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

  inverse(px, axis = this.x, from = this.plot.left, to = this.plot.right) {
    const { domain: [low, high], log } = axis, share = (px - from) / (to - from);
    return log ? low * (high / low) ** share : low + (high - low) * share;
  }

  // Tell where in the units of the axes a finger or the mouse drags.
  drag(told) {
    const tell = (event) => {
      const box = this.svg.getBoundingClientRect(), { top, bottom } = this.plot;
      told(this.inverse(event.clientX - box.left), this.inverse(event.clientY - box.top, this.y, bottom, top));
    };
    this.hit.classList.add("drag");
    this.hit.addEventListener("pointerdown", (event) => { this.hit.setPointerCapture(event.pointerId); tell(event); });
    this.hit.addEventListener("pointermove", (event) => { if (event.buttons) tell(event); });
  }

  // A curve; `name` is what the legend and the reader call it.
  line(name, xs, ys, color, { dash = false, legend = true, read = true, digits = 3, width = 2 } = {}) {
    let d = "", pen = "M";
    xs.forEach((x, i) => {
      if (ys[i] === null || !Number.isFinite(ys[i])) { pen = "M"; return; }
      d += `${pen}${fixed(this.sx(x))},${fixed(this.sy(ys[i]))}`;
      pen = "L";
    });
    this.marks.push(["path", { class: `line c-${color}`, "data-curve": name, "clip-path": `url(#${this.clip})`, "stroke-width": width, "stroke-dasharray": dash === true ? "5 4" : dash || undefined, d }]);
    if (read) this.series.push({ name, xs, ys, color, digits });
    if (legend) this.legend.push({ name, color, dash });
    return this;
  }

  dot(x, y, color, { r = 4.5, name = "" } = {}) {
    if (x === null || y === null || !Number.isFinite(x) || !Number.isFinite(y)) return this;
    this.marks.push(["circle", { class: `dot c-${color}`, "data-dot": name, cx: fixed(this.sx(x)), cy: fixed(this.sy(y)), r }]);
    return this;
  }

  stems(name, xs, ys, color, { width = 1.5, legend = true, head = 0 } = {}) {
    const zero = fixed(this.sy(Math.max(0, this.y.domain[0])));
    const d = xs.map((x, i) => `M${fixed(this.sx(x))},${zero}V${fixed(this.sy(ys[i]))}`).join("");
    this.marks.push(["path", { class: `line c-${color}`, "data-curve": name, "stroke-width": width, d }]);
    if (head) xs.forEach((x, i) => this.dot(x, ys[i], color, { r: head }));
    if (legend) this.legend.push({ name, color });
    return this;
  }

  area(points, color, { opacity = 0.16, name = "" } = {}) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${fixed(this.sx(x))},${fixed(this.sy(y))}`).join("");
    this.marks.push(["path", { class: `area c-${color}`, "data-area": name, "clip-path": `url(#${this.clip})`, "fill-opacity": opacity, d: `${d}Z` }]);
    return this;
  }

  mark(x, label, color = "ink", { top = 12, anchor = null } = {}) { // an upright line with its name
    const px = fixed(this.sx(x)), { left, right, top: up, bottom } = this.plot;
    if (!(px >= left - 0.5 && px <= right + 0.5)) return this;
    const side = anchor ?? (px > (left + right) / 2 ? "end" : "start");
    this.marks.push(["path", { class: `thin c-${color}`, d: `M${px},${up}V${bottom}` }]);
    this.marks.push(["text", { class: `c-${color}`, x: px + (side === "end" ? -4 : 4), y: up + top, "text-anchor": side }, label]);
    return this;
  }

  text(x, y, label, { anchor = "middle", color = "ink", dx = 0, dy = 0 } = {}) {
    this.marks.push(["text", { class: `c-${color}`, x: fixed(this.sx(x)) + dx, y: fixed(this.sy(y)) + dy, "text-anchor": anchor }, label]);
    return this;
  }

  arrow([x0, y0], [x1, y1], color, label) { // its name stands beyond its tip
    const a = [this.sx(x0), this.sy(y0)], b = [this.sx(x1), this.sy(y1)];
    const angle = Math.atan2(b[1] - a[1], b[0] - a[0]), length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const head = Math.min(9, length / 2), wing = (turn) =>
      `${fixed(b[0] - head * Math.cos(angle + turn))},${fixed(b[1] - head * Math.sin(angle + turn))}`;
    this.marks.push(["path", { class: `line c-${color}`, "data-arrow": label, "stroke-width": 2.2, d: `M${a.map(fixed)}L${b.map(fixed)}M${wing(0.42)}L${b.map(fixed)}L${wing(-0.42)}` }]);
    const aside = Math.cos(angle), upright = Math.abs(aside) < 0.05; // along the axis: beside it
    const anchor = aside > 0.4 || upright ? "start" : aside < -0.4 ? "end" : "middle";
    this.marks.push(["text", { class: `c-${color}`, x: fixed(b[0] + (upright ? 7 : 8 * aside)), y: fixed(b[1] + (upright ? 0 : 12) * Math.sin(angle) + 4), "text-anchor": anchor }, label]);
    this.legend.push({ name: label, color });
    return this;
  }

  get clip() {
    return `clip-${(this.id ??= Math.random().toString(36).slice(2, 9))}`;
  }

  end() {
    const { left, right, top, bottom } = this.plot, { x, y, known } = this, out = [];
    for (const t of ticksOf(y, Math.max(2, Math.floor((bottom - top) / 38)))) {
      const py = fixed(this.sy(t));
      out.push(["path", { class: "grid", d: `M${left},${py}H${right}` }]);
      out.push(["text", { x: left - 6, y: py + 4, "text-anchor": "end" }, (y.format ?? show)(t)]);
    }
    for (const t of ticksOf(x, Math.max(2, Math.floor((right - left) / 62)))) {
      const px = fixed(this.sx(t));
      out.push(["path", { class: "grid", d: `M${px},${top}V${bottom}` }]);
      out.push(["text", { x: px, y: bottom + 16, "text-anchor": "middle" }, (x.format ?? show)(t)]);
    }
    out.push(["path", { class: "axis", d: `M${left},${top}V${bottom}H${right}` }]);
    out.push(["text", { class: "label", x: (left + right) / 2, y: bottom + 35, "text-anchor": "middle" }, x.label]);
    out.push(["text", { class: "label", x: left - 40, y: 14 }, y.label]);
    let at = left - 40, down = 26;
    const keys = [];
    for (const { name, color, dash } of this.legend) {
      const wide = 30 + 7.2 * name.length;
      if (at + wide - 8 > this.width && at > left) [at, down] = [left - 40, down + 15];
      keys.push(["path", { class: `line c-${color}`, "stroke-width": 3, "stroke-dasharray": dash === true ? "4 3" : dash || undefined, d: `M${at},${down}h14` }]);
      keys.push(["text", { class: `c-${color}`, x: at + 18, y: down + 4 }, name]);
      at += wide;
    }
    [out, keys, this.marks].forEach((list, i) => patch(this.back[i], list));
    const { width, height } = this;
    amend(this.svg, {
      width, height, viewBox: `0 0 ${width} ${height}`,
      "data-x": JSON.stringify([...x.domain, x.log ? 1 : 0, left, right]),
      "data-y": JSON.stringify([...y.domain, y.log ? 1 : 0, bottom, top]),
    }, known.svg);
    amend(this.frame, { x: left, y: top - 3, width: right - left, height: bottom - top + 6 }, known.frame);
    const readable = this.series.length > 0 || this.reader;
    amend(this.hit, { x: left, y: top, width: right - left, height: bottom - top, tabindex: readable ? 0 : -1 }, known.hit);
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
      patch(this.front, []);
      amend(this.hit, { "aria-valuetext": "not reading" }, this.known.hit);
      return;
    }
    const { left, right, top, bottom } = this.plot;
    let x = this.inverse(left + Math.min(1, Math.max(0, share)) * (right - left));
    let lines = [];
    const dots = [];
    if (this.reader) [x, lines] = this.reader(x);
    else {
      lines.push(`${this.x.short ?? this.x.label} = ${(this.x.format ?? show)(x)}`);
      for (const { name, xs, ys, color, digits } of this.series) {
        const value = along(xs, ys, x, this.x.log, this.y.log);
        if (value === null) continue;
        lines.push(`${name}: ${(this.y.precise ?? ((v) => show(v, digits)))(value)}`);
        if (value >= Math.min(...this.y.domain) && value <= Math.max(...this.y.domain)) dots.push(["circle", { class: `dot c-${color}`, cx: fixed(this.sx(x)), cy: fixed(this.sy(value)), r: 3.5 }]);
      }
    }
    const px = fixed(this.sx(x)), wide = Math.max(...lines.map((l) => l.length)) * 6.7 + 14;
    const bx = px + 10 + wide < right ? px + 10 : Math.max(2, px - 10 - wide), tall = lines.length * 16 + 8;
    patch(this.front, [
      ["path", { class: "thin c-ink", d: `M${px},${top}V${bottom}` }], ...dots,
      ["rect", { class: "tip", x: bx, y: top + 2, width: wide, height: tall, rx: 3 }],
      ...lines.map((l, i) => ["text", { x: bx + 7, y: top + 18 + 16 * i }, l]),
    ]);
    amend(this.hit, { "aria-valuenow": Math.round(100 * share), "aria-valuetext": lines.join("; ") }, this.known.hit);
  }
}
