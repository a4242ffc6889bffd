// What is known of each arm: a table, means over time, and shares of the samples.
import { dim, el, renew, svg, whole } from "./dom.js";
import { means } from "./means_chart.js";
import { number, percent } from "./numbers.js";
import { main } from "./page.js";
import { shares } from "./share_chart.js";
import { FEW, bar, pictured, table, tick } from "./table.js";

const MOST_MEANS = 100;  // arms whose means over time a study keeps

// Numbers of arms: as they are, or of more than a few, those that matter most first.
function inOrder(arms, few) {
  const order = arms.map((_, a) => a), by = (a, b) => (b.policy ?? 0) - (a.policy ?? 0) || b.rewards - a.rewards;
  return arms.length > few ? order.sort((a, b) => by(arms[a], arms[b])) : order;
}

function armsTable(status, all) {
  const known = status.arms.filter((arm) => arm.mean !== null);
  const ends = known.flatMap((arm) => [arm.low ?? arm.mean, arm.high ?? arm.mean]);
  const from = Math.min(...ends), span = Math.max(...ends) - from || 1;
  const place = (value) => 100 * (value - from) / span;
  const most = Math.max(...status.arms.map((arm) => Math.max(arm.rewards + arm.pending, arm.target)), 1);
  const later = status.arms.some((arm) => arm.later);
  const isMix = !status.question;
  const learned = status.arms.some((arm) => arm.sigma !== undefined);  // where nobody knows it
  const headings = ["Arm", ...(isMix ? ["In the mix"] : []), "Mean", "Between", ...(learned ? ["Sigma seen"] : []), "Samples", "Target",
    "Pending", ...(later ? ["After the decision"] : [])];
  return table(
    "Means with intervals that all hold, at every moment; samples with their target as a mark", headings,
    inOrder(status.arms, FEW).slice(0, all ? status.arms.length : FEW).map((a) => status.arms[a]).map((arm) => [
      arm.arm,
      ...(isMix ? [arm.policy === null ? null : pictured(percent(arm.policy), ...bar(arm.policy))] : []),
      arm.mean === null ? null : pictured(number(arm.mean),
        svg("line", { class: "interval", x1: place(arm.low ?? from), x2: place(arm.high ?? from + span), y1: 7, y2: 7 }),
        svg("rect", { class: "mean", x: place(arm.mean) - 1.2, y: 1, width: 2.4, height: 12 })),
      arm.low === null || arm.high === null ? null : whole(`${number(arm.low)} to ${number(arm.high)}`),
      ...(learned ? [arm.sigma === null ? null : number(arm.sigma)] : []),
      pictured(number(arm.rewards), ...bar(arm.rewards / most), tick("target", arm.target / most)),
      number(arm.target), arm.pending ? number(arm.pending) : null,
      ...(later ? [arm.later ? whole(`${arm.later}, mean ${number(arm.later_mean)}`) : null] : []),
    ]), ["Sigma seen", "Target", "Pending", "After the decision"].map((one) => headings.indexOf(one)));
}

// A button that shows all arms instead of a few, and back again.
function moreArms(id, few, number, all, redraw) {
  return number > few ? el("p", {}, el("button", { type: "button", id, "aria-expanded": String(all), onclick: () => redraw(!all) },
    all ? `Show the first ${few}` : `Show all ${number} arms`)) : null;
}

export function armsTab(study) {
  const inTable = el("div"), overTime = el("div"), ofSamples = el("div");
  let allRows = false, allCharts = false;

  function drawTable() {
    const { status } = study;
    renew(inTable, el("div", { class: "wide" }, armsTable(status, allRows)),
      moreArms("all-arms", FEW, status.arms.length, allRows, (all) => { allRows = all; drawTable(); }));
  }

  function drawMeans() {
    const { status, points } = study, width = Math.max(280, main.clientWidth - 2), count = status.arms.length;
    const few = width < 600 ? FEW / 2 : FEW;
    if (count > MOST_MEANS) return renew(overTime, dim(`Kept for up to ${MOST_MEANS} arms; the means of now are above.`));
    const drawn = means(points, status, inOrder(status.arms, few).slice(0, allCharts ? count : few), width);
    renew(overTime, ...(drawn ?? [dim("Nothing to draw until there are rewards.")]),
      drawn && moreArms("all-means", few, count, allCharts, (all) => { allCharts = all; drawMeans(); }));
  }

  function draw() {
    const { status, points } = study, width = Math.max(280, main.clientWidth - 2);
    drawTable();
    drawMeans();
    renew(ofSamples, ...(points.length ? shares(points, status.arms.map((arm) => arm.arm), width, status.decision)
      : [dim("Nothing to draw until every arm has a reward.")]));
  }
  return { id: "arms", title: "Arms", draw, content: [inTable, el("h3", {}, "Means over time, with their intervals, on one scale"), overTime,
    el("h3", {}, "Shares of the samples"), ofSamples] };
}
