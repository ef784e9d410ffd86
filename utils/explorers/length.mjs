// Chapter 7: strengths that four models need against the length, and how high a learned query lifts a needle.
import { explorer } from "./frame.mjs";
import { geomspace, ndtri } from "./maths.mjs";
import { show } from "./maths.mjs";

const LENGTHS = geomspace(10, 1e9, 33), STRENGTHS = geomspace(1, 1000, 61);
const wallOf = (L) => Math.sqrt(2 * Math.log(L));

export const cosine = (L, R, theta, alpha0) => {
  const x = (4 * L) / (alpha0 * theta ** 3 * R ** 2);
  return 1 / Math.sqrt(1 + x * x + x / theta);
};

export const compute = ({ L, theta, alpha0, R }) => {
  const crowd = (n) => (4 * n) / (alpha0 * R ** 2), cos = cosine(L, R, theta, alpha0);
  return {
    average: LENGTHS.map((n) => (-2 * ndtri(0.05) * Math.sqrt(n)) / R),
    one: LENGTHS.map((n) => (crowd(n) * wallOf(n) ** 2) ** 0.25), two: LENGTHS.map((n) => (crowd(n) * wallOf(n)) ** 0.25),
    given: LENGTHS.map(wallOf), height: STRENGTHS.map((t) => t * cosine(L, R, t, alpha0)),
    cos, here: theta * cos, wall: wallOf(L), needed: (crowd(L) * wallOf(L)) ** 0.25,
    how: "Exact: the formulas of this chapter, leading orders in L.",
  };
};

export const render = explorer({
  panels: [{ title: "strength needed against the length", height: 285, margin: { top: 54 } }, { title: "height of the needle against its strength", height: 285, margin: { top: 54 } }],
  draw: ([needed, heights], values, { L, theta }) => {
    needed.begin({ x: { label: "tokens L", short: "L", domain: [10, 1e9], log: true }, y: { label: "strength θ", domain: [1, 1e5], log: true } });
    needed.line("averaging", LENGTHS, values.average, "pooled");
    needed.line("query after one step", LENGTHS, values.one, "attention", { dash: true, width: 1.5 });
    needed.line("after two", LENGTHS, values.two, "attention");
    needed.line("query given", LENGTHS, values.given, "bayes", { dash: true });
    needed.dot(L, theta, "ink", { r: 6, name: "here" });
    needed.end();
    const top = 2.5 * values.wall;
    heights.begin({ x: { label: "strength θ", short: "θ", domain: [1, 1000], log: true }, y: { label: "height θ·s after two steps", domain: [0, top] } });
    heights.line("needle", STRENGTHS, values.height, "attention");
    heights.line("tallest straw", [1, 1000], [values.wall, values.wall], "noise", { dash: true });
    heights.mark(theta, "θ", "ink", { top: 30, anchor: "start" });
    if (values.here < top) heights.dot(theta, values.here, "ink", { r: 6, name: "here" });
    heights.end();
  },
  numbers: ({ cos, here, wall, needed }) => [["cosine of the query", show(cos), "attention"], ["height of the needle", show(here), "attention"], ["tallest straw", show(wall), "noise"], ["strength needed, two steps", show(needed), "attention"]],
  sentence: ({ cos, here, wall }, { L, theta, alpha0 }) => `Among ${show(L)} tokens two steps on ${show(alpha0)} samples per dimension give the query a cosine of ${show(cos)}. A needle of strength ${show(theta)} then stands at ${show(here)}, ${here > wall ? "above" : "below"} the tallest straw at ${show(wall)}: the head ${here > wall ? "finds" : "misses"} it.`,
});
