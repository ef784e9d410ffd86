// The page comes alive: its cells can be edited and run by a Python in the reader's browser.
const fresh = new URL(import.meta.url).search; // one version of all parts
const [{ Cell }, store, { needed }, { made, megabytes, once, say, WORTH_SAYING }] = await Promise.all(
  ["cell", "store", "needs", "words"].map((name) => import(`./${name}.mjs${fresh}`)),
);
const BASE = new URL("./", import.meta.url).href;

class Page {
  constructor(block) {
    this.block = block;
    this.queue = [];
    this.calls = new Map();
    this.count = 0;
    this.starts = 0;
    this.measured = block.dataset.seconds.split(" ").map(Number);
    this.packages = block.dataset.packages.split(" ");
    this.dress();
  }

  dress() {
    document.head.append(made("link", { rel: "stylesheet", href: `${BASE}live.css${fresh}` }));
    document.querySelector("[data-live=start]").hidden = true;
    this.status = this.block.querySelector("[role=status]");
    this.all = made("button", { type: "button", onclick: once(() => this.runAll(this.cells.length)) });
    this.clear = made("button", { type: "button", onclick: once(() => this.reset()) }, "Reset the page");
    const help = made("p", { id: "live-help" });
    help.textContent =
      "Every cell can be edited. Shift-Enter runs it and goes to the next, Ctrl-Enter runs it and stays. " +
      "Tab indents; Escape, then Tab, leaves the editor.";
    this.block.append(made("div", { className: "live-buttons" }, this.all, this.clear), help);
    this.bar = made("div", { className: "live-bar", hidden: true });
    this.words = made("span");
    this.halt = made("button", { type: "button", onclick: once(() => this.stop()) }, "Stop");
    this.bar.append(this.words, this.halt);
    document.body.append(this.bar);
    const blocks = document.querySelectorAll("article div.cell:has(> div.cell_input, > details div.cell_input)");
    this.cells = [...blocks].map((element, index) => new Cell(this, element, index + 1));
    const total = this.cells.reduce((sum, cell) => sum + cell.expected, 0);
    this.all.textContent = `Run all${total > WORTH_SAYING ? ` (at least ${say(total)})` : ""}`;
    setInterval(() => this.tick(), 500);
  }

  // Announce what has changed; what goes on is told by the bar, silently.
  announce(words) {
    this.status.textContent = words;
  }

  tick() {
    const cell = this.running;
    this.bar.hidden = this.block.dataset.live && !cell;
    if (cell) {
      const seconds = (performance.now() - cell.started) / 1000;
      const about = cell.expected > WORTH_SAYING ? ` of at least ${say(cell.expected)}` : "";
      this.words.textContent = `cell ${cell.number} of ${this.cells.length}: ${seconds.toFixed(0)} s${about}`;
    }
    this.halt.hidden = !cell;
  }

  // A tab that was duplicated has the name of the other one; it takes a name of its own.
  async name() {
    const named = (tab) => `${(sessionStorage["needle-tab"] = tab)}:${location.pathname}`;
    const another = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    this.entry = named(sessionStorage["needle-tab"] ?? another());
    const others = new BroadcastChannel(this.entry);
    const taken = new Promise((resolve) => {
      others.onmessage = ({ data }) => (data === "taken" ? resolve(true) : others.postMessage("taken"));
      others.postMessage("is this name free?");
      setTimeout(resolve, 150, false);
    });
    if (await taken) {
      others.close();
      sessionStorage.removeItem("needle-tab");
      await this.name();
    }
  }

  async manifest() {
    const cache = await self.caches?.open("needle-live").catch(() => null);
    const address = `${BASE}manifest.json`;
    try {
      const answer = await fetch(address, { cache: "no-cache" });
      if (!answer.ok) throw Error(`manifest.json could not be fetched (${answer.status})`);
      await cache?.put(address, answer.clone()).catch(() => {});
      return answer.json();
    } catch (error) {
      const found = await cache?.match(address);
      if (found) return found.json();
      throw error;
    }
  }

