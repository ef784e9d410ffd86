// A place for an answer under each exercise. Answers stay in this browser, and can be exported.
(() => {
  const SHELF = "needle-answers";
  const shelf = () => {
    try {
      return JSON.parse(localStorage[SHELF] ?? "{}");
    } catch {
      return {};
    }
  };
  const keep = (name, record) => {
    try {
      localStorage[SHELF] = JSON.stringify({ ...shelf(), [name]: record });
    } catch {} // no room, or not allowed: the page works all the same
  };
  const made = (kind, traits, ...inside) => {
    const node = Object.assign(document.createElement(kind), traits);
    node.append(...inside);
    return node;
  };

  // Python is fetched by the first answer, with the button of the page.
  const python = async (code) => {
    document.querySelector("[data-live=start]:not([hidden]):not(:disabled)")?.click();
    return window.book.python(code);
  };

  const dress = (place) => {
    const { exercise, asks } = place.dataset;
    const kept = shelf()[exercise] ?? {};
    const id = `answer-${exercise}`;
    const field = made("textarea", { id, rows: 3, spellcheck: false, autocapitalize: "off", value: kept.source ?? "" });
    field.placeholder = "lambda …: …   or a number; np is NumPy";
    field.setAttribute("data-lm-suppress-shortcuts", "true");
    const button = made("button", { type: "button", className: "btn btn-sm" }, "Check");
    const words = made("p", { className: "exercise-words" });
    const list = made("ul", { hidden: true });
    const reply = made("div", { className: "exercise-reply" }, words, list);
    reply.setAttribute("role", "status");
    const show = (right, said, items = []) => {
      place.dataset.state = right === null ? "asked" : right ? "right" : "wrong";
      words.textContent = `${right === null ? "" : right ? "✓ " : "✗ "}${said}`;
      list.replaceChildren(...items.map((item) => made("li", {}, item)));
      list.hidden = !items.length;
    };
    if (kept.right) show(true, "Right, as you found before.");
    const ask = async () => {
      button.disabled = true;
      show(null, "Checking … the first answer on a page fetches Python.");
      const code = [
        "import json, exercises.typed",
        `_reply = exercises.typed.reply(${JSON.stringify(exercise)}, ${JSON.stringify(field.value)})`,
        "print(json.dumps([_reply.right, _reply.words, list(_reply.items)]))",
      ].join("\n");
      try {
        const [right, said, items] = JSON.parse(await python(code));
        show(right, said, items);
        keep(exercise, { source: field.value, right: right || Boolean(shelf()[exercise]?.right) });
      } catch (error) {
        show(null, `This could not be checked: ${error.message}`);
      }
      button.disabled = false;
    };
    button.addEventListener("click", ask);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
    });
    field.addEventListener("change", () => keep(exercise, { ...shelf()[exercise], source: field.value }));
    const label = made("label", { htmlFor: id }, asks);
    place.append(label, field, made("div", { className: "exercise-buttons" }, button, exporter()), reply);
  };

  const exporter = () => {
    const button = made("button", { type: "button", className: "btn btn-sm" }, "Export all my answers");
    button.addEventListener("click", () => {
      const blob = new Blob([JSON.stringify(shelf(), null, 1)], { type: "application/json" });
      const link = made("a", { href: URL.createObjectURL(blob), download: "answers.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return button;
  };

  const begin = () => {
    if (!window.book?.python) return; // a page without Python keeps the hints and the solution
    document.querySelectorAll(".exercise-answer").forEach(dress);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
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
