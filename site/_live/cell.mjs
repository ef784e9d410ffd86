// A cell of the page: its editor, its buttons, what it left, and how it stands.
const fresh = new URL(import.meta.url).search;
const [{ Editor }, { highlighted }, { Outputs }, { made, once, say, SLOWER, WORTH_SAYING }] = await Promise.all(
  ["editor", "highlight", "outputs", "words"].map((name) => import(`./${name}.mjs${fresh}`)),
);

export class Cell {
  constructor(page, element, number) {
    Object.assign(this, { page, element, number, state: "stored", seconds: 0 });
    this.expected = SLOWER * (page.measured[number - 1] ?? 0);
    const input = element.querySelector("div.cell_input");
    this.editor = new Editor(input.querySelector("div.highlight"), {
      label: `Code of cell ${number}`,
      help: "live-help",
      highlighted,
      onrun: (onward) => this.run(onward),
      onedit: () => this.edited(),
    });
    this.outputs = new Outputs(element);
    this.note = made("span", { className: "live-note" });
    this.button = made("button", { type: "button", className: "live-run", onclick: (event) => this.press(event) });
    this.above = made("button", { type: "button", onclick: once(() => page.runAll(number - 1)) }, "Run all above");
    this.back = made("button", { type: "button", onclick: () => this.return() }, "Reset");
    this.tools = made("div", { className: "live-tools" }, this.button, this.above, this.back, this.note);
    (input.closest("details.folded") ?? input).after(this.tools);
    this.show();
  }

  get busy() {
    return this.state === "waiting" || this.state === "running";
  }

  show(note = this.note.textContent) {
    this.element.dataset.state = this.state;
    this.button.textContent = this.busy ? "Stop" : "Run";
    this.button.setAttribute("aria-label", `${this.busy ? "Stop" : "Run"} cell ${this.number}`);
    this.back.setAttribute("aria-label", `Reset cell ${this.number} to the book's`);
    this.above.hidden = this.number === 1 || this.busy;
    this.back.hidden = this.busy || (this.state === "stored" && !this.editor.changed);
    const ahead = this.expected > WORTH_SAYING ? `takes at least ${say(this.expected)} here` : "";
    this.note.textContent = note || (this.state === "stored" ? ahead : "");
  }

  edited() {
    if (!this.busy) this.show(this.editor.changed ? "edited, not run" : "");
    this.page.keep();
  }

  // The second half of a double click is no wish to stop what the first half began.
  press(event) {
    if (event.detail > 1) return;
    if (this.state === "waiting") this.page.withdraw(this);
    else if (this.busy) this.page.stop();
    else this.run(false);
  }

  return() {
    this.reset(true);
    this.button.focus(); // the button that had the focus is gone
  }

  run(onward) {
    if (!this.busy) this.page.runWhatIsNeeded(this);
    if (onward) this.page.cells[this.number]?.focus();
  }

  focus() {
    const own = this.element.querySelector("details.folded");
    for (let fold = own ?? this.element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    this.element.closest(".toggle-hidden")?.querySelector("button.toggle-button")?.click();
    this.editor.area.focus();
  }

  wait() {
    this.before = [this.state, this.note.textContent];
    this.state = "waiting";
    this.show("waiting");
  }

  begin() {
    this.state = "running";
    this.started = performance.now();
    this.outputs.begin();
    this.show("running");
  }

  progress(text) {
    this.note.textContent = text;
  }

  finish(good, seconds) {
    this.outputs.finish();
    this.state = good ? "live" : "failed";
    this.seconds = seconds;
    const missing = !good && this.outputs.says("NameError") && this.page.unrun(this.number);
    const hint = missing ? "; cells above have not run: “Run all above”" : "";
    this.show(`${good ? "live" : "failed"} · ${seconds < 9.95 ? seconds.toFixed(2) : Math.round(seconds)} s${hint}`);
  }

  stopped() {
    if (this.state === "waiting") [this.state, this.note.textContent] = this.before;
    else {
      this.outputs.finish();
      this.state = "failed";
      this.note.textContent = "stopped";
    }
    this.show();
  }

  reset(keep = false) {
    this.editor.set(this.editor.saved);
    this.outputs.reset();
    this.state = "stored";
    this.note.textContent = "";
    this.show();
    if (keep) this.page.keep();
  }

  record() {
    const { state, seconds } = this;
    const source = this.editor.changed ? this.editor.source : null;
    return { source, seconds, state: this.busy ? "stored" : state, outputs: this.outputs.list };
  }

  bring({ source, seconds, state, outputs }) {
    if (source !== null) this.editor.set(source);
    if (state === "stored") return this.show(this.editor.changed ? "edited, not run" : "");
    this.outputs.begin();
    for (const { type, text } of outputs) this.outputs.add(type, text);
    this.finish(state === "live", seconds);
  }
}
