// The page "Ledger": a field that keeps the lines with all words asked for, and headings that sort.
const COLLATE = new Intl.Collator("en", { numeric: true });
const number = (text) => Number(text.replaceAll("−", "-").replace("exact", "0").replace("∞", "Infinity"));

/** Order of two cells: numbers by value (z by size), words by the alphabet, dashes last. */
export function order(a, b, column) {
  if ((a === "–") !== (b === "–")) return a === "–" ? 1 : -1;
  const [x, y] = [a, b].map(number);
  if (Number.isNaN(x) || Number.isNaN(y)) return COLLATE.compare(a, b);
  return column === "z" ? Math.abs(x) - Math.abs(y) : x - y;
}

export function matches(line, query) {
  const text = line.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function start(table) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const sort = (at) => {
    const down = headings[at].ariaSort === "ascending";
    const name = headings[at].textContent.trim();
    const cell = (row) => row.cells[at].textContent.trim();
    const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * order(cell(a), cell(b), name));
    body.append(...rows);
    for (const heading of headings) heading.removeAttribute("aria-sort");
    headings[at].setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.style.cssText = "font: inherit; color: inherit; background: none; border: 0; padding: 0; min-height: 24px; cursor: pointer";
    button.addEventListener("click", () => sort(at));
    heading.append(button);
  });

  const label = document.createElement("label");
  const field = document.createElement("input");
  const told = document.createElement("span");
  field.type = "search";
  field.style.cssText = "margin: 0 .5em; max-width: 100%";
  told.setAttribute("role", "status");
  label.append("Search the claims", field);
  field.addEventListener("input", () => {
    const rows = [...body.rows];
    for (const row of rows) row.hidden = !matches(row.textContent, field.value.trim());
    told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} lines`;
  });
  const place = document.createElement("p");
  place.append(label, told);
  (table.closest(".pst-scrollable-table-container") ?? table).before(place);
}

const table = globalThis.document?.querySelector("div.ledger table");
if (table) start(table);
