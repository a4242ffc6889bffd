// Asking for pulls and telling their rewards, by hand: beside the experiment, on a phone.
import { call } from "./api.js";
import { el, renew } from "./dom.js";
import { act, field, form } from "./form.js";
import { number, plural, time } from "./numbers.js";
import { announce, showError } from "./page.js";

const MANY = 50;  // pending pulls shown

const reward = (attributes) => el("input", { inputmode: "decimal", autocomplete: "off", ...attributes });

// A number as people type it: with a decimal comma, too.
export function parsed(text) {
  const value = Number(text.trim().replace(",", "."));
  if (!text.trim() || !Number.isFinite(value)) throw new Error(`“${text}” is not a number.`);
  return value;
}

// Fields for what a pull reports: its reward and, by name, what is measured beside it.
function outcomeFields(measured, id, attributes) {
  const value = reward({ id, ...attributes("Reward") });
  const others = measured.map((name, i) => [name, reward({ id: `${id}-${i}`, ...attributes(name) })]);
  return { inputs: [value, ...others.map(([, input]) => input)],
    read: () => ({ reward: parsed(value.value), ...(measured.length
      ? { measured: Object.fromEntries(others.map(([name, input]) => [name, named(name, input.value)])) } : {}) }) };
}

function named(name, text) {
  if (!text.trim()) throw new Error(`${name} is missing.`);
  try { return parsed(text); } catch (error) { throw new Error(`${name}: ${error.message}`); }
}

const said = (told) => {
  const stopped = told.some((one) => one.stopped) ? " The study has its answer." : "";
  return `${plural(told.length, "reward")} told.${stopped}`;
};

export function pullForms(path, changed, measured) {
  const place = el("div", { id: "pending" });
  const rows = new Map();  // by the pull's id, so that what is typed stays
  let drawn = null;

  async function tell(rewards, key) {
    const told = (await call(`${path}/rewards`, { rewards }, key)).rewards;
    for (const one of told) rows.delete(one.pull);
    announce(said(told));
    await Promise.all([refresh(), changed()]);
    if (document.activeElement === document.body) n.focus();  // the last pull is told
    return said(told);
  }

  function row(pull) {
    const { inputs, read } = outcomeFields(measured, `reward-${pull.id}`, (what) => (
      { "aria-label": `${what} of ${pull.arm}, pull ${pull.id}`, placeholder: what === "Reward" ? "reward" : what }));
    const wrong = el("div");
    const one = el("form", { class: measured.length ? "pull measured" : "pull", onsubmit: async (event) => {
      event.preventDefault();
      try { await tell([{ pull: pull.id, ...read() }]); } catch (error) { showError(error, wrong); }
    } }, el("span", { class: "arm" }, el("strong", {}, pull.arm), el("span", { class: "dim" }, ` ${pull.id}, asked ${time(pull.at)}`)),
    ...inputs, el("button", { type: "submit", id: `tell-${pull.id}` }, "Tell"), wrong);
    return { pull, inputs, read, one };
  }

  async function tellAll() {
    const filled = [...rows.values()].filter(({ inputs }) => inputs.some((input) => input.value.trim()));
    if (!filled.length) throw new Error("No reward is filled in.");
    await tell(filled.map(({ pull, read }) => ({ pull: pull.id, ...read() })));
  }

  // Show pulls that came or went; those that stay keep what is typed and the focus.
  async function refresh() {
    const pulls = (await call(`${path}/pulls`)).pulls, ids = new Set(pulls.map((pull) => pull.id));
    for (const id of [...rows.keys()]) if (!ids.has(id)) rows.delete(id);
    for (const pull of pulls.slice(0, MANY)) if (!rows.has(pull.id)) rows.set(pull.id, row(pull));
    const shown = [...rows.values()];
    const now = `${pulls.length} ${[...rows.keys()].join(" ")}`;
    if (now === drawn) return;  // whoever types is not disturbed
    drawn = now;
    renew(place, ...(shown.length ? [
      el("h3", {}, `${plural(pulls.length, "pull")} to make`),
      ...shown.map(({ one }) => one),
      pulls.length > MANY ? el("p", { class: "dim" }, `and ${number(pulls.length - MANY)} more`) : null,
      shown.length > 1 ? act("Tell all that are filled in", "Done.", tellAll, { id: "tell-all", class: "first" }) : null,
    ] : [el("p", { class: "dim" }, "No pull is pending.")]));
  }

  const n = el("input", { id: "ask-n", type: "number", min: 1, max: 10000, value: 1, required: true });
  const asking = form({ id: "ask", first: true, class: "line" }, [field("ask-n", "Pulls wanted", n)], "Ask", async (key) => {
    const given = (await call(`${path}/pulls`, { n: Number(n.value) }, key)).pulls;
    await Promise.all([refresh(), changed()]);
    document.getElementById(`reward-${given[0]?.id}`)?.focus();
    return `Play ${given.slice(0, 5).map((pull) => pull.arm).join(", ")}.`;
  });
  return { asking, place, refresh, tell };
}

// A reward of an arm that was played without being asked for.
export function elsewhereForm(arms, tell, measured) {
  const arm = el("select", { id: "elsewhere-arm" }, ...arms.map((name) => el("option", { value: name }, name)));
  const { inputs, read } = outcomeFields(measured, "elsewhere-reward", () => ({ required: true }));
  return form({ id: "elsewhere" }, [el("div", { class: "columns" }, field("elsewhere-arm", "Arm", arm),
    ...inputs.map((input, i) => field(input.id, i ? measured[i - 1] : "Reward", input)))], "Tell", async (key) => {
    const told = await tell([{ arm: arm.value, ...read() }], key);
    for (const input of inputs) input.value = "";
    return told;
  });
}
