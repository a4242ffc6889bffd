// One study: what is known and what to do now, and the rest under tabs. Redrawn whenever it changes.
import { call, listen, pause, text } from "./api.js";
import { armsTab } from "./arms_tab.js";
import { dataTab } from "./data_tab.js";
import { dim, el, renew, section } from "./dom.js";
import { evidenceTab } from "./evidence_tab.js";
import { heldRewards } from "./held.js";
import { headline, knowledge } from "./knowledge.js";
import { limitsTab, warning } from "./limits_tab.js";
import { isWanted, watcher } from "./notifications.js";
import { announce, begin, clearError, showPassingError } from "./page.js";
import { pullList } from "./pull_list.js";
import { isRoleKnown, learnRole, may } from "./role.js";
import { settingsTab } from "./settings_tab.js";
import { tabs } from "./tabs.js";

const REDRAW = 1000;  // milliseconds at least between two redrawings
const EVENTS = 200;   // of which the latest are shown

// The page without content, and the places that content goes to.
function layOut(study) {
  const places = { known: el("div"), todo: el("div"), held: el("div", { id: "held" }), state: el("span", { class: "state" }) };
  const parts = [armsTab, limitsTab, evidenceTab, dataTab, settingsTab].map((make) => make(study));
  places.parts = parts;
  places.tabs = tabs("About this study", parts, (part) => {
    places.open = part;
    if (study.isFurnished) part.draw();
  });
  places.content = el("div", { hidden: true }, el("div", { class: "top" },
    section("What we know", "known", places.known), section("What to do now", "todo", places.todo)), ...places.tabs.nodes);
  begin(study.name, places.content);
  document.querySelector("h1").append(" ", places.state);
  document.getElementById("trouble").append(dim("Reading…"));  // until there is content, or trouble
  return places;
}

// What is there once the study is known, and stays.
async function furnish(places, study) {
  study.problem = await text(`${study.path}/problem`);
  study.measured = (study.status.measured ?? []).map((row) => row.name);
  study.isFurnished = true;
  study.pulls = may("run") ? pullList(study) : null;
  study.hint = el("p", { class: "lead" });
  places.todo.append(places.held, study.hint, ...(study.pulls ? [study.pulls.asking, ...study.pulls.nodes] : []));
  for (const part of places.parts) part.furnish?.();
}

function hint({ state, policy }) {
  if (!may("run")) return "You may only watch.";
  return { running: policy ? "" : "Ask for pulls: every arm is played first.",
    paused: "It is paused: no pulls are handed out until it is resumed, under Settings. Rewards are still recorded.",
    stopped: "Nothing: the study has its answer. Rewards of pulls that are still out change nothing.",
    archived: "It is archived: bring it back under Settings to go on." }[state];
}

function draw(places, study) {
  const { status } = study;
  places.state.className = `state ${status.state}`;
  places.state.textContent = status.state;
  renew(places.known, ...knowledge(status), warning(status));
  renew(places.held, ...heldRewards(study));
  study.hint.textContent = hint(status);
  study.hint.hidden = !study.hint.textContent;
  if (study.pulls) study.pulls.asking.hidden = status.state !== "running";
  places.open.draw();
  // Heard only when the answer or the best mix changes, not with every reward.
  const news = status.answer ? "answer" : status.policy_in_words;
  if (news && news !== study.heard) announce(headline(status));
  study.heard = news;
}

// When the last reward came, or when somebody asked for the first time after it.
function since(events) {
  const last = events.findLastIndex((one) => "reward" in one || one.event === "resumed");
  const asked = events.slice(last + 1).find((one) => one.event === "asked");
  return (asked ?? events[last])?.at ?? Infinity;
}

export async function showStudy(name) {
  const path = `/studies/${encodeURIComponent(name)}`, notify = watcher(name);
  const study = { name, path, changed, status: null, points: [], events: [] };
  const places = layOut(study);
  places.tabs.fromAddress();

  async function refresh() {
    if (!isRoleKnown()) await learnRole();
    study.status = await call(`${path}/status`);
    const seen = study.points.at(-1)?.seq ?? 0, recently = Math.max(0, study.status.seq - EVENTS);
    study.points = study.points.concat((await call(`${path}/history?after=${seen}`)).points);
    study.events = (await call(`${path}/journal?after=${recently}&limit=${EVENTS + 100}`)).events;
    if (!study.isFurnished) await furnish(places, study);
    const { seq, pending } = study.status;
    if (study.pulls && (pending !== study.pending || (pending && seq !== study.seq))) await study.pulls.refresh();
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

  window.addEventListener("resize", () => { if (study.isFurnished) draw(places, study); });
  document.addEventListener("visibilitychange", changed);
  await changed();
  listen(`${path}/events`, changed);
  setInterval(() => { if (study.status?.pending) changed(); }, 60000);  // a stall is when nothing comes
}
