// The search page: ranks the sections of sections.json (see _ext/needle_search.py) by MiniSearch.
import MiniSearch from "../vendor/minisearch.mjs";

const GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon phi chi psi omega".split(" ");
const ASKING = new Set("a an are can choose do does how i in is it much my of should the to what when where which why will with".split(" "));
const LEAST = /^quick checks/i;
const LESS = /^(exercises|problems|what we established|where next|utils\.)/i;
const ASIDE = /^(api|statements|ledger|notation|execution|references|benchmarks)\b/;
const normal = (text) => text.toLowerCase().replaceAll("√", "sqrt ")
  .replace(/[α-ω]/g, (c) => `${GREEK[c.codePointAt(0) - 945]} `);
const tokens = (text) => normal(text).match(/[a-z0-9]+/g) ?? [];
const phrase = (text) => ` ${tokens(text).join(" ")} `;

export async function index(address) {
  const sections = await (await fetch(address)).json();
  const engine = new MiniSearch({
    fields: ["title", "terms", "plain"],
    extractField: (section, field) =>
      field === "plain" ? `${section.title} ${section.text}` : section[field],
    storeFields: ["title", "terms", "page", "text"],
    tokenize: tokens,
    processTerm: (term) => term,
  });
  engine.addAll(sections);
  return engine;
}

export function search(engine, query) {
  // A question is its nouns: how, do and I stand in every section and in none.
  const words = tokens(query).filter((word) => !ASKING.has(word)).join(" ") || query;
  const asked = phrase(words);
  const options = {
    boost: { title: 4, terms: 5 },
    prefix: (term) => term.length > 3,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    weights: { fuzzy: 0.2, prefix: 0.6 },
    boostDocument: (id, term, { title, terms, text }) => {
      const names = phrase(`${title} . ${terms}`);
      const whole = names.includes(asked) ? 4 : phrase(`${title} ${text}`).includes(asked) ? 1.5 : 1;
      return whole * (LEAST.test(title) ? 0.1 : LESS.test(title) || ASIDE.test(id) ? 0.3 : 1);
    },
  };
  const found = engine.search(words, { ...options, combineWith: "AND" });
  return found.length ? found : engine.search(words, options);
}

function snippet(text, query) {
  const words = tokens(query).filter((word) => word.length > 2);
  const lower = normal(text);
  const at = Math.max(0, Math.min(...words.map((w) => lower.indexOf(w)).filter((k) => k >= 0), 1e9));
  const start = at < text.length ? text.lastIndexOf(" ", Math.max(0, at - 80)) + 1 : 0;
  const end = text.indexOf(" ", start + 220);
  const part = text.slice(start, end < 0 ? undefined : end);
  return `${start ? "… " : ""}${part}${end < 0 ? "" : " …"}`;
}

function show(engine, query, place) {
  const found = search(engine, query).slice(0, 30);
  const heading = document.createElement("p");
  heading.className = "search-summary";
  heading.setAttribute("role", "status");
  heading.textContent = found.length
    ? `${found.length === 30 ? "The 30 nearest" : found.length} section${found.length > 1 ? "s" : ""} for “${query}”`
    : `Nothing was found for “${query}”. A single word finds more.`;
  const list = document.createElement("ul");
  list.className = "search";
  for (const { id, title, page, text } of found) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = id;
    link.textContent = title === page ? title : `${title} · ${page}`;
    const context = item.appendChild(document.createElement("p"));
    context.className = "context";
    context.textContent = snippet(text, query);
  }
  place.replaceChildren(heading, list);
}

const place = globalThis.document?.getElementById("search-results");
if (place) {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  for (const input of document.querySelectorAll("input[type=search]")) input.value = query;
  if (query.trim()) show(await index(new URL("sections.json", import.meta.url)), query, place);
}
