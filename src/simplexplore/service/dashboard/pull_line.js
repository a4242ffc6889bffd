// A pull as a line: a field for its reward, a name if it is somebody else's, or what became of it.
import { el } from "./dom.js";
import { act } from "./form.js";
import { myName } from "./my_name.js";
import { number, time } from "./numbers.js";
import { outcomeFields } from "./outcome_fields.js";
import { showError } from "./page.js";
import { question } from "./unlikely.js";

// What an outcome says, in a few letters.
const short = ({ reward, measured = {} }) => [number(reward),
  ...Object.entries(measured).map(([name, value]) => `${name} ${number(value)}`)].join(", ");

// `actions`: tell, release, strike, take; each is given the line.
export function pullLine(pull, measured, actions) {
  const place = el("div", { class: measured.length ? "pull measured" : "pull", id: `pull-${pull.id}` });
  const what = el("span", { class: "arm", title: `${pull.id}, asked ${time(pull.at)}` }, el("strong", {}, pull.arm));
  const wrong = el("div", { class: "wrong" });
  const line = { pull, place, open, ask, finish, isOpen: true, inputs: [], read: null, outcome: "" };
  const small = (text, done, name, work, label) => act(text, done, () => work(line),
    { class: "small", id: `${name}-${pull.id}`, "aria-label": `${label}, pull ${pull.id}` });

  function open() {
    line.isOpen = true;
    if (pull.by && myName() && pull.by !== myName()) {
      line.inputs = [];
      place.replaceChildren(el("div", { class: "others" }, what, el("span", { class: "told" }, pull.by),
        small("Take over", "It is yours.", "take", actions.take, `Take over ${pull.arm} of ${pull.by}`)));
      return;
    }
    wrong.replaceChildren();
    Object.assign(line, outcomeFields(measured, `reward-${pull.id}`, (name) => (
      { "aria-label": `${name} of ${pull.arm}, pull ${pull.id}`, placeholder: name === "Reward" ? "reward" : name })));
    place.replaceChildren(el("form", { onsubmit: async (event) => {
      event.preventDefault();
      await attempt(() => actions.tell(line));
    } }, what, ...line.inputs, el("button", { type: "submit", class: "small", id: `tell-${pull.id}` }, "Tell"),
    small("×", "Given back.", "release", actions.release, `${pull.arm} was not made`), wrong));
  }

  async function attempt(work) {
    wrong.replaceChildren();
    try { await work(); } catch (error) { showError(error, wrong); }
  }

  // Whether a reward that looks impossible is meant.
  function ask(found, accept) {
    wrong.replaceChildren(question(found, (value) => {
      line.inputs[0].value = value;
      attempt(() => actions.tell(line));
    }, () => attempt(() => accept(line))));
    wrong.querySelector("button").focus();
  }

  // `outcome`: what was told here, or in words why the pull is not to be made any more.
  function finish(outcome) {
    line.isOpen = false;
    line.inputs = [];
    const isTold = typeof outcome !== "string";
    line.outcome = isTold ? short(outcome) : outcome;
    place.replaceChildren(el("div", {}, what, el("span", { class: "told" }, line.outcome),
      isTold ? small("Strike out", "Struck out.", "strike", actions.strike, `Strike out ${line.outcome}, the reward of ${pull.arm}`) : ""));
  }
  open();
  return line;
}
