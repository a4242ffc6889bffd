// A text field for a problem file, with numbered lines of which one can be marked as wrong.
import { el } from "./dom.js";

const SAMPLE = `arms = ["pizza", "salmon", "lentils"]
means = [8.0, 7.5, 6.0]          # a guess: only to see how hard it is
delta = 0.05                     # allowed probability of a wrong answer
scenario = "end-of-time"         # or "anytime": samples keep the limits too

[rewards]
family = "gaussian"              # or bernoulli, poisson, bounded
sigma = 2.0

[constraints]
energy = "900*pizza + 600*salmon + 450*lentils <= 650"
price = "4*pizza + 12*salmon + 3*lentils <= 7"
`;

export function problemEditor() {
  const lines = el("pre", { "aria-hidden": "true" });
  const text = el("textarea", { id: "problem", spellcheck: "false", rows: 18, wrap: "off", required: true,
    "aria-describedby": "problem-hint result", onscroll: () => { lines.scrollTop = text.scrollTop; } });
  text.value = SAMPLE;
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
