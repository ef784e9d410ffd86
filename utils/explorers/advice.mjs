// What a plan says of one strength, in words: needle.planning.words and needle.planning.planner.

const CLEAR = 0.9; // an error counts as better than another from this ratio on

export const figures = (x) => (x >= 0.01 ? x.toFixed(3) : x >= 1e-4 ? x.toFixed(4) : "<1e-4");
const two = (x) => String(+x.toPrecision(2));

// The choice ("pooled", "attention", "twice" or "none") and a sentence.
export const advise = (silent, pooled, split, twice, best) => {
  const steps = twice.error <= split.error ? twice : split, floor = `best possible ${figures(best.error)}`;
  if (Math.min(pooled.error, steps.error, best.error) > CLEAR * silent) {
    const gain = Math.max(pooled.auc, steps.auc, best.auc);
    if (gain > 0.6) return ["none", `Too weak for decisions, enough for a ranking: AUC up to ${gain.toFixed(2)}.`];
    return ["none", "Too weak: nobody does better than the commoner answer; get more bags."];
  }
  if (Math.min(pooled.error, steps.error) > CLEAR * silent) {
    return ["none", `Two steps see nothing yet, but the data hold it (${floor}): take more gradient rounds or message passing (Chapter 9).`];
  }
  if (pooled.error <= steps.error / CLEAR) {
    const better = pooled.error > CLEAR * steps.error ? "is as good as" : "beats";
    return ["pooled", `Average: pooling ${better} attention, error ${figures(pooled.error)} (${floor}).`];
  }
  const both = twice.error * CLEAR <= split.error, recipe = both ? twice : split;
  const how = both ? "all data twice" : `${(100 * split.share).toFixed(0)} % of the data for the query`;
  return [both ? "twice" : "attention",
    `Use attention, ${how}: sharpness ${recipe.T.toFixed(1)}, ridge ${two(recipe.ridge)}, error ${figures(recipe.error)} (${floor}).`];
};

// Where the theory is strained; `slow` is the cosine at the usual rates.
export const warn = ({ L, d, n, pi, theta }, silent, split, best, slow) => {
  const alpha = n / d, found = [];
  if (8 * d < L) found.push(`L = ${L} is large against d = ${d}: the theory lets d grow first; expect a less reliable query than predicted`);
  if (alpha * L < 10) found.push(`αL = ${(alpha * L).toFixed(1)} is small: after a long first step the bags see themselves, keep η_w at 0.05 or below`);
  if (n * pi < 20) found.push(`only about ${(n * pi).toFixed(0)} positive bags: expect large scatter`);
  if (split && slow < 0 && split.cos > 0.05) found.push("with bias rates as slow as 0.5 the query turns away from the signal");
  if (split && split.error < CLEAR * silent && (theta * split.cos) ** 2 < 2 * Math.log(L)) {
    found.push("the needle stands lower than the highest straws: small changes of the query matter");
  }
  if (best.hard) found.push("hard phase: a learner with unlimited time could do better than 'best'");
  return found;
};
