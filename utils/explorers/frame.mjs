// The frame around the panels: sliders, a spoken sentence, reset, download. A module exports
// `compute`, which gives in a browser what its Python function gives with a kernel, and `render`,
// made by `explorer`.
import { node, Panel, SVG } from "./panel.mjs";
import { show } from "./maths.mjs";

const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const write = (made, text) => { // words that stand already are not set again
  if (made.textContent !== text) made.textContent = text;
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

const nearest = (stops, value, size = (x) => x) => {
  const far = stops.map((stop) => Math.abs(size(stop) - size(value)));
  return far.indexOf(Math.min(...far));
};

// definition: panels [{title, drag: [slider of x, slider of y], …}], draw(panels, values, params), sentence(values, params),
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
      const at = nearest(slider.stops, params[slider.name]), text = label(slider, params[slider.name]);
      if (+input.value !== at) input.value = at;
      if (value.textContent === text) return;
      value.textContent = text;
      input.setAttribute("aria-valuetext", `${text}, ${slider.label}`);
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

  let sent = JSON.stringify(params), waiting = false, late = false, saying = null, patience = null;
  const changed = () => {
    for (const refresh of controls.values()) refresh();
    state.frame = null;
    if (waiting) { late = true; return; }
    if (JSON.stringify(params) === sent) return draw();
    sent = JSON.stringify(params);
    waiting = true;
    model.set("params", { ...params });
    model.save_changes();
    if (waiting) patience = setTimeout(() => busy(true), 300);
  };
  const busy = (now) => { // a kernel may take seconds
    root.setAttribute("aria-busy", now);
    if (now) status.textContent = "Computing …";
  };
  const draw = () => {
    const values = model.get("values");
    if (!values || !values.of) return;
    if (values.error) { status.textContent = values.error; root.classList.add("failed"); return; }
    root.classList.remove("failed");
    definition.draw(panels, values, values.of, state);
    const rows = definition.numbers?.(values, values.of) ?? [];
    numbers.hidden = !rows.length;
    while (numbers.children.length > rows.length) numbers.lastChild.remove();
    rows.forEach(([name, text, color], i) => {
      const row = numbers.children[i] ?? numbers.appendChild(make("div", {}, make("dt"), make("dd"))), look = `c-${color ?? "ink"}`;
      if (row.firstChild.className !== look) row.firstChild.className = look;
      write(row.firstChild, name);
      write(row.lastChild, text);
    });
    const sentence = definition.sentence(values, values.of, state);
    write(spoken, sentence);
    write(status, values.how);
    clearTimeout(saying);
    saying = setTimeout(() => { live.textContent = sentence; }, 600);
  };
  model.on("change:values", () => {
    waiting = false;
    clearTimeout(patience);
    busy(false);
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
  panels.forEach((panel, i) => { // sliders that a panel has on its axes follow a finger on it
    const { drag } = definition.panels[i];
    if (drag) panel.drag((...at) => {
      drag.forEach((name, k) => {
        const { stops } = spec.sliders.find((slider) => slider.name === name), { log } = k ? panel.y : panel.x;
        params[name] = stops[nearest(stops, at[k], log ? (v) => Math.log(Math.max(v, 1e-300)) : undefined)];
      });
      changed();
    });
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
  return () => { watch.disconnect(); clearTimeout(saying); clearTimeout(patience); };
};
