// Words of the glossary show their card: the mouse rests on them, they have the focus, or a tap.
(() => {
  document.addEventListener("DOMContentLoaded", () => {
    const links = [...document.querySelectorAll("a.term")];
    if (!links.length || !("popover" in HTMLElement.prototype)) return;
    let shown = null, tapped = false;
    const cardOf = (link) => document.getElementById(link.getAttribute("aria-describedby"));
    const hide = () => { if (shown) cardOf(shown).hidePopover(); shown = null; };
    const place = () => {
      const card = cardOf(shown), from = shown.getClientRects()[0];
      const { offsetWidth: wide, offsetHeight: high } = card;
      const below = from.bottom + high + 8 < innerHeight;
      card.style.left = `${Math.max(8, Math.min(from.left - 12, innerWidth - wide - 8))}px`;
      card.style.top = `${below ? from.bottom : Math.max(0, from.top - high)}px`;
    };
    const show = (link) => {
      if (shown === link) return;
      hide();
      shown = link;
      cardOf(link).showPopover();
      place();
    };
    for (const link of links) {
      const card = cardOf(link);
      const leave = ({ relatedTarget }) => {
        if (!card.contains(relatedTarget) && document.activeElement !== link) hide();
      };
      link.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && show(link));
      link.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave(event));
      card.addEventListener("pointerleave", leave); // the card itself may be entered and read
      link.addEventListener("pointerdown", ({ pointerType }) => {
        tapped = pointerType !== "mouse";
        link.dataset.open = shown === link ? "yes" : "";
      });
      link.addEventListener("focus", () => show(link));
      link.addEventListener("blur", hide);
      link.addEventListener("click", (event) => { // a tap shows the card, a second one follows the link
        if (!tapped || link.dataset.open) return;
        event.preventDefault();
        show(link);
      });
    }
    document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
    document.addEventListener("pointerdown", ({ target }) => {
      if (shown && target !== shown && !cardOf(shown).contains(target)) hide();
    });
    addEventListener("scroll", () => { // the focus brings its word into view; who scrolls on, goes on
      if (shown && document.activeElement === shown) place();
      else hide();
    }, { passive: true });
  });
})();
