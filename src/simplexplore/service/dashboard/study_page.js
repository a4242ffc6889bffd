// One study, redrawn whenever it changes.
import { call, listen, newKey, pause } from "./api.js";
import { csvUpload } from "./csv_upload.js";
import { dim, el, renew, section } from "./dom.js";
import { evidence } from "./evidence_chart.js";
import { means } from "./means_chart.js";
import { isWanted, watcher } from "./notifications.js";
import { number, plural, time } from "./numbers.js";
import { announce, begin, clearError, main, showError, showPassingError } from "./page.js";
import { problemView } from "./problem_view.js";
import { elsewhereForm, pullForms } from "./pull_forms.js";
import { askForReason } from "./reason_dialog.js";
import { isRoleKnown, learnRole, may } from "./role.js";
import { shares } from "./share_chart.js";
import { actions, switches } from "./study_actions.js";
import { figures, inWords } from "./study_summary.js";
import { RECENT, arms, comparisons, constraints, inOrder, measuredLimits, outcome, recent, warning } from "./study_tables.js";
import { FEW } from "./table.js";
import { workerSnippets } from "./worker_snippets.js";

const REDRAW = 1000;  // milliseconds at least between two redrawings
const MORE = 200;     // events of which the latest are shown
const MOST_MEANS = 100;  // arms whose means over time a study keeps

// The page without content, and the places that content goes to.
function layOut(name) {
  const places = Object.fromEntries(["words", "switches", "run", "figures", "chart", "shares", "means", "arms", "limits", "measured", "edges",
    "recent", "problem", "workers", "acts"].map((id) => [id, el("div", { id: `at-${id}` })]));
  places.about = dim("");
  places.running = section("Run it", "run", places.run);
  places.running.hidden = true;
  places.measuring = section("Measured limits", "measured", places.measured);
  places.content = el("div", { hidden: true }, places.about, places.words, places.switches, places.running, places.figures,
    el("div", { class: "pair" }, section("Evidence", "evidence", places.chart),
      section("Shares of the samples", "shares", places.shares)),
    section("Means over time", "means", places.means),
    section("Arms", "arms", places.arms),
    places.measuring,
    section("Constraints", "constraints", places.limits),
    section("Evidence against neighbouring mixes", "edges", places.edges),
    section("Recent events", "recent", places.recent),
    section("Problem", "problem-view", places.problem),
    section("Workers", "workers", dim("A program that asks and tells. Any number may work at the same time."), places.workers),
    section("Actions", "acts", places.acts));
  begin(name, places.content);
  document.getElementById("trouble").append(dim("Reading…"));  // until there is content, or trouble
  return places;
}

function draw(places, study) {
  const { status, points, events } = study;
  const words = inWords(status);
  const tags = status.tags.length ? `, tags: ${status.tags.join(", ")}` : "";
  places.about.replaceChildren(el("span", { class: `state ${status.state}` }, status.state),
    ` ${status.sampler}, ${status.scenario}, threshold ${status.threshold} ` +
    `(${status.proven ? "proven" : status.stop_when?.budget ? "delta is not guaranteed" : "a heuristic"}), since ${time(status.created)}${tags}`);
  renew(places.words, el("div", { class: status.answer ? "answer done" : "answer" },
    ...words.map((text) => el("p", {}, text))), warning(status));
  renew(places.switches, switches(study.path, status, study.changed));
  renew(places.figures, figures(status));
  // Two charts side by side where there is room.
  const inner = main.clientWidth - 2, width = Math.max(280, inner >= 900 ? (inner - 24) / 2 : inner);
  const nothing = dim("Nothing to draw until every arm has a reward.");
  renew(places.chart, ...(points.length ? evidence(points, width, status.decision) : [nothing]));
  const byArm = shares(points, status.arms.map((arm) => arm.arm), width, status.decision);
  renew(places.shares, ...(byArm ?? [points.length ? dim("Recorded for newer rewards only.") : nothing.cloneNode(true)]));
  drawMeans(places, study);
  drawArms(places, study);
  renew(places.limits, status.constraints.length + status.exploration.length ? constraints(status) : dim("There are none."));
  places.measuring.hidden = !status.measured;
  if (status.measured) renew(places.measured, ...measuredLimits(status));
  renew(places.edges, status.edges && status.edges.length ? comparisons(status) : dim("None yet."));
  drawEvents(places, study);
  places.running.hidden = !may("run") || status.state === "archived";
  if (may("run")) places.asking.hidden = status.state !== "running";
  // Heard only when the answer or the best mix changes, not with every reward.
  if ((status.answer || status.policy) && words[0] !== study.heard) announce(study.heard = words[0]);
}

// A button that shows all arms instead of a few, and back again.
function moreArms(id, few, number, all, redraw) {
  return number > few ? el("p", {}, el("button", { type: "button", id, "aria-expanded": String(all), onclick: () => redraw(!all) },
    all ? `Show the first ${few}` : `Show all ${number} arms`)) : null;
}

