// Widgets on a static page: every module comes from this site.
(() => {
  const vendor = new URL(
    (document.documentElement.dataset.content_root || "./") + "vendor/",
    document.baseURI,
  ).href;
  window.requirejs.config({ paths: { anywidget: vendor + "anywidget" } });
  // ipywidgets 8 speaks to MathJax 2; MathJax 3 typesets by promise.
  const mathjax = (window.MathJax = window.MathJax || {});
  mathjax.Hub = {
    Queue: (...calls) => {
      for (const [, , node] of calls) {
        if (mathjax.typesetPromise) mathjax.typesetPromise(node ? [node] : undefined);
      }
    },
    Config: () => {},
    Configured: () => {},
  };
  if (window.FontAwesome) window.FontAwesome.config.autoReplaceSvg = "nest";
})();
