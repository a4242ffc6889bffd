// A text field for a problem file, with numbered lines of which one can be marked as wrong.
import { el } from "./dom.js";

export function problemEditor() {
  const lines = el("pre", { "aria-hidden": "true" });
  const text = el("textarea", { id: "problem", spellcheck: "false", rows: 18, wrap: "off", required: true, "aria-label": "Problem file",
    "aria-describedby": "problem-hint result", onscroll: () => { lines.scrollTop = text.scrollTop; } });
  const written = () => text.value.split("\n");

  // Number the lines; null if none is wrong.
  function mark(wrong) {
    lines.replaceChildren(...written().map((_, i) =>
      el("span", { class: i + 1 === wrong ? "wrong" : null }, `${i + 1}\n`)));
    lines.scrollTop = text.scrollTop;
    text.setAttribute("aria-invalid", String(wrong !== null));
  }

  function select(line) {
    const before = written().slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(before, before + written()[line - 1].length);
  }

  mark(null);
  return { text, mark, select, box: el("div", { class: "editor" }, lines, text) };
}
