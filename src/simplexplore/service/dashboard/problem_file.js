// The problem file of a study: its limits as formulas, and the file itself.
import { el } from "./dom.js";
import { table } from "./table.js";

// Tables of the file whose entries are formulas, and what they are about.
const FORMULAS = { constraints: "Limits on the mix", exploration: "Limits on the samples" };

// Names and formulas of a table, as our own program writes them: name = "formula".
function entries(file, name) {
  const lines = file.split("\n");
  const begin = lines.indexOf(`[${name}]`);
  if (begin < 0) return [];
  const end = lines.findIndex((line, i) => i > begin && line.startsWith("["));
  return lines.slice(begin + 1, end < 0 ? undefined : end).map((line) => {
    const found = /^("(?:[^"\\]|\\.)*"|[\w-]+) = "((?:[^"\\]|\\.)*)"$/.exec(line);
    const plain = (part) => part.startsWith('"') ? JSON.parse(part) : part;
    return found && [plain(found[1]), JSON.parse(`"${found[2]}"`)];
  }).filter(Boolean);
}

export function formulas(file, measured = []) {
  return [...Object.entries(FORMULAS).map(([name, words]) => [words, entries(file, name)])
    .filter(([, rows]) => rows.length)
    .map(([words, rows]) => table(words, ["Name", "Formula"], rows.map(([name, formula]) => [name, el("code", {}, formula)]))),
  ...(measured.length ? [table("What is measured with every pull, as a mean over the mix", ["Name", "Limit", "Tolerance"],
    measured.map((row) => [row.name, el("code", {}, row.limit), String(row.tolerance)]), [2])] : [])];
}

export const problemFile = (file) => el("details", { id: "problem-file" },
  el("summary", { id: "show-problem" }, "The problem file"),
  el("pre", { class: "file", tabindex: 0, role: "group", "aria-label": "The problem file" }, file));
