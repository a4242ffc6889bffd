// The list of studies: searched by name, sorted, and chosen from for a comparison.
import { ROOT, comparison, studyPage } from "./address.js";
import { POLL, call, pause } from "./api.js";
import { el, renew, whole } from "./dom.js";
import { number, percent, time } from "./numbers.js";
import { begin, clearError, showPassingError } from "./page.js";
import { isRoleKnown, learnRole, may } from "./role.js";
import { bar, pictured, table } from "./table.js";

const MANY = 200;   // studies shown at a time
const PAGE = 1000;  // studies read at a time

const ORDERS = {
  changed: ["the latest change first", (a, b) => b.changed - a.changed],
  created: ["the newest first", (a, b) => b.created - a.created],
  name: ["by name", (a, b) => a.name.localeCompare(b.name)],
  progress: ["the furthest first", (a, b) => (b.progress ?? -1) - (a.progress ?? -1)],
  rewards: ["the most rewards first", (a, b) => b.rewards - a.rewards],
};

const none = () => [el("p", {}, "There are no studies yet."), may("run")
  ? el("p", {}, el("a", { href: `${ROOT}new` }, "Start the first one"), " with a problem file.")
  : el("p", {}, "Somebody with a run token can start one.")];

const list = (shown, total, order, box) => table(
  `${number(shown.length)} of ${number(total)} ${total === 1 ? "study" : "studies"}, ${order}`,
  ["Study", "State", "Progress", "Rewards", "Pending", "Allowed error", "Last change", "Compare"],
  shown.map((one) => [
    el("a", { id: `study-${one.name}`, href: studyPage(one.name) }, one.name),
    ...("trouble" in one ? damaged(one) : [
      el("span", { class: `state ${one.state}` }, one.state),
      pictured(percent(one.progress), ...bar(one.progress ?? 0)),
      number(one.rewards), number(one.pending), promised(one), whole(time(one.changed)), box(one.name)]),
  ]), [3, 4, 5]);

// With a budget no error is allowed for: it ends when the samples are spent.
const promised = (one) => one.stop_when?.budget ? `budget ${number(one.stop_when.budget)}` : number(one.delta);

// Its numbers may not be right: what is wrong stands in their place.
const damaged = (one) => [el("span", { class: "state damaged" }, "damaged"),
  one.trouble.replace(/^damaged: /, ""), null, null, null, null, null];

// Reads studies into a map. Those that change move to the front: pages are read until one holds
// nothing new, or to the end if the last time was interrupted.
function reader(studies) {
  let complete = false;
  return async () => {
    const enough = complete;
    complete = false;
    for (let after = ""; after !== null;) {
      const page = await call(`/studies?archived=true&limit=${PAGE}${after}`);
      const old = page.studies.every((one) => studies.get(one.name)?.changed === one.changed);
      for (const one of page.studies) studies.set(one.name, one);
      after = "next" in page && !(enough && old) ? `&after=${encodeURIComponent(page.next)}` : null;
    }
    complete = true;
  };
}

// Whether every word is in a study's name or its state.
const matches = (one, words) => words.every((word) =>
  [one.name, one.state].some((text) => text.toLowerCase().includes(word)));

export async function showList() {
  const place = el("div"), chosen = new Set();
  const filter = el("input", { id: "filter", type: "search", oninput: () => draw() });
  const order = el("select", { id: "order", onchange: () => draw() },
    ...Object.entries(ORDERS).map(([name, [words]]) => el("option", { value: name }, words)));
  const archived = el("input", { id: "archived", type: "checkbox", onchange: () => draw() });
  const compare = el("p", { class: "buttons" });
  const search = el("div", { hidden: true, class: "columns" },
    el("div", {}, el("label", { for: "filter" }, "Search names and states"), filter),
    el("div", {}, el("label", { for: "order" }, "Sort"), order),
    el("label", { class: "check" }, archived, "Show archived studies"));
  begin("Studies", search, place, compare);
  document.querySelector(".brand").setAttribute("aria-current", "page");
  const studies = new Map(), read = reader(studies);

  function compareBox(name) {
    const box = el("input", { id: `compare-${name}`, type: "checkbox", "aria-label": `Compare ${name}`,
      onchange: () => { if (box.checked) chosen.add(name); else chosen.delete(name); offer(); } });
    box.checked = chosen.has(name);
    return box;
  }

  function offer() {
    renew(compare, chosen.size > 1 ? el("a", { class: "button first", id: "compare", href: comparison([...chosen]) },
      `Compare ${chosen.size} studies`) : null);
  }

  function draw() {
    search.hidden = studies.size < 2 && ![...studies.values()].some((one) => one.state === "archived");
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [...studies.values()].filter((one) => archived.checked || one.state !== "archived");
    const found = all.filter((one) => matches(one, words));
    const [said, compareTwo] = ORDERS[order.value];
    renew(place, ...(all.length ? [list(found.sort(compareTwo).slice(0, MANY), all.length, said, compareBox)]
      : studies.size ? [el("p", {}, "All studies are archived.")] : none()));
  }

  for (;;) {
    try {
      if (!isRoleKnown()) await learnRole();
      await read();
      clearError();
      draw();
    } catch (error) { showPassingError(error); }
    await pause(POLL);
  }
}