function drawMeans(places, study) {
  const { status, points, showsAllMeans: all } = study, width = Math.max(280, main.clientWidth - 2), number = status.arms.length;
  const few = width < 600 ? FEW / 2 : FEW;
  if (number > MOST_MEANS) return renew(places.means, dim(`Kept for up to ${MOST_MEANS} arms; the means of now are below.`));
  const drawn = means(points, status, inOrder(status.arms, few).slice(0, all ? number : few), width);
  renew(places.means, ...(drawn ?? [dim("Nothing to draw until there are rewards.")]), drawn && moreArms("all-means", few, number, all,
    (next) => { study.showsAllMeans = next; drawMeans(places, study); }));
}

function drawArms(places, study) {
  const number = study.status.arms.length, all = study.showsAllArms;
  renew(places.arms, el("div", { class: "wide" }, arms(study.status, all)), moreArms("all-arms", FEW, number, all,
    (next) => { study.showsAllArms = next; drawArms(places, study); }));
}

function drawEvents(places, study) {
  const { events } = study, shown = study.showsMore ? MORE : RECENT;
  const voided = new Set(events.filter((one) => one.event === "voided").map((one) => one.voids));
  const strike = may("run") && study.status.state !== "archived" ? async (one) => {
    const reason = await askForReason(`${outcome(one)}, of ${one.arm}, told ${time(one.at)}`);
    if (reason === null) return;
    try {
      await call(`${study.path}/voids`, { event: one.seq, reason }, newKey());
      announce("Struck out.");
      await study.changed();
    } catch (error) { showError(error, document.getElementById("trouble")); }
  } : null;
  places.recent.classList.toggle("brief", !study.showsMore);
  renew(places.recent, ...(events.length ? [recent(events, shown, voided, strike),
    events.length > RECENT ? el("p", {}, el("button", { type: "button", id: "more-events", "aria-expanded": String(study.showsMore),
      onclick: () => { study.showsMore = !study.showsMore; drawEvents(places, study); } },
    study.showsMore ? `Show the last ${RECENT}` : `Show the last ${plural(Math.min(MORE, events.length), "event")}`)) : null]
    : [dim("None yet.")]));
}

// What stays as it is while the study changes: forms, the problem, snippets.
async function furnish(places, study) {
  const { path, status, changed } = study;
  const measured = (status.measured ?? []).map((row) => row.name);
  const [problem, acts] = [await problemView(path, status.measured), await actions(study.name, path, status)];
  if (may("run")) {
    const { asking, place, refresh, tell } = pullForms(path, changed, measured);
    study.refreshPulls = refresh;
    places.asking = asking;
    places.run.append(asking, place,
      el("details", { id: "more-ways" }, el("summary", { id: "show-ways" }, "Rewards from elsewhere, or from a file"),
        el("h3", {}, "An arm that was played elsewhere"), elsewhereForm(status.arms.map((arm) => arm.arm), tell, measured),
        el("h3", {}, "Many at once"), ...csvUpload(path, changed, measured)));
  }
  places.workers.append(...workerSnippets(study.name, measured));
  places.problem.append(...problem);
  places.acts.append(...acts);
}

// When the last reward came, or when somebody asked for the first time after it.
function since(events) {
  const last = events.findLastIndex((one) => "reward" in one || one.event === "resumed");
  const asked = events.slice(last + 1).find((one) => one.event === "asked");
  return (asked ?? events[last])?.at ?? Infinity;
}

export async function showStudy(name) {
  const path = `/studies/${encodeURIComponent(name)}`;
  const places = layOut(name), notify = watcher(name);
  const study = { name, path, changed, status: null, points: [], events: [], showsAllArms: false, showsAllMeans: false, showsMore: false, heard: "" };

  async function refresh() {
    if (!isRoleKnown()) await learnRole();
    study.status = await call(`${path}/status`);
    if (!study.isFurnished) await furnish(places, study);
    study.isFurnished = true;
    const seen = study.points.at(-1)?.seq ?? 0, recently = Math.max(0, study.status.seq - MORE);
    study.points = study.points.concat((await call(`${path}/history?after=${seen}`)).points);
    study.events = (await call(`${path}/journal?after=${recently}&limit=${MORE + 100}`)).events;
    const { seq, pending } = study.status;
    if (may("run") && (pending !== study.pending || (pending && seq !== study.seq))) await study.refreshPulls();
    Object.assign(study, { seq, pending });
    clearError();
    places.content.hidden = false;  // first, since charts are as wide as their place
    draw(places, study);
    notify(study.status, since(study.events));
  }

  // One refresh at a time, and one more if something changed meanwhile.
  let busy = false, wanted = false;
  async function changed() {
    wanted = true;
    // Hidden pages wait, unless the browser is to say something.
    const waits = () => document.hidden && !isWanted(name);
    if (busy || waits()) return;
    busy = true;
    while (wanted && !waits()) {
      wanted = false;
      try { await refresh(); } catch (error) { showPassingError(error); }
      await pause(REDRAW);
    }
    busy = false;
  }

  window.addEventListener("resize", () => { if (study.status) draw(places, study); });
  document.addEventListener("visibilitychange", changed);
  await changed();
  listen(`${path}/events`, changed);
  setInterval(() => { if (study.status?.pending) changed(); }, 60000);  // a stall is when nothing comes
}
