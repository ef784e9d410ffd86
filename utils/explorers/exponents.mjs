// Chapter 3: powers of L over the height, and the error's over the strength; errors at a million tokens.
import { explorer } from "./frame.mjs";
import { linspace } from "./maths.mjs";
import { index, tables } from "./tables.mjs";
import { orNull, show } from "./maths.mjs";

const LENGTH = 1e6, RULES = ["softmax", "largest", "bayes"];
const NEEDLES = [[1, 1], [2, 1], [10, 1], [0, 0.75], [0, 0.6]];
const GAMMA = [0, 0.25, 0.5, 0.75, 1], TAU = [0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8], THETA = linspace(0.5, 2, 7);
const HEIGHTS = linspace(0, 2, 101), FINE = linspace(0, 2, 102), LOW = HEIGHTS.slice(0, 51);

export const prepare = tables;

const bulk = (tau) => (tau < 0.5 ? tau + 1 / (4 * tau) : 0); // one token equals the spread of all straws
const reach = (tau, beta) => { // of L^(1−β) needles together beyond one of them
  const top = Math.sqrt(1 - beta);
  return beta === 1 ? 0 : tau < top ? (1 - beta) / (2 * tau) + tau / 2 : top;
};

export const boundary = (rule, [R, beta], gamma, tau) => {
  const wall = Math.sqrt(1 + gamma);
  if (rule === "softmax") return Math.max(0, Math.max(bulk(tau), wall) - reach(tau, beta));
  if (rule === "largest") return Math.max(0, wall - reach(Infinity, beta));
  if (beta === 1) return Math.sqrt(1 + gamma / R);
  return beta <= 0.75 ? Math.sqrt(beta - 0.5) : 1 - Math.sqrt(1 - beta);
};

export const exponent = (rule, theta, [R, beta], gamma, tau) => {
  if (theta <= boundary(rule, [R, beta], gamma, tau)) return 0;
  if (rule === "bayes") return beta === 1 ? R * ((theta * theta - 1 - gamma / R) / (2 * theta)) ** 2 : null;
  const soft = rule === "softmax", price = 1 + gamma;
  if (beta < 1) return (theta + reach(soft ? tau : Infinity, beta)) ** 2 - price;
  const height = (R * theta * theta + price) / (R * theta + Math.sqrt(R * theta * theta - (R - 1) * price));
  return R * (theta - Math.max(height, soft ? bulk(tau) : 0)) ** 2;
};

export const compute = ({ needles, gamma, tau, theta }, { softmax, excess, largest }) => {
  const crowd = NEEDLES[needles], rare = Math.round(index(GAMMA, gamma)), sharp = Math.round(index(TAU, tau));
  const summits = [Math.min(tau, 1), Math.min(2 * tau, 1)];
  const each = (of) => Object.fromEntries(RULES.map((rule) => [rule, of(rule)]));
  const rate = { softmax: softmax(needles, rare, sharp), excess: excess(needles, rare), largest: largest(needles, rare) };
  const here = THETA.findIndex((x) => Math.abs(x - theta) < 1e-9), pi = gamma ? LENGTH ** -gamma : 0.5;
  return {
    weight: LOW.map((u) => 1 - u * u + 2 * tau * u), spread: LOW.map((u) => (1 - u * u) / 2 + 2 * tau * u),
    needles: HEIGHTS.map((u) => { const alive = 1 - crowd[1] - (u - theta) ** 2; return alive >= 0 ? alive + 2 * tau * u : null; }),
    summits, levels: [1 - summits[0] ** 2 + 2 * tau * summits[0], (1 - summits[1] ** 2) / 2 + 2 * tau * summits[1]],
    wall: Math.sqrt(1 + gamma),
    edge: each((rule) => boundary(rule, crowd, gamma, tau)),
    exponent: each((rule) => FINE.map((x) => exponent(rule, x, crowd, gamma, tau))),
    here: each((rule) => exponent(rule, theta, crowd, gamma, tau)),
    rate, risk: Object.fromEntries(Object.entries(rate).map(([rule, rates]) => [rule, pi * LENGTH ** -rates[here]])),
    how: "Exponents: exact, computed in your browser. Errors at a million tokens: computed beforehand, to a few per cent.",
  };
};

