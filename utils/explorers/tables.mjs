// Tables: numbers on a grid of stops, read back by straight lines between the stops.
import { range } from "./maths.mjs";

const ARRAYS = { float64: Float64Array, float32: Float32Array, uint16: Uint16Array };
export const numbersOf = ({ kind, data }) => new ARRAYS[kind](Uint8Array.from(atob(data), (c) => c.charCodeAt(0)).buffer);

export const table = (packed) => {
  const { kind, shape, low, high } = packed, ticks = numbersOf(packed);
  const strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, b) => a * b, 1));
  const value = kind !== "uint16" ? (i) => ticks[i]
    : (i) => (ticks[i] === 65535 ? NaN : low + ((high - low) * ticks[i]) / 65534);
  // place: one (possibly fractional) index for each axis but those left out at the end
  return (...place) => {
    let corners = [[0, 1]];
    place.forEach((x, k) => {
      const at = Math.min(Math.max(x, 0), shape[k] - 1), i = Math.min(Math.floor(at), Math.max(shape[k] - 2, 0));
      const t = at - i, next = [];
      for (const [offset, weight] of corners) {
        if (t < 1) next.push([offset + i * strides[k], weight * (1 - t)]);
        if (t > 0) next.push([offset + (i + 1) * strides[k], weight * t]);
      }
      corners = next;
    });
    const length = place.length < shape.length ? strides[place.length - 1] : 0;
    const read = (j) => corners.reduce((sum, [offset, weight]) => sum + weight * value(offset + j), 0);
    return length ? range(length).map(read) : read(0);
  };
};

// Where a number stands on a rising list of stops, as a fractional index.
export const index = (stops, x) => {
  let k = 0;
  while (k < stops.length - 2 && x > stops[k + 1]) k += 1;
  return k + (x - stops[k]) / (stops[k + 1] - stops[k]);
};

export const tables = (data) => Object.fromEntries(Object.entries(data).map(([key, packed]) => [key, table(packed)]));
