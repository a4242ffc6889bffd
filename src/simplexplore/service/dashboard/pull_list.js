// Pulls to make, a line each: Enter tells a reward and goes to the next field. A line that is done
// stays until more pulls are asked for, so that nothing moves under a finger.
import { call, newKey } from "./api.js";
import { el } from "./dom.js";
import { act, field, form } from "./form.js";
import { myName, nameField } from "./my_name.js";
import { plural } from "./numbers.js";
import { said } from "./outcome_fields.js";
import { announce } from "./page.js";
import { pullLine } from "./pull_line.js";
import { askForReason } from "./reason_dialog.js";

const MANY = 50;  // lines at most

export function pullList(study) {
  const { path, changed, measured } = study;
  const lines = new Map();  // by the pull's id: those that are told stay
  const list = el("div", { id: "pending", class: "pulls", role: "group", "aria-label": "Pulls to make", tabindex: 0 });
  const count = el("p", { id: "pull-count" }), rest = el("p", { class: "dim", hidden: true }, "and more");
  const all = act("Tell all that are filled in", "Done.", tellAll, { id: "tell-all" });
  const wanted = el("input", { id: "ask-n", type: "number", min: 1, max: 10000, value: 1, required: true });
  const everybody = el("input", { id: "everybody", type: "checkbox", onchange: anew });
  const others = el("label", { class: "check", hidden: true }, everybody, el("span", {}));
  const actions = { tell: (line) => tell([line]), release, strike, take };

  // What is being told, and how often something was: a list that was asked for before is out of date.
  let telling = Promise.resolve(), version = 0;

  async function tell(told, unlikely = "ask") {
    const rewards = told.map(({ pull, read }) => ({ pull: pull.id, ...read() }));
    let found;
    version += 1;
    try {
      const posted = call(`${path}/rewards`, { rewards, unlikely });
      telling = posted.catch(() => null);
      found = (await posted).rewards;
    } catch (error) {
      if (!error.unlikely) throw error;
      for (const one of error.unlikely) told[one.row].ask(one, (line) => tell([line], "accept"));
      return;
    }
    version += 1;
    told.forEach((line, i) => line.finish(rewards[i]));
    focusNext(told.at(-1));
    announce(said(found));
    await Promise.all([refresh(), changed()]);
  }

  async function tellAll() {
    const filled = fields().filter(({ inputs }) => inputs.some((input) => input.value.trim()));
    if (!filled.length) throw new Error("No reward is filled in.");
    await tell(filled);
  }

  async function strike({ pull, outcome, open }) {
    const reason = await askForReason("strike", `${outcome}, of ${pull.arm}`);
    if (reason === null) return;
    await call(`${path}/voids`, { pull: pull.id, reason }, newKey());
    version += 1;
    open();
    await changed();
  }

  // It was not made: its arm may be asked for again.
  async function release(line) {
    const reason = await askForReason("release", `${line.pull.arm}, pull ${line.pull.id}`);
    if (reason === null) return;
    await call(`${path}/pulls/release`, { pulls: [line.pull.id], reason });
    version += 1;
    line.finish(reason);
    focusNext(line);
    await Promise.all([refresh(), changed()]);
  }

  async function take(line) {
    await call(`${path}/pulls/assign`, { pulls: [line.pull.id], by: myName() });
    line.pull.by = myName();
    line.open();
    line.inputs[0].focus();
    await refresh();
  }

  const unfinished = () => [...lines.values()].filter(({ isOpen }) => isOpen);
  const fields = () => unfinished().filter(({ inputs }) => inputs.length);

  // The next field, from the top again after the last; then the form that asks for more.
  function focusNext(line) {
    const order = [...lines.values()], at = order.indexOf(line);
    const next = [...order.slice(at), ...order.slice(0, at)].find(({ inputs }) => inputs.length);
    (next ? next.inputs[0] : wanted).focus();
  }

  // Show pulls that came; what is typed stays.
  async function refresh() {
    const mine = myName() && !everybody.checked ? `&by=${encodeURIComponent(myName())}` : "";
    let pulls, next, seen;
    do {
      await telling;
      seen = version;
      ({ pulls, next } = await call(`${path}/pulls?limit=${MANY}${mine}`));
    } while (seen !== version);
    const ids = new Set(pulls.map((pull) => pull.id));
    // Told elsewhere, or expired: what somebody is typing stays.
    const isTouched = ({ place, inputs }) => place.contains(document.activeElement) || inputs.some((input) => input.value);
    for (const line of unfinished().filter(({ pull }) => !ids.has(pull.id))) {
      if (isTouched(line)) line.finish("told elsewhere, or expired");
      else remove(line);
    }
    for (const pull of pulls) {
      const known = lines.get(pull.id);
      if (known && !known.isOpen) known.open();  // its reward was struck out
      if (known) continue;
      lines.set(pull.id, pullLine(pull, measured, actions));
      list.append(lines.get(pull.id).place);
    }
    rest.hidden = !next;
    const shown = next ? `The first ${MANY} pulls to make` : `${plural(pulls.length, "pull")} to make`;
    count.textContent = pulls.length ? shown : "No pull is pending.";
    const hidden = study.status.pending - pulls.length;
    others.hidden = !myName() || !(everybody.checked || (hidden > 0 && !next));
    others.lastChild.textContent = everybody.checked ? "Show the pulls of others" : `Show ${plural(hidden, "pull")} of others`;
    all.hidden = fields().length < 2;
  }

  function remove({ pull, place }) {
    lines.delete(pull.id);
    place.remove();
  }

  const clear = (isGone) => [...lines.values()].filter(isGone).forEach(remove);

  // After a change of whose pulls are shown.
  async function anew() {
    clear(() => true);
    await refresh();
  }

  const asking = form({ id: "ask", first: true, class: "line" }, [field("ask-n", "Pulls wanted", wanted)], "Ask", async (key) => {
    const given = (await call(`${path}/pulls`, { n: Number(wanted.value), by: myName() }, key)).pulls;
    clear(({ isOpen }) => !isOpen);
    await Promise.all([refresh(), changed()]);
    lines.get(given[0]?.id)?.inputs[0]?.focus();
    return `Play ${given.slice(0, 5).map((pull) => pull.arm).join(", ")}.`;
  });
  return { asking, nodes: [count, list, rest, others, el("div", { class: "below" }, all, nameField(anew))], refresh };
}
