// Python in colors, with the class names that the style sheet of the page knows.
const KEYWORDS =
  "as assert async await break class continue def del elif else except finally for global if " +
  "lambda nonlocal pass raise return try while with yield match case";
const BUILTINS =
  "abs all any bool bytes callable dict dir divmod enumerate filter float format frozenset getattr " +
  "hasattr hash id int isinstance issubclass iter len list locals map max min next object open ord " +
  "pow print property range repr reversed round set setattr slice sorted str sum super tuple type " +
  "vars zip ArithmeticError AssertionError Exception KeyError RuntimeError TypeError ValueError";
const CLASSES = new Map([
  ...KEYWORDS.split(" ").map((word) => [word, "k"]),
  ...BUILTINS.split(" ").map((word) => [word, "nb"]),
  ...["and", "in", "is", "not", "or"].map((word) => [word, "ow"]),
  ...["False", "None", "True"].map((word) => [word, "kc"]),
  ...["from", "import"].map((word) => [word, "kn"]),
]);
const TOKEN = new RegExp(
  [
    /(?<c1>#[^\n]*)/,
    /(?<s2>\b[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<mf>\b(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?|\.\d+)/,
    /(?<nd>^[ \t]*@[\w.]+)/,
    /(?<name>[\p{L}_][\p{L}\p{N}_]*)/,
    /(?<o>[-+*/%@&|^~<>=!]+)/,
  ].map((part) => part.source).join("|"),
  "gmu",
);
const escaped = (text) =>
  text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

export function highlighted(source) {
  let html = "";
  let end = 0;
  let before = "";
  for (const match of source.matchAll(TOKEN)) {
    html += escaped(source.slice(end, match.index));
    end = match.index + match[0].length;
    let [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    if (kind === "name") {
      kind = before === "def" ? "nf" : before === "class" ? "nc" : CLASSES.get(match[0]) ?? "n";
      before = match[0];
    }
    html += `<span class="${kind}">${escaped(match[0])}</span>`;
  }
  return html + escaped(source.slice(end));
}
