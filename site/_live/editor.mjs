// A textarea of transparent letters above the colored code: the browser's own editing, undo, search
// and assistive technology work in it. Tab indents; after Escape it leaves, as everywhere else.
const INDENT = "    ";

export class Editor {
  constructor(block, { label, help, highlighted, onrun, onedit }) {
    this.pre = block.querySelector("pre");
    for (const link of this.pre.querySelectorAll("a")) link.replaceWith(...link.childNodes); // under the cursor
    this.original = this.pre.innerHTML;
    this.source = this.saved = this.pre.textContent.replace(/\n$/, "");
    this.highlighted = highlighted;
    this.onedit = onedit;
    this.area = document.createElement("textarea");
    Object.assign(this.area, { value: this.source, spellcheck: false, wrap: "off", rows: 1 });
    for (const [name, value] of Object.entries({
      "aria-label": label, "aria-describedby": help, autocapitalize: "off", autocomplete: "off",
      autocorrect: "off", "data-gramm": "false",
    })) this.area.setAttribute(name, value);
    const shell = document.createElement("div");
    shell.className = "live-code";
    this.pre.before(shell);
    shell.append(this.pre, this.area);
    this.pre.setAttribute("aria-hidden", "true");
    this.leaving = false;
    this.area.addEventListener("input", () => this.edited());
    this.area.addEventListener("keydown", (event) => this.key(event, onrun));
    this.area.addEventListener("blur", () => { this.leaving = false; });
  }

  get changed() {
    return this.source !== this.saved;
  }

  set(source) {
    this.area.value = source;
    this.draw();
  }

  draw() {
    this.source = this.area.value;
    // a last line without letters needs one to have a height
    this.pre.innerHTML = this.changed ? `${this.highlighted(this.source)}\n` : this.original;
  }

  edited() {
    this.draw();
    this.onedit();
  }

  key(event, onrun) {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (key === "Enter" && (shiftKey || ctrlKey || metaKey)) {
      event.preventDefault();
      onrun(shiftKey);
    } else if (key === "Tab" && !this.leaving && !(ctrlKey || metaKey || altKey)) {
      event.preventDefault();
      this.indent(shiftKey);
    } else if (key === "Enter" && !altKey && !event.isComposing) {
      event.preventDefault();
      this.newline();
    } else if (key === "Escape") {
      this.leaving = true;
      return;
    }
    if (key !== "Shift") this.leaving = false;
  }

  // Put text in place of the selection, in a way that undo can take back.
  insert(text) {
    const typed = text
      ? document.execCommand("insertText", false, text)
      : document.execCommand("delete");
    if (!typed) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.edited();
    }
  }

  newline() {
    const before = this.area.value.slice(0, this.area.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const deeper = /:\s*(#.*)?$/.test(line) ? INDENT : "";
    this.insert(`\n${line.match(/^[ \t]*/)[0]}${deeper}`);
  }

  indent(back) {
    const { value, selectionStart: from, selectionEnd: to } = this.area;
    if (from === to && !back) {
      const column = from - (value.lastIndexOf("\n", from - 1) + 1);
      this.insert(" ".repeat(INDENT.length - (column % INDENT.length)));
      return;
    }
    const start = value.lastIndexOf("\n", from - 1) + 1;
    const past = value.indexOf("\n", Math.max(to - 1, from));
    const end = past < 0 ? value.length : past;
    const old = value.slice(start, end);
    const shift = (line) => (back ? line.replace(/^ {1,4}/, "") : line && INDENT + line);
    const moved = old.split("\n").map(shift).join("\n");
    if (moved === old) return;
    this.area.setSelectionRange(start, end);
    this.insert(moved);
    const place = Math.max(start, from + moved.length - old.length);
    this.area.setSelectionRange(from === to ? place : start, from === to ? place : start + moved.length);
  }
}
