// Which cells above a cell must run before it: those that define, or change, what it uses. Read off
// the text, not the running Python, so that it is known at the click; what it misses, Python names.
const WORD = /(?<![\w.])[\p{L}_][\p{L}\p{N}_]*/gu;
const TARGETS = /^([\p{L}_][^=!<>:()]*?|\([^=()]*\)[^=]*?)\s*(?::[^=]+)?(?:[-+*/%@&|^]|\*\*|\/\/|<<|>>)?=(?!=)/u;

const inserted = (text) => ` ${[...text.matchAll(/\{([^{}"'\n:!=]*)/g)].map((m) => m[1]).join(" ")} `;

// Without comments and the insides of strings (but with those of f-strings); a line a statement.
export function lines(source) {
  const bare = source.replace(
    /(\b[rbuf]{1,2}|)("""|''')[^]*?\2|(\b[rbuf]{1,2}|)(["'])(?:\\.|(?!\4)[^\\\n])*\4|#.*/gi,
    (all, kind = "", long, other = "") => (/f/i.test(kind + other) ? inserted(all) : " 0 "),
  );
  let depth = 0, text = "";
  for (const sign of bare) {
    depth += "([{".includes(sign) - ")]}".includes(sign);
    text += sign === "\n" && depth > 0 ? " " : sign;
  }
  return text.split("\n").filter((line) => line.trim());
}

const words = (text) => text.match(WORD) ?? [];

// The names that a cell uses, defines and changes.
export function names(source) {
  const uses = new Set(), defines = new Set(), changes = new Set(), imports = new Set();
  let inside = false; // a function or a class, whose names are its own
  for (const line of lines(source)) {
    const code = line.trim(), outer = !/^\s/.test(line);
    for (const word of words(code)) uses.add(word);
    if (outer) inside = false;
    const made = /^(?:async\s+)?(?:def|class)\s+([\p{L}\p{N}_]+)/u.exec(code);
    if (made && !inside) defines.add(made[1]);
    if (made && outer) inside = true;
    if (inside) continue;
    const imported = /^(?:from\s+[\w.]+\s+)?import\s+(.*)/.exec(code);
    if (imported) {
      for (const part of imported[1].replace(/[()]/g, "").split(",")) {
        const name = part.trim().split(/\s+as\s+/).at(-1).split(".")[0];
        defines.add(name);
        imports.add(name);
      }
      continue;
    }
    let rest = code;
    for (let found; (found = TARGETS.exec(rest)); rest = rest.slice(found[0].length).trimStart()) {
      for (const part of found[1].replace(/\[[^\]]*\]/g, "[]").split(",")) {
        const name = words(part)[0];
        if (name) (/[.[]/.test(part) || !found[0].trim().match(/[^-+*/%@&|^<>]=$/) ? changes : defines).add(name);
      }
    }
    const loop = /^for\s+(.*?)\s+in\b/u.exec(code);
    const named = [...code.matchAll(/\bas\s+([\p{L}\w]+)|([\p{L}\w]+)\s*:=/gu)].map((m) => m[1] ?? m[2]);
    for (const name of [...words(loop?.[1] ?? ""), ...named]) defines.add(name);
    const called = /^([\p{L}_][\p{L}\p{N}_]*)(?:\[[^\]]*\])?\.\w+\(/u.exec(code);
    if (called) changes.add(called[1]);
  }
  return { uses, defines, changes, imports };
}

// Of some sources, the places of those that must run before the last, given whether each has run.
export function needed(sources, ran) {
  const all = sources.map(names), modules = new Set(all.flatMap(({ imports }) => [...imports]));
  const wanted = new Set(all.at(-1).uses), found = [];
  for (let k = sources.length - 2; k >= 0; k--) {
    const { uses, defines, changes } = all[k];
    const useful = [...defines].some((name) => wanted.has(name)) ||
      [...changes].some((name) => wanted.has(name) && !modules.has(name));
    if (!useful) continue;
    for (const name of defines) wanted.delete(name);
    if (ran[k]) continue;
    found.unshift(k);
    for (const name of uses) wanted.add(name);
  }
  return found;
}
