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
