// The page "Your own numbers": what `plan` says, between stored plans.
import { advise, warn } from "./advice.mjs";
import { predict } from "./alignment.mjs";
import { explorer } from "./frame.mjs";
import { geomspace, linspace, ndtr, smooth } from "./maths.mjs";
import { surface } from "./surface.mjs";
import { tables } from "./tables.mjs";
import { percent, show } from "./maths.mjs";

const TOKENS = [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000], NEEDLES = [1, 2, 3, 5, 10];
const CURVE = [-1, -0.6, -0.3, 0, 0.3, 0.6, 1], RATE_W = 0.05, LEAST = 1e-5, BEYOND = 1e6;

export const prepare = ({ surfaces, budget, how, ...channel }) => ({
  budget, how, ...tables(channel),
  ...Object.fromEntries(Object.entries(surfaces).map(([name, packed]) => [name, surface(packed)])),
});

// ---- closed forms

const calibrated = (pi) => (Math.abs(2 * pi - 1) < 1e-9 ? 4 : (4 * Math.atanh(2 * pi - 1)) / (2 * pi - 1));

// The cosine of the query at the calibrated rate: proposition 10-cosine.
export const cosine = ({ L, R, pi, theta }, alpha) => {
  const spread = (R * (L - R)) / L, inverse = 1 + L / (alpha * (pi * theta * R) ** 2);
  const noise = (L - 1) * inverse + theta * theta * spread * (1 - pi);
  return 1 / Math.sqrt(1 + noise / (alpha * pi * (1 - pi) * theta ** 4 * spread ** 2));
};

const falling = (f, low, high, count = 44) => { // where a rising function is zero
  for (let k = 0; k < count; k += 1) {
    const middle = (low + high) / 2;
    if (f(middle) < 0) low = middle; else high = middle;
  }
  return (low + high) / 2;
};

const edge = (p, alpha) => {
  const goal = Math.log(2 * Math.log(p.L)) / 2;
  return Math.exp(falling((t) => t + Math.log(cosine({ ...p, theta: Math.exp(t) }, alpha)) - goal, -6, 12));
};
const placed = (height, w) => height * Math.exp(0.35 * w + 0.5 * w ** 3);
const placeOf = (height, theta) => {
  const u = Math.log(theta / height);
  return falling((w) => 0.35 * w + 0.5 * w ** 3 - u, -4, 4);
};

const least = (f, low, high) => { // of a convex function, by golden sections
  const g = (Math.sqrt(5) - 1) / 2;
  let a = low, b = high, c = b - g * (b - a), d = a + g * (b - a), fc = f(c), fd = f(d);
  for (let k = 0; k < 30; k += 1) {
    if (fc < fd) [b, d, fd, c] = [d, c, fc, d - g * (d - a)], fc = f(c);
    else [a, c, fc, d] = [c, d, fd, c + g * (b - c)], fd = f(d);
  }
  return Math.min(fc, fd);
};

// Samples per dimension that averages separate: Chapter 6 for two Gaussians at distance δ.
export const averaged = ({ L, R, theta, pi }) => {
  const delta = (theta * R) / Math.sqrt(L);
  const short = (m, s) => { // E[(sG − m)₊²]
    const u = m / s;
    return s * s * ((1 + u * u) * ndtr(-u) - (u * Math.exp((-u * u) / 2)) / Math.sqrt(2 * Math.PI));
  };
  const loss = (along) => {
    const s = Math.sqrt(1 + along * along);
    return least((b) => pi * short(delta * along + b, s) + (1 - pi) * short(-b, s), -12 * s - delta * along, 12 * s);
  };
  const found = 1 / Math.max(least(loss, 0, 12), 1e-99);
  return found < BEYOND ? found : null;
};

// ---- the best learner, from the channel of one bag

const cubic = (row, at) => {
  const k = Math.min(Math.max(Math.floor(at) - 1, 0), row.length - 4), t = at - k - 1;
  const a = row[k], b = row[k + 1], c = row[k + 2], d = row[k + 3];
  return (-t * (t - 1) * (t - 2) * a) / 6 + ((t + 1) * (t - 1) * (t - 2) * b) / 2
    - ((t + 1) * t * (t - 2) * c) / 2 + ((t + 1) * t * (t - 1) * d) / 6;
};

