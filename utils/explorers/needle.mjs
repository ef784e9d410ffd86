// Chapter 1: one positive sample, seen along ξ and through the softmax of a query.
import { explorer } from "./frame.mjs";
import { ndtri, range, uniform } from "./maths.mjs";
import { percent, show } from "./maths.mjs";

const PLACES = 1 << 20; // streams: noise along ξ, noise across, places of the needles

let kept = { draw: null, along: [], across: [], key: [] }; // the noise of a draw, as far as it was asked for
const noise = (draw, L) => {
  if (kept.draw !== draw) kept = { draw, along: [], across: [], key: [] };
  for (let l = kept.key.length; l < L; l += 1) {
    kept.along.push(ndtri(uniform(draw, 2 * l)));
    kept.across.push(ndtri(uniform(draw, 2 * l + 1)));
    kept.key.push(uniform(draw, PLACES + l));
  }
  return kept;
};

export const compute = ({ theta, L, R, cos, T, draw }) => {
  const { along, across, key } = noise(draw, L);
  const needles = range(L).sort((a, b) => key[a] - key[b]).slice(0, R).sort((a, b) => a - b);
  const height = along.slice(0, L);
  for (const l of needles) height[l] += theta;
  const sine = Math.sqrt(1 - cos * cos);
  const score = height.map((h, l) => T * (cos * h + sine * across[l]));
  const top = Math.max(...score), raw = score.map((s) => Math.exp(s - top));
  const total = raw.reduce((a, b) => a + b, 0), weight = raw.map((w) => w / total);
  const share = needles.reduce((sum, l) => sum + weight[l], 0);
  const length = Math.sqrt(weight.reduce((sum, w) => sum + w * w, 0));
  return {
    height, weight, needles, share,
    pooled: (theta * R) / Math.sqrt(L), attended: (theta * share) / length,
    how: "Exact, computed in your browser.",
  };
};

const only = (list, keep) => list.filter((_, l) => keep(l));

const sentence = ({ share, pooled, attended }, { L, R }) =>
  `${R === 1 ? "The needle takes" : `The ${R} needles take`} ${percent(share)} of the weight where equal weights give `
  + `${percent(R / L)}; the signal-to-noise ratio is ${show(attended, 3)} under attention and ${show(pooled, 3)} under plain averaging.`;

const two = (panel, values, L, list, x, y) => {
  const needle = new Set(values.needles), at = range(L).map((l) => l + 1);
  const width = Math.max(0.6, Math.min(3, 200 / L));
  panel.begin({ x, y });
  panel.stems("straws", only(at, (l) => !needle.has(l)), only(list, (l) => !needle.has(l)), "noise", { width });
  panel.stems(values.needles.length > 1 ? "needles" : "needle", values.needles.map((l) => l + 1), values.needles.map((l) => list[l]), "attention", { width: 2.4, head: 3 });
  panel.reader = (place) => {
    const l = Math.min(L, Math.max(1, Math.round(place)));
    return [l, [`token ${l}${needle.has(l - 1) ? ", a needle" : ""}`, `projection: ${show(values.height[l - 1])}`, `weight: ${show(values.weight[l - 1])}`]];
  };
  panel.end();
};

export const render = explorer({
  panels: [{ title: "projections of the tokens", height: 210 }, { title: "softmax weights", height: 210 }],
  draw: ([above, below], values, { L, theta }) => {
    const x = { label: "token", domain: [0, L + 1] };
    const low = 1.04 * Math.min(-3, ...values.height), high = 1.04 * Math.max(3, theta + 1, ...values.height);
    two(above, values, L, values.height, x, { label: "projection on ξ", domain: [low, high] });
    two(below, values, L, values.weight, x, { label: "softmax weight", domain: [0, Math.max(...values.weight) * 1.05] });
  },
  numbers: ({ pooled, attended, share }, { L, R }) => [
    ["averaging", `δ = ${show(pooled)}`, "pooled"],
    ["attention, this sample", `θa/r = ${show(attended)}`, "attention"],
    ["weight on the needles", `${percent(share)} (equal: ${percent(R / L)})`, "ink"],
  ],
  sentence,
});
