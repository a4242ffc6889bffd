// What a study is, and what can be changed about it as a whole.
import { call } from "./api.js";
import { dim, el, renew } from "./dom.js";
import { act, smallForm } from "./form.js";
import { notificationForm } from "./notifications.js";
import { number, time } from "./numbers.js";
import { problemFile } from "./problem_file.js";
import { may } from "./role.js";
import { workerSnippets } from "./worker_snippets.js";

// What it is, in a line.
function circumstances(status) {
  const goal = status.stop_when ?? {};
  return [`${status.sampler}, ${status.scenario}, threshold ${status.threshold}`,
    goal.budget ? `stops after ${number(goal.budget)} samples; delta is not guaranteed`
      : `allowed error ${number(status.delta)} (${status.proven ? "proven" : "a heuristic"})`,
    ...(status.epsilon ? [`allowed loss ${number(status.epsilon)}`] : []),
    ...(goal.regret ? [`stops at regret ${number(goal.regret)}`] : []),
    `since ${time(status.created)}`].join("; ");
}

// Buttons that fit the study's state.
function switches({ path, status: { state }, changed }) {
  const to = (text, action, done) => act(text, done, async () => {
    await call(`${path}/${action}`, {});
    await changed();
  }, { id: `switch-${action}` });
  return el("p", { class: "buttons" }, ...[
    state === "running" ? to("Pause", "pause", "Paused.") : null,
    state === "paused" ? to("Resume", "resume", "Resumed.") : null,
    state === "archived" ? to("Bring it back", "resume", "It is resumed.") : null,
    state !== "archived" && may("admin") ? to("Archive", "archive", "Archived.") : null,
  ].filter(Boolean));
}

export function settingsTab(study) {
  const about = dim(""), buttons = el("div"), stop = el("div"), goOn = el("div"), notify = el("div"), file = el("div"), programs = el("div");
  function draw() {
    about.textContent = circumstances(study.status);
    if (may("run")) renew(buttons, switches(study));
    stop.hidden = Boolean(study.status.answer) || !study.status.policy;
  }

  function furnish() {
    const { name, path, status, measured, problem, changed } = study;
    if (may("admin")) {
      stop.append(smallForm("Good enough: say why", "Stops the study with what is known now. How sure that is holds; the confidence wanted is not promised.",
        "Stop now", async (reason, key) => {
          await call(`${path}/stop`, { reason }, key);
          await changed();
        }));
    }
    if (may("admin") && !status.stop_when?.budget) { // samples that are spent end it whatever the error
      goOn.append(smallForm("A smaller allowed error", "To go on with more confidence; this cannot be undone.",
        "Extend the study", (text, key) => call(`${path}/extension`, { delta: Number(text) }, key)));
    }
    notify.append(notificationForm(name));
    file.append(problemFile(problem));
    programs.append(...workerSnippets(name, measured));
  }
  return { id: "settings", title: "Settings", draw, furnish, content: [about, buttons,
    el("div", { class: "pair" },
      el("div", {}, stop, goOn, el("h3", {}, "Notifications"), notify),
      el("section", { "aria-label": "Workers" }, el("h3", {}, "Problem"), file, el("h3", {}, "Workers"),
        dim("A program that asks and tells. Any number may work at the same time."), programs))] };
}
