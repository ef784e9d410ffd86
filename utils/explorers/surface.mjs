// A smooth function of several variables through stored values: |x − c|³ around every centre c,
// and a plane. The weights are solved for in scripts/book/explore_surfaces.py.
import { range } from "./maths.mjs";
import { numbersOf } from "./tables.mjs";

export const surface = ({ centers, weights, middle, scale }) => {
  const places = numbersOf(centers), factors = numbersOf(weights), [count, size] = centers.shape, out = weights.shape[1];
  return (where) => {
    const x = where.map((v, k) => (v - middle[k]) / scale[k]);
    const found = new Float64Array(out);
    for (let i = 0; i < count; i += 1) {
      let square = 0;
      for (let k = 0; k < size; k += 1) square += (x[k] - places[i * size + k]) ** 2;
      const far = square * Math.sqrt(square);
      for (let k = 0; k < out; k += 1) found[k] += far * factors[i * out + k];
    }
    const plane = [1, ...x];
    for (const i of range(size + 1)) {
      for (let k = 0; k < out; k += 1) found[k] += plane[i] * factors[(count + i) * out + k];
    }
    return [...found];
  };
};
