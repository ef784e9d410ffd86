// What a cell leaves, shown where the book's own output stands; the book's comes back on reset.
// What the page has lifted out of the cell, a figure or a table among the text, is renewed up there.
const CLASSES = {
  stdout: "output stream highlight-myst-ansi notranslate",
  stderr: "output stderr highlight-myst-ansi notranslate",
  text: "output text_plain highlight-myst-ansi notranslate",
  error: "output live-error highlight-myst-ansi notranslate",
  html: "output text_html",
};

export class Outputs {
  constructor(cell) {
    this.cell = cell;
    this.stored = cell.querySelector(":scope > div.cell_output");
    this.shown = this.stored;
    const lifted = cell.id ? document.querySelectorAll(`.lifted[data-cell="${cell.id}"]`) : [];
    this.lifted = [...lifted].map((place) => ({ place, stored: [...place.childNodes] }));
    this.list = [];
  }

  // The stored output stays, pale, until the first new one, so that the page does not jump.
  begin() {
    this.list = [];
    this.stale = true;
    this.pale(true);
  }

  pale(stale) {
    for (const box of [this.shown, ...this.lifted.map(({ place }) => place)]) box?.classList.toggle("live-stale", stale);
  }

  // A box without content, except for the caption of the figure, which the cell does not make.
  renew() {
    this.stale = false;
    const box = document.createElement("div");
    box.className = "cell_output docutils container live-output";
    const figure = "figure.book-figure", home = this.lifted.find(({ place }) => place.querySelector(figure));
    this.free = this.lifted.filter((lifted) => lifted !== home);
    this.figure = (home?.stored.find((node) => node.matches?.(figure)) ?? this.stored?.querySelector(figure))?.cloneNode(true);
    this.inside = this.figure && !home;
    if (this.figure) {
      this.caption = this.figure.querySelector("figcaption");
      const drawn = this.figure.querySelectorAll(".plate > :is(img, svg)");
      this.alt = [...drawn].map((plate) => plate.alt ?? plate.getAttribute("aria-label"));
      this.figure.replaceChildren(this.caption);
      if (home) home.place.replaceChildren(this.figure);
      else box.append(this.figure);
    }
    this.images = 0;
    this.pale(false);
    this.replace(box);
  }

  replace(box) {
    if (this.shown) this.shown.replaceWith(box);
    else this.cell.append(box);
    this.shown = box;
  }

  add(type, text) {
    if (this.stale) this.renew();
    const last = this.list.at(-1);
    const stream = type === "stdout" || type === "stderr";
    if (stream && last?.type === type) {
      last.text += text;
      this.printed.append(text);
      return;
    }
    this.list.push({ type, text });
    if (type === "image") this.picture(text);
    else this.place(this.block(type, text));
  }

  place(block) {
    const forReaders = block.firstElementChild?.matches(".shown, [data-explorer]");
    if (forReaders && this.free.length) this.free.shift().place.replaceChildren(...block.childNodes);
    else if (forReaders && this.figure) this.caption.before(...block.childNodes);
    else if (this.inside) this.figure.before(block);
    else this.shown.append(block);
  }

  block(type, text) {
    const block = document.createElement("div");
    block.className = CLASSES[type];
    if (type === "html") {
      block.innerHTML = text;
      this.explorers(block);
    } else {
      const pre = (this.printed = document.createElement("pre"));
      pre.textContent = text;
      const inner = document.createElement("div");
      inner.className = "highlight";
      inner.append(pre);
      block.append(inner);
      if (type === "error") block.setAttribute("role", "alert");
    }
    return block;
  }

  // An explorer is drawn by the page, as it was when the page was loaded.
  explorers(block) {
    const places = block.querySelectorAll("[data-explorer]");
    if (!places.length) return;
    const site = new URL("../_static/explorers/site.mjs", import.meta.url);
    import(site).then(({ start }) => start(places)).catch((error) => console.warn(error));
  }

  picture(content) {
    const image = document.createElement("img");
    image.alt = this.alt?.[this.images++] || "A figure without a description, drawn by this cell";
    const plate = document.createElement("div");
    plate.className = "plate";
    plate.append(image);
    image.onload = () => plate.style.setProperty("--pixels", `${image.naturalWidth}px`);
    image.src = `data:image/png;base64,${content}`;
    if (!this.figure) return this.place(plate);
    let plates = this.figure.querySelector(".plates");
    if (this.images === 2) {
      plates = document.createElement("div");
      plates.className = "plates";
      this.figure.prepend(plates);
      plates.append(this.figure.querySelector(":scope > .plate"));
    }
    if (plates) plates.append(plate);
    else this.caption.before(plate);
  }

  finish() {
    if (this.stale) this.renew(); // nothing came: nothing is shown
    this.pale(false);
  }

  says(word) {
    return this.list.some(({ type, text }) => type === "error" && text.includes(word));
  }

  reset() {
    this.list = [];
    this.stale = false;
    if (this.stored && this.shown !== this.stored) this.replace(this.stored);
    else if (!this.stored) this.shown?.remove();
    for (const { place, stored } of this.lifted) place.replaceChildren(...stored);
    this.shown = this.stored;
    this.pale(false);
  }
}