const learner = ({ L, R, pi }, alpha, data) => {
  const size = TOKENS.indexOf(L), needles = NEEDLES.indexOf(R), share = Math.round(20 * pi) - 1;
  const weights = data.weight(size, needles), errors = data.bayes(size, needles, share), aucs = data.auc(size, needles);
  const top = Math.sqrt(2 * Math.log(L)), silent = Math.min(pi, 1 - pi);
  const logWeight = (r) => (r >= top + 11 ? 0 : Math.min(0, cubic(weights, (r / (top + 11)) * (weights.length - 1))));
  const read = (row, r) => cubic(row, Math.min((r / (top + 5)) * (row.length - 1), row.length - 1));
  const along = (height) => Math.min(silent, ndtr(read(errors, height))); // the best rule along a query
  const at = (theta) => {
    const gain = Math.log(alpha * pi * R * theta * theta), expit = (t) => 1 / (1 + Math.exp(-t));
    const gap = (t) => t - gain - logWeight(theta * Math.sqrt(expit(t)));
    const low = gain + Math.log(R / L) - 1e-3, places = linspace(low, gain + 1e-9, 160), found = [];
    for (let k = 0, before = gap(low); k + 1 < places.length; k += 1) {
      const after = gap(places[k + 1]);
      if (before * after < 0) found.push([places[k], places[k + 1], before]);
      before = after;
    }
    const [a, b, sign] = found[0] ?? [gain, gain, 1];
    const cos = Math.sqrt(expit(falling((t) => (sign < 0 ? gap(t) : -gap(t)), a, b, 40)));
    return {
      cos, hard: found.length > 2, auc: Math.min(1, ndtr(read(aucs, theta * cos))),
      error: along(theta * cos),
    };
  };
  return { at, along };
};

const DEEP = 9;
const lifted = (error, silent) => {
  const v = Math.log(Math.max(silent / Math.max(error, 1e-12) - 1, Math.exp(-6)));
  return v < DEEP ? v : DEEP + Math.log1p(v - DEEP);
};

// Averaging along the difference of the class means, the infinite ridge.
const plain = (delta, alpha, pi) => {
  const apart = (delta * delta) / Math.sqrt(delta * delta + 1 / (alpha * pi * (1 - pi))), odds = Math.log((1 - pi) / pi);
  return lifted(pi * ndtr(odds / apart - apart / 2) + (1 - pi) * ndtr(-odds / apart - apart / 2), pi);
};

// ---- two gradient steps and averaging, between stored plans

const learners = (p, alpha, data) => {
  const { L, R, pi } = p, silent = Math.min(pi, 1 - pi), height = edge(p, alpha);
  const best = learner(p, alpha, data), share = (v) => silent / (1 + Math.exp(v));
  // no better than the best rule along this query, nor than the best learner: surfaces do not know
  const behind = (theta, v, { error, hard }) => Math.max(hard ? 0 : error, share(lifted(best.along(theta * cosine({ ...p, theta }, alpha)), silent) + v));
  return (theta) => {
    const w = placeOf(height, theta), inside = Math.abs(w) <= 1.02;
    const known = best.at(theta), delta = (theta * R) / Math.sqrt(L);
    const [v, gain] = data.average([Math.log(Math.min(30, Math.max(0.03, delta))), Math.log(alpha), Math.log(pi / (1 - pi))]);
    const pooled = { error: share(plain(delta, alpha, pi) + v), auc: ndtr(gain) };
    if (!inside) return { inside, pooled, best: known };
    const at = [Math.log(L), Math.log(R), Math.log(pi / (1 - pi)), Math.log(alpha), w];
    const [split, twice, auc, part, T, ridge, twiceT, twiceRidge] = data.steps(at);
    const used = 1 / (1 + Math.exp(-part)), query = { ...p, theta, lr_w: RATE_W, lr_b: calibrated(pi) };
    return {
      inside, pooled, best: known,
      split: { error: behind(theta, split, known), auc: ndtr(auc), share: used, T: Math.exp(T), ridge: Math.exp(ridge), cos: Math.max(0, predict(query, used * alpha).query_cos) },
      twice: { error: behind(theta, twice, known), auc: ndtr(auc), share: 1, T: Math.exp(twiceT), ridge: Math.exp(twiceRidge), cos: Math.max(0, predict(query, alpha).query_cos) },
    };
  };
};

const smaller = ({ split, twice }) => Math.min(split.error, twice.error);