  async start() {
    const now = ++this.starts;
    this.ready = false;
    this.worker?.terminate();
    delete this.block.dataset.live;
    document.querySelector("[data-live=start]").hidden = true;
    this.words.textContent = this.phase = "fetching Python";
    this.bar.hidden = false;
    try {
      this.files ??= await this.manifest();
      this.code ??= await Promise.all(["worker.mjs", "store.mjs"].map(async (name) => {
        const answer = await fetch(`${BASE}${name}${fresh}`);
        if (!answer.ok) throw Error(`${name} could not be fetched (${answer.status})`);
        return URL.createObjectURL(new Blob([await answer.text()], { type: "text/javascript" }));
      }));
    } catch (error) {
      return now === this.starts && this.fail(`Python could not be fetched: ${error.message}`);
    }
    if (now !== this.starts) return; // another start has overtaken this one
    const [worker, parts] = this.code;
    this.worker = new Worker(worker, { type: "module" });
    this.worker.onmessage = ({ data }) => this[`on_${data.kind}`](data);
    this.worker.onerror = (event) => this.fail(`Python broke down: ${event.message || "no reason given"}`);
    this.worker.postMessage({
      kind: "start", base: BASE, manifest: this.files, packages: this.packages, entry: this.entry, store: parts,
    });
  }

  on_progress({ bytes }) {
    if (this.ready) return;
    const total = Number(this.block.dataset.bytes);
    const known = Math.min(bytes, total);
    this.words.textContent = `${this.phase}: ${megabytes(known)} of ${megabytes(total)} MB`;
  }

  on_state({ words }) {
    this.phase = words;
    this.words.textContent = words;
  }

  on_ready({ lost, latest, python }) {
    this.ready = true;
    this.block.dataset.live = "ready";
    const after = latest ? ` Its variables are as they were after cell ${latest}.` : "";
    const without = lost?.length ? ` Not kept: ${lost.join(", ")}.` : "";
    this.announce(`Python ${python} runs in this browser.${after}${without}`);
    this.tick();
    for (const message of this.calls.values()) this.worker.postMessage(message.sent);
    this.next();
  }

  on_output({ id, type, text }) {
    const cell = this.running;
    if (cell?.id !== id) return;
    if (type === "progress") cell.progress(text);
    else cell.outputs.add(type, text);
  }

  on_done({ id, good, seconds }) {
    const cell = this.running;
    if (cell?.id !== id) return;
    this.running = null;
    cell.finish(good, seconds);
    if (!good) {
      for (const other of this.queue.splice(0)) other.stopped();
      this.announce(`Cell ${cell.number} failed.`);
    } else if (!this.queue.length) this.announce(`Cell ${cell.number} has run.`);
    this.keep();
    this.next();
  }

  on_answer({ id, value, error }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(Error(error));
  }

  on_failure({ words }) {
    this.fail(words);
  }

  fail(words) {
    this.worker?.terminate();
    this.ready = false;
    for (const cell of [this.running, ...this.queue.splice(0)]) cell?.stopped();
    this.running = null;
    for (const call of this.calls.values()) call.reject(Error(words));
    this.calls.clear();
    this.bar.hidden = true;
    this.block.dataset.live = "failed";
    this.announce(words);
    const button = document.querySelector("[data-live=start]");
    Object.assign(button, { hidden: false, disabled: false, textContent: "Try again" });
    button.onclick = () => {
      this.files = null;
      this.start();
    };
  }

  enqueue(cells) {
    for (const cell of cells.filter((cell) => !cell.busy)) {
      cell.wait();
      this.queue.push(cell);
    }
    this.next();
  }

