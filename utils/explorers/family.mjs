// Figures whose curves a cell has computed at every stop of its sliders: see family.py.
import { explorer } from "./frame.mjs";
import { percent, show } from "./maths.mjs";

// What is drawn at these stops: the row of the tables that belongs to them.
export const compute = (params, { x, rows, said, sliders }) => {
  const at = sliders.reduce((row, { name, stops }) => row * stops.length + stops.indexOf(params[name]), 0);
  const curves = rows[at].map((curve) => ({ x: curve.x ?? x, ...curve }));
  return { curves, said: said?.[at] ?? null, how: "Computed by this cell at every stop." };
};

const told = (spec, { curves, said }, params, written) => {
  if (said) return said;
  const place = spec.sliders.map(({ name, symbol }) => `${symbol.replace("_", "")} = ${show(params[name])}`).join(", ");
  const parts = curves.map(({ x, y, at }, k) => {
    const { name } = spec.curves[k];
    if (!y) return `${name} at ${show(at)}`;
    const known = y.map((_, i) => i).filter((i) => y[i] !== null);
    return known.length ? `${name} from ${written(y[known[0]])} to ${written(y[known.at(-1)])}` : `${name}: nothing`;
  });
  return `At ${place}: ${parts.join("; ")}.`;
};

const define = (spec) => {
  const { x, y } = spec.axes, written = /\berrors?\b/.test(y.label) ? (v) => percent(v) : (v) => show(v);
  return {
    panels: [{ title: `${y.label} against ${x.label}`, height: 300, margin: { top: 54 } }],
    draw: ([panel], { curves }) => {
      panel.begin({ x: { ...x, short: x.label }, y: { ...y, precise: written } });
      curves.forEach(({ x: xs, y: ys, at }, k) => {
        const { name, color, dash, dots } = spec.curves[k];
        if (!ys) { if (at !== null) panel.mark(at, name, color); return; }
        if (dots) {
          xs.forEach((v, i) => ys[i] !== null && panel.dot(v, ys[i], color, { name }));
          panel.legend.push({ name: `• ${name}`, color, dash: "0 20" });
        } else panel.line(name, xs, ys, color, { dash: dash ?? false });
      });
      panel.end();
    },
    sentence: (values, params) => told(spec, values, params, written),
  };
};

export const render = (context) => explorer(define(context.model.get("spec")))(context);
