// Wakes the explorers of a page, if it has any: modules and data come from explorers/.
(() => {
  const base = new URL("explorers/", document.currentScript.src);
  document.addEventListener("DOMContentLoaded", () => {
    const places = document.querySelectorAll("[data-explorer]");
    if (!places.length) return;
    const moments = [...places].filter((place) => place.dataset.explorer.startsWith("moment-"));
    const others = [...places].filter((place) => !moments.includes(place));
    for (const [module, its] of [["moments", moments], ["site", others]]) {
      if (its.length) import(new URL(`${module}.mjs`, base)).then(({ start }) => start(its));
    }
  });
})();