export const render = explorer({
  panels: [{ title: "powers of L against the height", height: 300, margin: { top: 54 } }, { title: "exponent of the error against the strength", height: 300, margin: { top: 54 } }],
  draw: ([hills, errors], values, { tau, theta }) => {
    const { summits, levels, edge, here, rate } = values, line = HEIGHTS.map((u) => 2 * tau * u);
    hills.begin({ x: { label: "height u, in units of √(2 log L)", short: "u", domain: [0, 2] }, y: { label: "power of L", domain: [0, 1.15 * Math.max(...levels, 2 * tau * Math.min(theta, 2), 1.2)] } });
    hills.mark(1, "wall", "muted", { top: 175, anchor: "end" });
    if (values.wall > 1.01) hills.mark(values.wall, "wall, once in 1/π bags", "muted", { top: 190 });
    hills.line("straws' weight", LOW, values.weight, "noise");
    hills.line("its spread", LOW, values.spread, "noise", { dash: true });
    hills.line("one token", HEIGHTS, line, "attention", { width: 1.2 });
    hills.line("the needles", HEIGHTS, values.needles, "attention", { width: 3, legend: false });
    levels.forEach((level, k) => hills.line("", [summits[k], level / (2 * tau)], [level, level], "ink", { dash: true, width: 1, legend: false, read: false }));
    hills.dot(levels[0] / (2 * tau), levels[0], "noise", { name: "weight" });
    hills.dot(levels[1] / (2 * tau), levels[1], "ink", { name: "error" });
    hills.dot(theta, 2 * tau * theta, "attention", { r: 6, name: "needle" });
    hills.end();
    const top = 1.25 * Math.max(0.12, here.bayes ?? 0, here.softmax, here.largest, rate.softmax[THETA.findIndex((x) => x >= theta - 1e-9)]);
    errors.begin({ x: { label: "strength θ̂ of a needle", short: "θ̂", domain: [0, 2.02] }, y: { label: "e, error L to the −e", domain: [0, top] } });
    errors.mark(theta, "θ̂");
    if (here.bayes === null) errors.mark(edge.bayes, "Bayes: from here faster than any power", "bayes", { top: 190, anchor: "start" });
    errors.line("Bayes, excess rule", FINE, values.exponent.bayes, "bayes");
    errors.line("largest token", FINE, values.exponent.largest, "elementwise", { dash: true });
    errors.line("softmax", FINE, values.exponent.softmax, "attention");
    THETA.forEach((x, k) => {
      if (rate.excess[k] <= top) errors.dot(x, rate.excess[k], "bayes", { r: 3, name: "excess" });
      if (rate.softmax[k] <= top) errors.dot(x, rate.softmax[k], "attention", { r: 3.5, name: "softmax" });
    });
    errors.end();
  },
  numbers: ({ edge, risk }) => [
    ["found from θ̂, softmax", show(edge.softmax), "attention"], ["Bayes and excess rule", show(edge.bayes), "bayes"],
    ["error at a million tokens, softmax", show(risk.softmax), "attention"], ["largest token", show(risk.largest), "elementwise"], ["excess rule", show(risk.excess), "bayes"],
  ],
  sentence: ({ edge, here, risk, levels }, { tau, theta }) => {
    const wins = theta > levels[0] / (2 * tau) ? "outweighs all straws" : theta > edge.softmax ? "moves the average by more than straws do, though it holds next to no weight" : "is lost on this softmax";
    const power = (e) => (e === null ? "faster than any power of L" : e === 0 ? "not at all" : `like L to the −${show(e)}`);
    return `A needle of strength ${show(theta)} ${wins}. As L grows the softmax's error falls ${power(here.softmax)}, the best rule's ${power(here.bayes)}. At a million tokens the softmax errs with probability ${show(risk.softmax)}, the excess rule with ${show(risk.excess)} (dots: the exponents there).`;
  },
});