export const compute = (p, data) => {
  const { L, pi, n, d, theta } = p, alpha = n / d, silent = Math.min(pi, 1 - pi), height = edge(p, alpha);
  const strengths = CURVE.map((w) => placed(height, w));
  const known = { strengths, cosine: cosine(p, alpha), choice: null, recipe: null, warnings: [] };
  const separable = averaged(p), tabled = TOKENS.includes(p.L) && NEEDLES.includes(p.R); // nothing is read beyond the tables
  if (!tabled || alpha < data.budget[0] * 0.999 || alpha > data.budget[1] * 1.001) {
    const none = strengths.map(() => null), nobody = { pooled: null, split: null, twice: null, steps: null, best: null };
    return {
      ...known, pooled: none, steps: none, best: none, here: nobody, capacity: { pooled: separable, steps: null },
      advice: tabled ? `No plan is stored for ${show(alpha)} bags per dimension, only from ${data.budget[0]} to ${data.budget[1]}: change n or d, or ask a kernel.`
        : `No plan is stored for bags of ${show(p.L)} tokens with ${show(p.R)} needles: ask a kernel.`,
      how: "Cosine and the capacity of averages: exact, computed in your browser.",
    };
  }
  const at = learners(p, alpha, data), rows = strengths.map(at), here = at(theta), { pooled, split, twice, best } = here;
  const all = {
    ...known, pooled: rows.map((row) => row.pooled.error), steps: rows.map(smaller), best: rows.map((row) => row.best.error),
    capacity: { pooled: separable, steps: null }, // a kernel knows it
    here: { pooled: pooled.error, split: split?.error ?? null, twice: twice?.error ?? null, steps: here.inside ? smaller(here) : null, best: best.error },
    how: data.how,
  };
  const slow = here.inside ? predict({ ...p, lr_w: 0.5, lr_b: 0.5 }, split.share * alpha).query_cos : 1;
  all.warnings = warn(p, silent, split, best, slow);
  if (!here.inside) {
    const far = theta > height ? "far above" : "far below", [low, high] = [strengths[0], strengths.at(-1)];
    all.advice = `A strength of ${show(theta)} lies ${far} those of the stored plans, ${show(low)} to ${show(high)} for such bags: ${theta > height ? "two gradient steps make next to no errors there" : "two gradient steps see nothing there"}.`;
    return all;
  }
  const [choice, advice] = advise(silent, pooled, split, twice, best), used = { attention: split, twice }[choice];
  const recipe = used ? { share: used.share, sharpness: used.T, ridge: used.ridge, cosine: used.cos } : null;
  return { ...all, choice, recipe, advice };
};

// ---- the drawing

const KINDS = [["pooled", "averaging", "pooled"], ["steps", "attention, two steps", "attention"], ["best", "best possible", "bayes"]];

const bags = (capacity) => (capacity === null ? "any" : show(capacity));

// Errors between the strengths of a plan, smooth in log θ and in the logarithm of what the silent answer loses by comparison.
const between = (strengths, errors, silent, places) => {
  const lifted = errors.map((e) => Math.log(Math.max(silent / Math.max(e, LEAST / 10) - 1, 1e-4)));
  return smooth(strengths.map(Math.log), lifted, places.map(Math.log)).map((v) => silent / (1 + Math.exp(v)));
};

export const render = explorer({
  panels: [{ title: "test error against strength", height: 300, margin: { top: 54 } }, { title: "cosine of the query against the number of bags", height: 300, margin: { top: 54 } }],
  draw: ([errors, turn], values, p) => {
    const { strengths, here } = values, silent = Math.min(p.pi, 1 - p.pi), ends = [strengths[0], strengths.at(-1)];
    const domain = [Math.min(ends[0], p.theta / 1.05), Math.max(ends[1], p.theta * 1.05)];
    const places = geomspace(ends[0], ends[1], 49);
    errors.begin({ x: { label: "strength θ", short: "θ", domain, log: true }, y: { label: "test error", domain: [LEAST * 10, 1], log: true, precise: (v) => (v < 1e-4 ? "below 0.01 %" : percent(v)) } });
    errors.line("commoner answer", domain, [silent, silent], "muted", { dash: true, width: 1.2 });
    for (const [key, name, color] of KINDS) {
      if (values[key].every((e) => e !== null)) errors.line(name, places, between(strengths, values[key], silent, places), color);
      errors.dot(p.theta, here[key] === null ? null : Math.max(here[key], LEAST * 10), color, { name });
    }
    errors.mark(p.theta, "θ", "ink", { top: 196 });
    errors.end();
    const bags = geomspace(Math.max(4, p.n / 50), p.n * 50, 61);
    turn.begin({ x: { label: "labeled bags n", short: "n", domain: [bags[0], bags.at(-1)], log: true }, y: { label: "cosine with the signal", domain: [0, 1.02] } });
    turn.line("query of two steps, all data", bags, bags.map((n) => cosine(p, n / p.d)), "attention");
    turn.dot(p.n, values.cosine, "attention", { r: 6, name: "here" });
    turn.mark(p.n, "n", "ink", { top: 196 });
    turn.end();
  },
  numbers: ({ here, cosine: turned, capacity, recipe }, { pi, n, d }) => [
    ["always the commoner answer", percent(Math.min(pi, 1 - pi)), "muted"],
    ...KINDS.map(([key, name, color]) => [name, here[key] === null ? "–" : here[key] < 1e-4 ? "below 0.01 %" : percent(here[key]), color]),
    ["cosine of the query", show(turned), "ink"],
    ["separable bags per dimension", `averages ${bags(capacity.pooled)}${capacity.steps === null ? "" : `, attention ${bags(capacity.steps)}`}; yours ${show(n / d)}`, "ink"],
    ...(recipe ? [["settings", `sharpness ${show(recipe.sharpness, 2)}, ridge ${show(recipe.ridge, 2)}, ${recipe.share === 1 ? "all data twice" : `${percent(recipe.share)} of the data for the query`}`, "attention"]] : []),
  ],
  sentence: ({ advice, warnings }) => [advice, ...warnings.map((w) => `Mind: ${w}.`)].join(" "),
});
