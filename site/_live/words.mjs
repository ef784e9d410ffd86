// Small things that the parts of the page share.
export const SLOWER = 2.5; // at least, in a browser; products of large matrices cost ten times as much
export const WORTH_SAYING = 8; // seconds of a cell

export const say = (seconds) =>
  seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
export const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 9.95e6 ? 1 : 0);

// What a double click does once.
export const once = (action) => (event) => event.detail > 1 || action();

export function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
