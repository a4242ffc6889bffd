// How much evidence there is: in words, as a curve, and for each way in which the answer could be wrong.
import { dim, el, renew } from "./dom.js";
import { evidence } from "./evidence_chart.js";
import { capitalized, number, probability } from "./numbers.js";
import { main } from "./page.js";
import { FEW, bar, pictured, table } from "./table.js";

// Of a question besides the best mix, edges are what would make its answer wrong.
const namesOf = ({ question }) => question
  ? { others: "answers", title: "Evidence for the answer", less: "Wrong if lower", more: "Wrong if higher", open: "Could be so", p: "p_pays" }
  : { others: "mixes", title: "Evidence against neighbouring mixes", less: "Less of", more: "More of", open: "Could be best", p: "p_best" };

function comparisons(status) {
  const names = namesOf(status);
  const side = (edge, sign) => Object.entries(edge.direction)
    .filter(([, rate]) => rate * sign > 0)
    .map(([arm, rate]) => Math.abs(rate) === 1 ? arm : `${number(Math.abs(rate))} ${arm}`).join(", ");
  const order = [...status.edges].sort((a, b) => (a.statistic - a.threshold) - (b.statistic - b.threshold));
  const together = status.answer && !status.stop_when && order.some((edge) => edge.statistic < edge.threshold)
    ? `All other ${names.others} were ruled out together, before each comparison alone had enough evidence. ` : "";
  return table(together + (order.length > FEW ? `The ${FEW} least settled of ${order.length}` : ""),
    [names.less, names.more, "Evidence", "Needed", names.open],
    order.slice(0, FEW).map((edge) => [
      el("span", {}, el("span", { class: "folded" }, `${names.less} `), side(edge, -1)), side(edge, 1),
      pictured(number(edge.statistic), ...bar(edge.statistic / edge.threshold)), number(edge.threshold),
      edge[names.p] === null ? null : `p ≤ ${probability(edge[names.p]).replace("<", "")}`]), [3, 4]);
}

// The sentence of `study status`, and what it means.
function inWords(status) {
  const { words, answer, stop_when: goal } = status;
  if (answer) return [el("p", { class: "lead" }, `Decided ${words.decided}`)];
  if (!words.evidence) return [];
  return [el("p", { class: "lead" }, capitalized(words.evidence)),
    goal ? null : dim(`It is enough when all other ${namesOf(status).others} are ruled out; how much that takes grows with the confidence that is wanted.`)];
}

export function evidenceTab(study) {
  const words = el("div"), curve = el("div"), rivals = el("div");
  function draw() {
    const { status, points } = study, width = Math.max(280, main.clientWidth - 2);
    renew(words, ...inWords(status));
    renew(curve, ...(points.length ? evidence(points, width, status.decision)
      : [dim("Nothing to draw until every arm has a reward.")]));
    renew(rivals, el("h3", {}, namesOf(status).title), status.edges?.length ? comparisons(status) : dim("None yet."));
  }
  return { id: "evidence", title: "Evidence", draw, content: [words, curve, rivals] };
}
