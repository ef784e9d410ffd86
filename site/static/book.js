// A formula that is wider than its column: in a line of text it scrolls in a box of its own; on a
// line of its own it is set smaller, as far as it can be read, and only then scrolls.
(() => {
  const SMALLEST = 9; // CSS pixels
  const inline = () => {
    const formulas = [...document.querySelectorAll("span.math > mjx-container")];
    for (const formula of formulas) formula.classList.remove("wide");
    const wide = formulas.filter((formula) => {
      const box = formula.parentElement.closest("p, li, td, dd, figcaption, div");
      return formula.getBoundingClientRect().right > box.getBoundingClientRect().right + 1;
    });
    for (const formula of wide) formula.classList.add("wide");
  };
  const displayed = () => {
    const formulas = [...document.querySelectorAll('mjx-container[display="true"]')];
    for (const formula of formulas) {
      formula.dataset.size ??= formula.style.fontSize;
      formula.style.fontSize = formula.dataset.size;
    }
    const sizes = formulas.map((formula) => {
      const share = (formula.clientWidth - 1) / formula.scrollWidth; // not a number when folded
      return share < 1 && Math.max(share * parseFloat(getComputedStyle(formula).fontSize), SMALLEST);
    });
    formulas.forEach((formula, k) => { if (sizes[k]) formula.style.fontSize = `${sizes[k]}px`; });
  };
  const fit = () => { inline(); displayed(); };
  let asked;
  const soon = () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(fit); };
  window.addEventListener("load", () => {
    window.MathJax?.startup?.promise?.then(fit);
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);
  });
})();

// Paper cannot unfold anything: everything is open while the page is printed. (Where the browser
// knows ::details-content the style sheet does it too, without a script.)
(() => {
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const fold of closed) fold.open = true;
    for (const image of document.images) image.loading = "eager";
    const boxes = document.querySelectorAll("article :is(.admonition, table, div.highlight)");
    for (const box of boxes) box.classList.toggle("whole-on-paper", box.offsetHeight < 240);
  });
  window.addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
    closed = [];
  });
})();

// On paper the page is light, whatever its theme on the screen.
(() => {
  const page = document.documentElement.dataset;
  let theme;
  window.addEventListener("beforeprint", () => {
    theme = page.theme;
    page.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    page.theme = theme;
  });
})();

// A link into the page finds its target again after the mathematics has settled, unless the reader
// has moved on.
(() => {
  let moved = false;
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    window.addEventListener(kind, () => { moved = true; }, { once: true, passive: true });
  }
  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch {} // #%E0 is no text, and names nothing
    const target = document.getElementById(name);
    if (target && !moved) target.scrollIntoView({ behavior: "instant" });
  });
})();

// Buttons say what they do, and a drawer closes behind the reader who has chosen.
window.addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) {
    button.setAttribute("aria-label", "Copy to clipboard");
  }
  for (const side of ["primary", "secondary"]) {
    const drawer = document.getElementById(`pst-${side}-sidebar-checkbox`);
    const links = document.querySelectorAll(`.bd-sidebar-${side} a[href]`);
    for (const link of links) link.addEventListener("click", () => { drawer.checked = false; });
  }
});
