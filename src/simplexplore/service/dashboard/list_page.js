// The list of studies.
import { ROOT, studyPage } from "./address.js";
import { POLL, call, pause } from "./api.js";
import { el, renew, whole } from "./dom.js";
import { number, percent, time } from "./numbers.js";
import { begin, clearError, showPassingError } from "./page.js";
import { isRoleKnown, learnRole, may } from "./role.js";
import { FEW, bar, pictured, table } from "./table.js";

const MANY = 200;   // studies shown at a time
const PAGE = 1000;  // studies read at a time

const none = () => [el("p", {}, "There are no studies yet."), may("run")
  ? el("p", {}, el("a", { href: `${ROOT}new` }, "Start the first one"), " with a problem file.")
  : el("p", {}, "Somebody with a run token can start one.")];

const list = (shown, total) => table(
  `${number(shown.length)} of ${number(total)} ${total === 1 ? "study" : "studies"}, the latest change first`,
  ["Study", "State", "Evidence", "Rewards", "Pending", "Allowed error", "Last change"],
  shown.map((one) => [
    el("a", { id: `study-${one.name}`, href: studyPage(one.name) }, one.name),
    ...("trouble" in one ? damaged(one) : [
      el("span", { class: `state ${one.state}` }, one.state),
      pictured(percent(one.progress), ...bar(one.progress ?? 0)),
      number(one.rewards), number(one.pending), number(one.delta), whole(time(one.changed))]),
  ]), [3, 4, 5]);

// Its numbers may not be right: what is wrong stands in their place.
const damaged = (one) => [el("span", { class: "state damaged" }, "damaged"),
  one.trouble.replace(/^damaged: /, ""), null, null, null, null];

// Reads studies into a map. Those that change move to the front: pages are read until one holds
// nothing new, or to the end if the last time was interrupted.
function reader(studies) {
  let complete = false;
  return async () => {
    const enough = complete;
    complete = false;
    for (let after = ""; after !== null;) {
      const page = await call(`/studies?limit=${PAGE}${after}`);
      const old = page.studies.every((one) => studies.get(one.name)?.changed === one.changed);
      for (const one of page.studies) studies.set(one.name, one);
      after = "next" in page && !(enough && old) ? `&after=${encodeURIComponent(page.next)}` : null;
    }
    complete = true;
  };
}

export async function showList() {
  const place = el("div");
  const filter = el("input", { id: "filter", type: "search", oninput: () => draw() });
  const search = el("div", { hidden: true }, el("label", { for: "filter" }, "Show names that contain"), filter);
  begin("Studies", search, place);
  document.querySelector(".brand").setAttribute("aria-current", "page");
  const studies = new Map(), read = reader(studies);

  function draw() {
    search.hidden = studies.size <= FEW;
    const wanted = filter.value.toLowerCase();
    const found = [...studies.values()].filter((one) => one.name.toLowerCase().includes(wanted));
    const shown = found.sort((a, b) => b.changed - a.changed).slice(0, MANY);
    renew(place, ...(studies.size ? [list(shown, studies.size)] : none()));
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