  // A cell, after those above it that it needs and that have not run.
  runWhatIsNeeded(cell) {
    const above = this.cells.slice(0, cell.number);
    const before = needed(above.map(({ editor }) => editor.source), above.map((other) => other.busy || other.state === "live"));
    this.enqueue([...before.map((k) => this.cells[k]), cell]);
  }

  next() {
    if (!this.ready || this.running || !this.queue.length) return;
    const cell = (this.running = this.queue.shift());
    cell.begin();
    cell.id = ++this.count;
    this.worker.postMessage({ kind: "run", id: cell.id, number: cell.number, source: cell.editor.source });
    this.tick();
  }

  unrun(number) {
    return this.cells.slice(0, number - 1).some((cell) => cell.state === "stored");
  }

  withdraw(cell) {
    this.queue = this.queue.filter((other) => other !== cell);
    cell.stopped();
  }

  runAll(count) {
    this.enqueue(this.cells.slice(0, count));
  }

  // A page without special headers cannot interrupt a thread: it is ended, and another one begins
  // with the variables as they were kept last.
  stop() {
    const told = this.running ? `Cell ${this.running.number} was stopped; Python starts again.` : "";
    this.restart(told || "Stopped.", Boolean(this.running) || !this.ready);
  }

  restart(words, anew) {
    for (const cell of [this.running, ...this.queue.splice(0)]) cell?.stopped();
    this.running = null;
    this.announce(words);
    if (anew) {
      this.worker?.terminate();
      for (const call of this.calls.values()) call.reject(Error(words));
      this.calls.clear();
      this.start();
    }
  }

  async reset() {
    this.worker?.terminate();
    for (const cell of this.cells) cell.reset();
    await this.forget();
    this.restart("The page is as the book has it; Python starts anew.", true);
    delete sessionStorage[`needle-live:${location.pathname}`];
  }

  forget() {
    clearTimeout(this.timer);
    const names = ["pages", "variables"];
    return Promise.all(names.map((name) => store.drop(name, this.entry))).catch(() => {});
  }

  keep() {
    sessionStorage[`needle-live:${location.pathname}`] = "yes";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), 300);
  }

  save() {
    clearTimeout(this.timer);
    this.timer = 0;
    const cells = this.cells.map((cell) => cell.record());
    return store.save("pages", this.entry, { cells }).catch(() => {});
  }

  async bring() {
    const record = await store.load("pages", this.entry).catch(() => null);
    if (record?.cells.length === this.cells.length) {
      this.cells.forEach((cell, index) => cell.bring(record.cells[index]));
    }
  }

  call(kind, more) {
    return new Promise((resolve, reject) => {
      const sent = { kind, id: `call ${++this.count}`, ...more };
      this.calls.set(sent.id, { resolve, reject, sent });
      if (this.ready) this.worker.postMessage(sent);
    });
  }

  // Before the reader turns to another page: what has been computed is kept first.
  async leave(event) {
    const link = event.target.closest?.("a[href]");
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button);
    if (!link || !plain || link.target || event.defaultPrevented || !this.ready || this.running) return;
    const target = new URL(link.href);
    if (target.origin !== location.origin || target.pathname === location.pathname) return;
    if (!sessionStorage[`needle-live:${location.pathname}`]) return;
    event.preventDefault();
    const patience = new Promise((resolve) => setTimeout(resolve, 2000));
    await Promise.race([Promise.all([this.save(), this.call("keep")]), patience]).catch(() => {});
    location.href = target.href;
  }
}

export async function start(block, clicked) {
  const page = new Page(block);
  if (clicked) {
    window.book.read?.("code"); // whoever runs a page wants to see its cells
    page.all.focus({ preventScroll: true }); // the button that had the focus is gone
  }
  store.sweep().catch(() => {});
  await page.name();
  await page.bring();
  page.start();
  document.addEventListener("click", (event) => page.leave(event));
  window.addEventListener("pagehide", () => page.timer && page.save());
  return { python: (code) => page.call("python", { code }), page };
}
