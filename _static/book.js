// A formula in a line of text that is wider than the text scrolls in a box of its own.
(() => {
  const fit = () => {
    for (const formula of document.querySelectorAll("span.math > mjx-container")) {
      formula.classList.remove("wide");
      const box = formula.parentElement.closest("p, li, td, dd, figcaption, div");
      const { right } = box.getBoundingClientRect();
      if (formula.getBoundingClientRect().right > right + 1) formula.classList.add("wide");
    }
  };
  window.addEventListener("load", () => {
    window.MathJax?.startup?.promise?.then(fit);
    window.addEventListener("resize", fit);
  });
})();

// Paper cannot unfold anything: everything is open while the page is printed. (Where the browser
// knows ::details-content the style sheet does it too, without a script.)
(() => {
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
    closed = [];
  });
})();
