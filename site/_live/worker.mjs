// Python, in a thread of its own. Every file comes through `file`: from the browser's cache, else
// from the site, and either way only with the hash that the manifest names (pages from https or
// localhost alone can compute one).
let base, manifest, store, pyodide, kernel, entry, latest = null;
let owed = 0, cost = 0, timer = 0;
const post = (kind, more = {}) => postMessage({ kind, ...more });
const online = self.fetch.bind(self);
const opened = () => self.caches?.open("needle-live").catch(() => null);
const progress = new Map();

const report = (name, bytes) => {
  progress.set(name, bytes);
  post("progress", { bytes: [...progress.values()].reduce((sum, value) => sum + value, 0) });
};

async function checked(name, content) {
  if (!crypto.subtle) return;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== manifest[name].sha256) throw Error("this is not the file that the book was built with");
}

async function download(name, address, how) {
  const answer = await online(address, how);
  if (!answer.ok) throw Error(`the server answers ${answer.status}`);
  const parts = [];
  let bytes = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    report(name, (bytes += value.length));
  }
  const content = new Uint8Array(await new Blob(parts).arrayBuffer());
  await checked(name, content);
  return content;
}

// Connections break, and caches on the way may hold something else: a file is asked for again.
async function fetched(name, address) {
  for (const pause of [500, 2000, null]) {
    try {
      return await download(name, address, { cache: pause === 500 ? "default" : "reload" });
    } catch (error) {
      if (pause === null) throw Error(`${name}: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

async function kept(name) {
  const address = `${base}${name}?${manifest[name].sha256.slice(0, 16)}`;
  const cache = await opened();
  const found = await cache?.match(address);
  if (found) {
    try {
      const content = new Uint8Array(await found.arrayBuffer());
      await checked(name, content);
      report(name, content.length);
      return content;
    } catch {
      await cache.delete(address); // damaged where it was kept
    }
  }
  const content = await fetched(name, address);
  await cache?.put(address, new Response(content)).catch(() => {}); // no room: fetched again next time
  return content;
}

const waiting = new Map();
const file = (name) => {
  if (!waiting.has(name)) waiting.set(name, kept(name));
  return waiting.get(name);
};

async function unpacked(name) {
  if (!manifest[`${name}.z`]) return file(name);
  const stream = new Blob([await file(`${name}.z`)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

self.fetch = async (address, ...rest) => {
  const name = new URL(address.url ?? address, base).pathname.split("/").pop();
  if (!manifest[name] && !manifest[`${name}.z`]) return online(address, ...rest);
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(await unpacked(name), { headers: { "Content-Type": type } });
};

async function module(name) {
  const code = new Blob([await unpacked(name)], { type: "text/javascript" });
  return import(URL.createObjectURL(code));
}

async function forgetOthers() {
  const cache = await opened();
  for (const { url } of (await cache?.keys()) ?? []) {
    const { pathname, search } = new URL(url);
    const name = pathname.split("/").pop();
    const ours = url.startsWith(base);
    if (ours && manifest[name]?.sha256.slice(0, 16) !== search.slice(1) && name !== "manifest.json") {
      cache.delete(url);
    }
  }
}

async function start(message) {
  ({ base, manifest, entry } = message);
  store = await import(message.store);
  const lock = JSON.parse(new TextDecoder().decode(await file("packages.json")));
  const order = message.packages.flatMap(function all(name) {
    return [name, ...lock.packages[name].depends.flatMap(all)];
  });
  const wanted = [...new Set(order)];
  for (const name of wanted) file(lock.packages[name].file_name).catch(() => {});
  for (const name of ["python_stdlib.zip", "book.zip", "pyodide.asm.wasm.z"]) file(name).catch(() => {});
  const [{ loadPyodide }, core] = await Promise.all([module("pyodide.mjs"), module("pyodide.asm.mjs")]);
  post("state", { words: "starting Python" });
  pyodide = await loadPyodide({
    indexURL: base,
    packageBaseUrl: base,
    lockFileContents: lock,
    createPyodideModule: core.default,
    env: { MPLBACKEND: "agg", HOME: "/home/reader", OMP_NUM_THREADS: "1" },
  });
  await Promise.all(wanted.map((name) => file(lock.packages[name].file_name)));
  post("state", { words: `unpacking ${message.packages.join(", ")}` });
  const complain = (text) => console.error(text);
  await pyodide.loadPackage(wanted, { messageCallback: () => {}, errorCallback: complain });
  pyodide.unpackArchive(await file("book.zip"), "zip", { extractDir: "/book" });
  pyodide.runPython("import os, sys; sys.path.insert(0, '/book'); os.chdir('/book')");
  kernel = pyodide.pyimport("_live.kernel").Kernel();
  waiting.clear();
  forgetOthers();
  const record = await store.load("variables", entry).catch(() => null);
  let lost = record?.lost ?? null;
  if (record?.content.length) {
    post("state", { words: "bringing your variables back" });
    try {
      kernel.restore(pyodide.toPy(record.content));
      latest = record.latest;
    } catch (error) {
      lost = [`(${String(error).trim().split("\n").pop()})`];
    }
  }
  post("ready", { lost, latest, python: pyodide.runPython("sys.version.split()[0]") });
}

// The variables of a page are kept in the browser, so that they outlive this thread.
async function keep() {
  clearTimeout(timer);
  timer = 0;
  const from = performance.now();
  try {
    const result = kernel.snapshot();
    const [content, lost] = result.toJs({ create_pyproxies: false });
    result.destroy();
    await store.save("variables", entry, { content, lost, latest });
  } catch (error) {
    console.warn("the variables could not be kept:", error);
  }
  [owed, cost] = [0, performance.now() - from];
}

async function run({ id, number, source }) {
  clearTimeout(timer);
  try {
    await pyodide.loadPackagesFromImports(source, { messageCallback: () => {} });
  } catch {} // what is not there is told by the import itself
  const from = performance.now();
  const emit = (kind, text) => post("output", { id, type: kind, text });
  const good = kernel.run(source, `<cell ${number}>`, emit);
  const spent = performance.now() - from;
  post("done", { id, good, seconds: spent / 1000 });
  latest = number;
  owed += spent;
  if (owed > 1000 + 10 * cost) await keep();
  else timer = setTimeout(() => act(keep), 500);
}

async function python({ id, code }) {
  try {
    await pyodide.loadPackagesFromImports(code, { messageCallback: () => {} });
    post("answer", { id, value: kernel.python(code) });
  } catch (error) {
    post("answer", { id, error: String(error.message ?? error) });
  }
  clearTimeout(timer);
  timer = setTimeout(() => act(keep), 500);
}

const actions = { start, run, python, keep: async ({ id }) => (await keep(), post("answer", { id })) };
let turn = Promise.resolve();
const act = (action) => {
  turn = turn.then(action).catch((error) => post("failure", { words: String(error.message ?? error) }));
};
onmessage = ({ data }) => act(() => actions[data.kind](data));
