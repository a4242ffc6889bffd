// Studies side by side.
import { studyPage } from "./address.js";
import { call } from "./api.js";
import { chart } from "./chart.js";
import { dim, el, section } from "./dom.js";
import { confidence, number, percent, plural, time } from "./numbers.js";
import { begin, main, showPassingError } from "./page.js";
import { learnRole } from "./role.js";
import { bar, pictured, table } from "./table.js";

const MOST = 6;  // studies side by side

const interval = ({ value, value_interval: ends }) => value === null ? null : el("span", {}, number(value),
  ends[0] === null || ends[1] === null ? "" : el("span", { class: "dim" }, ` (${number(ends[0])} to ${number(ends[1])})`));

function figures(found) {
  return el("div", { class: "wide" }, table("", ["Study", "State", "Mix", "It earns", "Progress", "Confidence", "Rewards", "Allowed error"],
    found.map(({ status }) => [
      el("a", { href: studyPage(status.name) }, status.name),
      el("span", {}, el("span", { class: `state ${status.state}` }, status.state),
        status.decision ? el("span", { class: "dim" }, ` on ${time(status.decision.at)}, after ${plural(status.decision.samples, "reward")}`) : ""),
      status.policy_in_words ?? (status.answer ? "none keeps the measured limits" : "not known yet"), interval(status),
      pictured(percent(status.progress), ...bar(status.progress ?? 0)),
      status.confidence === null ? null : confidence(status.confidence),
      number(status.rewards), status.stop_when?.budget ? null : number(status.delta),
    ]), [6, 7]));
}

function progress(found, width) {
  const lines = found.filter(({ points }) => points.length).map(({ status, points, i }) => ({ name: status.name, style: `line-${i}`,
    points: points.filter((one) => !status.decision || one.rewards <= status.decision.samples)
      .map((one) => [one.rewards, status.decision && !status.stop_when && one.rewards === status.decision.samples ? 1
        : Math.min(1, Math.max(0, one.statistic / one.threshold))]) })).filter(({ points }) => points.length);
  if (!lines.length) return dim("Nothing to draw until every arm has a reward.");
  return chart({ width, right: 130, endX: Math.max(...lines.flatMap(({ points }) => points.map(([x]) => x))), endY: 1,
    lines, format: (value) => `${Math.round(100 * value)}%`,
    label: `Share of the evidence needed: ${lines.map(({ name, points }) => `${name} ${percent(points.at(-1)[1])}`).join(", ")}` });
}

export async function showComparison(names) {
  const place = el("div", { "aria-live": "polite" }, dim("Reading…"));
  begin("Compare studies", place);
  document.querySelector("nav a[href$='compare']").setAttribute("aria-current", "page");
  try {
    await learnRole();
    if (!names.length) {
      const { studies } = await call(`/studies?limit=${MOST}`);
      names = studies.map((one) => one.name);
    }
    if (!names.length) return place.replaceChildren(el("p", {}, "There are no studies yet."));
    const more = Math.max(0, names.length - MOST);
    names = names.slice(0, MOST);
    const found = [];
    let left = names.length;
    // The first status of a study may take a second: whatever is there is shown.
    const show = () => {
      found.sort((one, other) => one.i - other.i);
      place.replaceChildren(dim(`${more ? `The first ${MOST} of ${names.length + more}. ` : ""}Choose others in the list of studies.`),
        ...(found.length ? [
          section("Share of the evidence needed", "progress", progress(found, Math.max(280, Math.min(1000, main.clientWidth)))),
          section("Figures", "figures", figures(found))] : []),
        left ? dim(`Reading ${left} more…`) : "");
    };
    await Promise.all(names.map(async (name, i) => {
      const path = `/studies/${encodeURIComponent(name)}`;
      try {
        const [status, { points }] = await Promise.all([call(`${path}/status`), call(`${path}/history`)]);
        found.push({ status, points, i });
      } catch (error) { showPassingError(error); }
      left -= 1;
      show();
    }));
  } catch (error) {
    place.replaceChildren();
    showPassingError(error);
  }
}
