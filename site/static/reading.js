// Reading, or with code: the switch under the title and the key C set every fold, and the choice is
// remembered. Without this script folds open by hand, and cards of checks in the middle of the page.
(() => {
  const page = document.documentElement;
  const folds = () => document.querySelectorAll("details.code");

  // What is being read stays where it is while folds above it open.
  const held = (change) => {
    const line = document.elementsFromPoint(innerWidth / 2, 120)
      .find((e) => e.matches("article :is(p, h1, h2, h3, li, figure, pre)"));
    const before = line?.getBoundingClientRect().top;
    change();
    const after = line?.isConnected && line.getBoundingClientRect();
    if (after?.height) scrollBy({ top: after.top - before, behavior: "instant" });
  };
  const set = (mode, chosen) => {
    page.dataset.read = mode;
    held(() => { for (const fold of folds()) fold.open = mode === "code"; });
    for (const button of document.querySelectorAll(".reading-switch button")) {
      button.setAttribute("aria-pressed", button.dataset.mode === mode);
    }
    if (chosen) try { localStorage.setItem("needle-read", mode); } catch {}
  };
  window.book = Object.assign(window.book ?? {}, { read: (mode) => set(mode, true) });

  // A link to a cell or an agreement opens its folds.
  const reveal = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch {} // #%E0 is no text
    const target = document.getElementById(name);
    const fold = target?.closest("details:not([open])");
    if (!fold && !target?.matches("details")) return;
    for (let e = target; e; e = e.parentElement?.closest("details")) if (e.matches("details")) e.open = true;
    if (target.closest("details.code")) target.scrollIntoView({ behavior: "instant" });
  };

  const place = (card, button) => {
    const from = button.getBoundingClientRect(), { offsetWidth: wide, offsetHeight: high } = card;
    const below = from.bottom + high + 16 < innerHeight;
    card.style.left = `${Math.max(12, Math.min(from.left - 24, innerWidth - wide - 12))}px`;
    card.style.top = `${below ? from.bottom + 8 : Math.max(12, from.top - high - 8)}px`;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const box = document.querySelector(".reading-switch");
    if (box) {
      set(page.dataset.read ?? "reading");
      box.addEventListener("click", ({ target }) => target.dataset.mode && set(target.dataset.mode, true));
      document.addEventListener("keydown", (event) => {
        const { key, target, ctrlKey, metaKey, altKey } = event;
        const typing = target.closest?.("input, textarea, select, [contenteditable]");
        if (key.toLowerCase() !== "c" || ctrlKey || metaKey || altKey || typing) return;
        set(page.dataset.read === "code" ? "reading" : "code", true);
      });
    }
    let from = scrollY; // where the page stood when a card opened, or was last scrolled to
    for (const card of document.querySelectorAll(".card-of-check")) {
      const button = document.querySelector(`[popovertarget="${card.id}"]`);
      card.addEventListener("beforetoggle", ({ newState }) => {
        if (newState !== "open") return;
        card.dataset.placed = "";
        from = scrollY;
      });
      card.addEventListener("toggle", ({ newState }) => newState === "open" && place(card, button));
    }
    addEventListener("scroll", () => {
      if (Math.abs(scrollY - from) < 40) return;
      from = scrollY;
      document.querySelector(".card-of-check:popover-open")?.hidePopover();
    }, { passive: true });
    reveal();
  });
  addEventListener("hashchange", reveal);
})();
