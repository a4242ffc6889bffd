// A form that starts a study; the problem file is checked while one writes.
import { studyPage } from "./address.js";
import { POLL, call, newKey, pause } from "./api.js";
import { boundPreview } from "./bound_preview.js";
import { el, renew, section } from "./dom.js";
import { begin, clearError, showError, showPassingError } from "./page.js";
import { problemEditor } from "./problem_editor.js";
import { learnRole, may } from "./role.js";

const PAUSE = 500;  // milliseconds without a key pressed after which the file is checked

// The problem file and what the service says of it, as pieces of a form.
function checkedProblem() {
  const editor = problemEditor();
  const result = el("div", { id: "result", "aria-live": "polite" });
  let timer = 0, round = 0;

  function refuse(error) {
    editor.mark(error.line ?? null);
    const where = error.line ? `Line ${error.line}. ` : "";
    renew(result, el("p", { class: "error" }, where + error.message),
      error.line ? el("p", {}, el("button", { type: "button", id: "go", onclick: () => editor.select(error.line) },
        `Go to line ${error.line}`)) : null);
  }

  async function check() {
    const mine = ++round;
    try {
      const plan = await call("/bound", { problem: editor.text.value });
      if (mine === round) { editor.mark(null); renew(result, ...boundPreview(plan)); }
    } catch (error) {
      if (mine !== round) return;
      refuse(error);
      if (error.status === 0) timer = setTimeout(check, POLL);
    }
  }

  editor.text.addEventListener("input", () => {
    editor.mark(null);
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  });
  return { editor, result, refuse, check };
}

const field = (id, label, input, hint) => el("div", {}, el("label", { for: id }, label), input,
  el("p", { class: "hint" }, hint));

function studyForm(problem) {
  const name = el("input", { id: "name", required: true, maxlength: 200, autocomplete: "off" });
  const sampler = el("select", { id: "sampler" }), threshold = el("select", { id: "threshold" });
  const expiry = el("input", { id: "expiry", type: "number", min: "0", step: "any", value: "24" });
  // Until the samplers are known there is nothing to start with.
  const start = el("button", { type: "submit", class: "first", disabled: true }, "Start the study");
  const trouble = el("div");
  let key = newKey();

  async function submit(event) {
    event.preventDefault();
    start.disabled = true;
    trouble.replaceChildren();
    try {
      const made = await call("/studies", { name: name.value, problem: problem.editor.text.value,
        sampler: sampler.value, threshold: threshold.value,
        expire_after: expiry.value ? 3600 * Number(expiry.value) : null }, key);
      location.assign(studyPage(made.name));
    } catch (error) {
      start.disabled = false;
      if (document.activeElement === document.body) start.focus();
      if (error.line) problem.refuse(error); else showError(error, trouble);
    }
  }

  function offer(setup) {
    sampler.append(...setup.samplers.map((one) => el("option", { value: one }, one)));
    threshold.append(...setup.thresholds.map((one) => el("option", { value: one }, one)));
    sampler.value = setup.sampler;
    threshold.value = setup.threshold;
    start.disabled = false;
  }

  // As in the small forms, a request has one name until something else is written.
  const form = el("form", { oninput: () => { key = newKey(); }, onsubmit: submit },
    field("name", "Name of the study", name, "One line; it cannot be changed."),
    el("label", { for: "problem" }, "Problem file"),
    el("p", { class: "hint", id: "problem-hint" }, "Paste one, or change this one. It is checked while you write. Means are optional."),
    problem.editor.box,
    el("div", { class: "columns" },
      field("sampler", "Sampler", sampler, "How arms are chosen."),
      field("threshold", "Threshold", threshold, "When to stop; tilt, mixture and kk21 are proven to keep the allowed error."),
      field("expiry", "Pulls expire after (hours)", expiry, "The arm of an expired pull may be asked for again. Empty: never.")),
    section("Before you start", "bound", problem.result),
    trouble, el("p", { class: "buttons" }, start));
  return { form, offer };
}

export async function showCreateForm() {
  const problem = checkedProblem();
  const { form, offer } = studyForm(problem);
  begin("New study", form);
  document.querySelector("nav a[href$='new']").setAttribute("aria-current", "page");
  let setup = null;
  while (!setup) {
    try { setup = await learnRole(); } catch (error) {
      showPassingError(error);
      await pause(POLL);
    }
  }
  clearError();
  if (!may("run")) {
    form.replaceChildren(el("p", {}, "You may only watch. To start a study, use a token of the role run."));
    return;
  }
  offer(setup);
  await problem.check();
}
