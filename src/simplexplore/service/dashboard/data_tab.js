// The data of a study: what happened, what was wrong with it, and how more comes in and goes out.
import { call, download, newKey } from "./api.js";
import { csvUpload } from "./csv_upload.js";
import { dim, el, renew, whole } from "./dom.js";
import { elsewhereForm } from "./elsewhere_form.js";
import { act, smallForm } from "./form.js";
import { number, plural, shortTime, time } from "./numbers.js";
import { announce, showError } from "./page.js";
import { askForReason } from "./reason_dialog.js";
import { may } from "./role.js";
import { sumsForm } from "./sums_form.js";
import { table } from "./table.js";

const RECENT = 10;  // events shown at first

const EVENTS = { asked: "asked", told: "reward", late: "late reward", elsewhere: "reward from elsewhere",
  expired: "expired", extended: "extended", stopped: "stopped", noted: "note", voided: "struck out",
  paused: "paused", archived: "archived", resumed: "resumed", ended: "stopped by hand", assigned: "handed over",
  batch: "sum", confirmed: "meant" };

const remark = (one) => one.event === "extended" ? `allowed error ${number(one.delta)}`
  : one.event === "voided" ? `event ${one.voids}: ${one.reason}` : one.text ?? null;

// A reward, and what was measured beside it.
const outcome = (one) => [number(one.reward),
  ...Object.entries(one.measured ?? {}).map(([name, value]) => `${name} ${number(value)}`)].join(", ");

// With `strike`, rewards have a button that strikes them out.
function recent(events, shown, strike) {
  const voided = new Set(events.filter((one) => one.event === "voided").map((one) => one.voids));
  return table("The latest first", ["What", "Arm", "Reward or remark", "Time", ...(strike ? ["Wrong?"] : [])],
    [...events].reverse().slice(0, shown).map((one) => [
      whole(EVENTS[one.event] ?? one.event), one.arm ?? null,
      one.reward === undefined ? remark(one) : voided.has(one.seq)
        ? el("span", {}, el("s", {}, outcome(one)), " struck out") : outcome(one),
      el("span", { class: "whole", title: time(one.at) }, shortTime(one.at)),
      ...(!strike ? [] : [one.reward === undefined || voided.has(one.seq) ? null
        : el("button", { type: "button", class: "small", id: `void-${one.seq}`,
          "aria-label": `Strike out the reward ${number(one.reward)} of ${one.arm}`, onclick: () => strike(one) }, "Strike out")]),
    ]));
}

async function save(path, file) {
  const address = URL.createObjectURL(await download(path));
  el("a", { href: address, download: file }).click();
  URL.revokeObjectURL(address);
}

const exports = (name, path) => el("p", { class: "buttons" }, ...["csv", "json"].map((kind) =>
  act(`Export as ${kind.toUpperCase()}`, "Exported.", () => save(`${path}/export?format=${kind}`, `${name}.${kind}`))));

export function dataTab(study) {
  const happened = el("section", { "aria-label": "Recent events" }), ways = el("div"), rest = el("div");
  let showsMore = false;

  async function strike(one) {
    const reason = await askForReason("strike", `${outcome(one)}, of ${one.arm}, told ${time(one.at)}`);
    if (reason === null) return;
    try {
      await call(`${study.path}/voids`, { event: one.seq, reason }, newKey());
      announce("Struck out.");
      await study.changed();
    } catch (error) { showError(error, document.getElementById("trouble")); }
  }

  function draw() {
    const { status, events } = study;
    const canStrike = may("run") && status.state !== "archived";
    const more = el("button", { type: "button", id: "more-events", "aria-expanded": String(showsMore),
      onclick: () => { showsMore = !showsMore; draw(); } },
    showsMore ? `Show the last ${RECENT}` : `Show the last ${plural(events.length, "event")}`);
    renew(happened, ...(events.length
      ? [recent(events, showsMore ? events.length : RECENT, canStrike ? strike : null), events.length > RECENT ? el("p", {}, more) : null]
      : [dim("None yet.")]));
  }

  function furnish() {
    const { name, path, status, changed, measured } = study;
    const sums = may("run") ? sumsForm(study) : null;
    if (may("run")) {
      ways.append(el("h3", {}, "An arm that was played elsewhere"), elsewhereForm(path, status.arms.map((arm) => arm.arm), measured, changed),
        ...(sums ? [el("h3", {}, "Sums by arm"), sums] : []),
        el("h3", {}, "A file"), ...csvUpload(path, changed, measured));
      rest.append(smallForm("A remark for the journal", "", "Note it", (text, key) => call(`${path}/notes`, { text }, key)));
    }
    rest.append(exports(name, path));
  }
  return { id: "data", title: "Data", draw, furnish, content: [el("div", { class: "pair data" },
    el("div", {}, el("h3", {}, "What happened"), happened, rest), ways)] };
}
