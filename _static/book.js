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
    for (const image of document.images) image.loading = "eager";
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
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && !moved) target.scrollIntoView({ behavior: "instant" });
  });
})();

// Buttons say what they do, and a drawer closes behind the reader who has chosen.
window.addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) {
    button.setAttribute("aria-label", "Copy this code");
  }
  for (const side of ["primary", "secondary"]) {
    const drawer = document.getElementById(`pst-${side}-sidebar-checkbox`);
    const links = document.querySelectorAll(`.bd-sidebar-${side} a[href]`);
    for (const link of links) link.addEventListener("click", () => { drawer.checked = false; });
  }
});

// Snippets of the search show the text of a page: not its toolbar, and no TeX.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  Search.htmlToText = (source, anchor) => {
    const page = new DOMParser().parseFromString(source, "text/html");
    const article = page.querySelector("article.bd-article");
    const place = (anchor && article?.querySelector(anchor)) || article;
    const left = ".headerlink, script, style, noscript, .math, .cell_input, details.folded, h1";
    for (const part of place?.querySelectorAll(left) ?? []) part.remove();
    return place?.textContent.replace(/\s+/g, " ") ?? "";
  };
});
