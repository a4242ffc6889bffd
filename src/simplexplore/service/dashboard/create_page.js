// A new study: its problem as a form and as a file, each following the other, checked while one writes.
import { studyPage } from "./address.js";
import { POLL, call, newKey, pause } from "./api.js";
import { boundPreview } from "./bound_preview.js";
import { dim, el, renew, section } from "./dom.js";
import { field } from "./form.js";
import { begin, clearError, showError, showPassingError } from "./page.js";
import { problemEditor } from "./problem_editor.js";
import { problemForm } from "./problem_form.js";
import { learnRole, may } from "./role.js";

const PAUSE = 500;  // milliseconds without a key pressed after which the file is checked

const EXAMPLE = `arms = ["pizza", "salmon", "lentils"]
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

// The problem in both ways, and what the service says of it.
function checkedProblem(settings) {
  const editor = problemEditor(), form = problemForm(fromForm);
  const result = el("div", { id: "result", "aria-live": "polite" }, dim("Name what there is to choose from, or write the file."));
  let timer = 0, round = 0;

  function refuse(error) {
    editor.mark(error.line ?? null);
    const where = error.line ? `Line ${error.line}. ` : "";
    renew(result, el("p", { class: "error" }, where + error.message),
      error.line ? el("p", {}, el("button", { type: "button", id: "go", onclick: () => editor.select(error.line) },
        `Go to line ${error.line}`)) : null);
  }

  // Only the latest of several questions matters.
  async function inTurn(work) {
    const mine = ++round, isLatest = () => mine === round;
    try { await work(isLatest); } catch (error) {
      if (!isLatest()) return;
      refuse(error);
      if (error.status === 0) timer = setTimeout(() => inTurn(work), POLL);
    }
  }

  async function look(isLatest, isFromForm) {
    const plan = await call("/bound", { problem: editor.text.value, ...settings() });
    if (!isLatest()) return;
    editor.mark(null);
    if (!isFromForm) form.fill(plan.document);
    renew(result, ...boundPreview(plan));
  }

  function later(work) {
    clearTimeout(timer);
    timer = setTimeout(() => inTurn(work), PAUSE);
  }

  function fromForm(document) {
    later(async (isLatest) => {
      const { problem } = await call("/problem", { document });
      if (!isLatest()) return;
      editor.text.value = problem;
      editor.mark(null);
      await look(isLatest, true);
    });
  }

  const check = () => inTurn((isLatest) => look(isLatest, false));

  function write(text) {
    editor.text.value = text;
    editor.mark(null);
    return check();
  }

  editor.text.addEventListener("input", () => {
    editor.mark(null);
    later((isLatest) => look(isLatest, false));
  });
  return { editor, form, result, refuse, check, write };
}

function studyForm() {
  const name = el("input", { id: "name", required: true, maxlength: 200, autocomplete: "off" });
  const sampler = el("select", { id: "sampler" }), threshold = el("select", { id: "threshold" });
  const expiry = el("input", { id: "expiry", type: "number", min: "0", step: "any", value: "24" });
  // Until the samplers are known it is the service that chooses.
  const problem = checkedProblem(() => ({ sampler: sampler.value || undefined, threshold: threshold.value || undefined }));
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
    for (const choice of [sampler, threshold]) choice.addEventListener("change", problem.check);
    start.disabled = false;
  }

  // As in the small forms, a request has one name until something else is written.
  const form = el("form", { oninput: () => { key = newKey(); }, onsubmit: submit },
    field("name", "Name of the study", name, "One line; it cannot be changed."),
    el("div", { class: "pair both" },
      el("section", { "aria-labelledby": "form-title" }, el("h2", { id: "form-title" }, "As a form"), problem.form.node),
      el("section", { "aria-labelledby": "file-title" }, el("h2", { id: "file-title" }, "As a file"),
        el("p", { class: "hint", id: "problem-hint" }, "It says what the form says; change either. ",
          el("button", { type: "button", class: "small", id: "example", onclick: () => problem.write(EXAMPLE) }, "Fill in an example")),
        problem.editor.box)),
    section("Before you start", "bound", problem.result),
    el("details", { id: "more-settings" }, el("summary", {}, "How it is explored"), el("div", { class: "columns" },
      field("sampler", "Sampler", sampler, "How arms are chosen."),
      field("threshold", "Threshold", threshold, "When to stop; tilt, mixture and kk21 are proven to keep the allowed error."),
      field("expiry", "Pulls expire after (hours)", expiry, "The arm of an expired pull may be asked for again. Empty: never."))),
    trouble, el("p", { class: "buttons" }, start));
  return { form, offer };
}

export async function showCreateForm() {
  const { form, offer } = studyForm();
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
}
