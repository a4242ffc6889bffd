// Evidence against what is needed, over the number of rewards: a chart, and the same as a table.
import { chart } from "./chart.js";
import { el, whole } from "./dom.js";
import { number, time } from "./numbers.js";
import { table } from "./table.js";

export function evidence(points, width, decision) {
  const last = points.at(-1);
  const isLater = (one) => decision !== null && one.rewards > decision.samples;
  const line = (name, text) => ({ name: text, style: name,
    points: points.filter((one) => !isLater(one)).map((one) => [one.rewards, one[name]]),
    later: points.filter(isLater).map((one) => [one.rewards, one[name]]) });
  const some = points.filter((_, i) => i % Math.ceil(points.length / 20) === 0 || i === points.length - 1);
  return [chart({ width, endX: Math.max(...points.map((one) => one.rewards), 1),
    endY: Math.max(...points.map((one) => Math.max(one.statistic, one.threshold))) * 1.05,
    label: `Evidence ${number(last.statistic)} of ${number(last.threshold)} needed after ${number(last.rewards)} rewards`,
    lines: [line("threshold", "needed"), line("statistic", "evidence")],
    mark: decision && { x: decision.samples, text: "decided" } }),
  el("details", { id: "points" }, el("summary", { id: "as-table" }, "As a table"),
    table("The comparison that is least settled", ["Rewards", "Evidence", "Needed", "Time"],
      some.map((one) => [number(one.rewards), number(one.statistic), number(one.threshold), whole(time(one.at))]),
      [0, 1, 2]))];
}
