// One study, redrawn whenever it changes.
import { call, listen, pause } from "./api.js";
import { dim, el, renew, section } from "./dom.js";
import { evidence } from "./evidence_chart.js";
import { time } from "./numbers.js";
import { announce, begin, clearError, main, showPassingError } from "./page.js";
import { isRoleKnown, learnRole } from "./role.js";
import { actions } from "./study_actions.js";
import { figures, inWords } from "./study_summary.js";
import { RECENT, arms, comparisons, constraints, recent } from "./study_tables.js";
import { FEW } from "./table.js";

const REDRAW = 1000;  // milliseconds at least between two redrawings

// The page without content, and the places that content goes to.
function layOut(name) {
  const places = Object.fromEntries(["words", "figures", "chart", "arms", "limits", "edges", "recent", "acts"]
    .map((id) => [id, el("div", { id: `at-${id}` })]));
  places.about = dim("");
  places.content = el("div", { hidden: true }, places.about, places.words, places.figures,
    section("Evidence", "evidence", places.chart), section("Arms", "arms", places.arms),
    section("Constraints", "constraints", places.limits),
    section("Against neighbouring mixes", "edges", places.edges),
    section("Recent events", "recent", places.recent), section("Actions", "acts", places.acts));
  begin(name, places.content);
  return places;
}

function draw(places, study) {
  const { status, points, events } = study;
  const words = inWords(status);
  places.about.textContent = `${status.state}, ${status.sampler}, ${status.scenario}, threshold ${status.threshold} ` +
    `(${status.proven ? "proven" : "a heuristic"}), since ${time(status.created)}`;
  renew(places.words, el("div", { class: status.answer ? "answer done" : "answer" },
    ...words.map((text) => el("p", {}, text))));
  renew(places.figures, figures(status));
  const width = Math.max(280, Math.min(1000, main.clientWidth));
  renew(places.chart, ...(points.length ? evidence(points, width)
    : [dim("Nothing to draw until every arm has a reward.")]));
  drawArms(places, study);
  renew(places.limits, status.constraints.length + status.exploration.length ? constraints(status) : dim("There are none."));
  renew(places.edges, status.edges && status.edges.length ? comparisons(status) : dim("None yet."));
  renew(places.recent, events.length ? recent(events) : dim("None yet."));
  // Heard only when the answer or the best mix changes, not with every reward.
  if ((status.answer || status.policy) && words[0] !== study.heard) announce(study.heard = words[0]);
}

function drawArms(places, study) {
  const number = study.status.arms.length, all = study.showsAllArms;
  renew(places.arms, el("div", { class: "wide" }, arms(study.status, all)),
    number > FEW ? el("p", {}, el("button", { type: "button", id: "all-arms", "aria-expanded": String(all),
      onclick: () => { study.showsAllArms = !all; drawArms(places, study); } },
    all ? `Show the first ${FEW}` : `Show all ${number} arms`)) : null);
}

export async function showStudy(name) {
  const path = `/studies/${encodeURIComponent(name)}`;
  const places = layOut(name);
  const study = { status: null, points: [], events: [], showsAllArms: false, heard: "" };

  async function refresh() {
    if (!isRoleKnown()) {
      await learnRole();
      places.acts.append(...actions(name, path));
    }
    study.status = await call(`${path}/status`);
    const seen = study.points.at(-1)?.seq ?? 0, recently = Math.max(0, study.status.seq - 2 * RECENT);
    study.points = study.points.concat((await call(`${path}/history?after=${seen}`)).points);
    study.events = (await call(`${path}/journal?after=${recently}&limit=100`)).events;
    clearError();
    places.content.hidden = false;  // first, since the chart is as wide as its place
    draw(places, study);
  }

  // One refresh at a time, and one more if something changed meanwhile.
  let busy = false, wanted = false;
  async function changed() {
    wanted = true;
    if (busy || document.hidden) return;
    busy = true;
    while (wanted && !document.hidden) {
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
}
