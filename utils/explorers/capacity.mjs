// Chapter 6: how many samples the readout can separate, from tables at the sliders' stops.
import { along } from "./axes.mjs";
import { explorer } from "./frame.mjs";
import { index, tables } from "./tables.mjs";
import { orNull, show } from "./maths.mjs";

const COSINES = [...Array(9).keys()].map((k) => k / 8);
const SHARPNESSES = [0.5, 1, 2, 3, 5], STRENGTHS = [2, 3, 4, 5, 6], SHARES = [0.1, 0.3, 0.5];

export const prepare = tables;

export const compute = ({ theta, cos, T, pi }, { attention, pooled, taught, cosine }) => {
  const strength = Math.round(index(STRENGTHS, theta)), share = Math.round(index(SHARES, pi));
  const sharp = Math.round(index(SHARPNESSES, T)), turn = Math.round(8 * cos);
  const value = (t, c) => orNull(Math.exp(attention(strength, t, c, share)));
  const plain = Math.exp(pooled(strength, share));
  return {
    by_cosine: COSINES.map((_, c) => value(sharp, c)), by_sharpness: SHARPNESSES.map((_, t) => value(t, turn)),
    pooled: plain, vectorized: 10 * plain,
    taught: taught(strength, share).map(Math.exp), taught_cosine: cosine(strength, share, sharp),
    how: "Computed beforehand at these settings, right to 0.1 %; straight lines in between, nine of ten to 2 %, all to 11 %.",
  };
};

// Attention's capacity between the stops, as it is drawn.
export const read = ({ by_cosine, by_sharpness }, cos, T) => ({
  by_cosine: along(COSINES, by_cosine, cos, false, true), by_sharpness: along(SHARPNESSES, by_sharpness, T, true, true),
});

// Behind the query that the very samples have taught, in two steps (Chapter 8).
const own = ({ taught }, { T }) => taught[SHARPNESSES.indexOf(T)];

const here = (values, { cos }) => values.by_cosine[Math.round(8 * cos)];

export const render = explorer({
  panels: [{ title: "capacity against the cosine of the query", height: 285, margin: { top: 54 } }, { title: "capacity against sharpness", height: 285, margin: { top: 54 } }],
  draw: ([turn, sharp], values, p) => {
    const all = [...values.by_cosine, ...values.by_sharpness, values.vectorized].filter((x) => x !== null);
    const y = { label: "capacity, samples per dimension", domain: [1, 10 ** Math.ceil(Math.log10(Math.max(...all) * 1.05))], log: true };
    const flat = (panel, ends) => {
      panel.line("pooled", ends, [values.pooled, values.pooled], "pooled");
      panel.line("vectorized", ends, [values.vectorized, values.vectorized], "vectorized");
    };
    turn.begin({ x: { label: "cosine of query and signal s", short: "cosine", domain: [0, 1] }, y });
    turn.line("attention", COSINES, values.by_cosine, "attention");
    flat(turn, [0, 1]);
    turn.dot(p.cos, here(values, p), "attention", { name: "here", r: 6 });
    if (values.taught_cosine >= 0) turn.dot(values.taught_cosine, own(values, p), "noise", { name: "own query", r: 6 });
    turn.end();
    sharp.begin({ x: { label: "sharpness T", short: "T", domain: [0.5, 5], log: true, ticks: [0.5, 1, 2, 3, 5] }, y });
    sharp.line("attention", SHARPNESSES, values.by_sharpness, "attention");
    flat(sharp, [0.5, 5]);
    sharp.line("own query", SHARPNESSES, values.taught, "noise", { dash: true });
    sharp.dot(p.T, here(values, p), "attention", { name: "here", r: 6 });
    sharp.end();
  },
  numbers: (values, p) => [["pooled", show(values.pooled), "pooled"], ["vectorized, ten times the weights", show(values.vectorized), "vectorized"], ["attention", here(values, p) === null ? "beyond any data" : show(here(values, p)), "attention"], [`own query, cosine ${show(values.taught_cosine)}`, show(own(values, p)), "noise"]],
  sentence: (values, p) => {
    const found = here(values, p);
    if (found === null) return "Here the query alone separates the classes: no number of samples is too many.";
    const ratio = found / values.pooled;
    return `A readout behind this query separates up to ${show(found)} samples per dimension, ${ratio >= 1 ? `${show(ratio, 2)} times as many as` : `only ${show(ratio, 2)} of what`} averaged features can${ratio >= 1 ? "" : " separate"}; the vectorized model reaches ${show(values.vectorized)} with ten times the weights. A query taught by the very samples in two steps is left at a cosine of ${show(values.taught_cosine)} and separates ${show(own(values, p))}.`;
  },
});
