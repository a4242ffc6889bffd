// Shares of the samples by arm, over the number of rewards: a chart, and the same as a table.
import { chart } from "./chart.js";
import { el } from "./dom.js";
import { number, percent } from "./numbers.js";
import { table } from "./table.js";

const MOST = 6;     // arms with a line of their own
const MOMENTS = 4;  // columns of the table

export function shares(points, arms, width, decision) {
  const total = (one) => one.counts.reduce((sum, n) => sum + n, 0) || 1;
  const last = points.at(-1);
  const order = arms.map((_, a) => a).sort((a, b) => last.counts[b] - last.counts[a]);
  const shown = arms.length > MOST ? order.slice(0, MOST - 1) : order;
  const rest = order.slice(shown.length);
  const groups = shown.map((a) => [arms[a], [a]]).concat(rest.length ? [[`${rest.length} others`, rest]] : []);
  const share = (one, group) => group.reduce((sum, a) => sum + one.counts[a], 0) / total(one);
  const isLater = (one) => decision !== null && one.rewards > decision.samples;
  const lines = groups.map(([name, group], i) => ({ name, style: `line-${i}`,
    points: points.filter((one) => !isLater(one)).map((one) => [one.rewards, share(one, group)]),
    later: points.filter(isLater).map((one) => [one.rewards, share(one, group)]) }));
  const highest = Math.max(...lines.flatMap((line) => [...line.points, ...line.later].map(([, value]) => value)));
  const some = points.filter((_, i) => (points.length - 1 - i) % Math.ceil(points.length / MOMENTS) === 0);
  return [chart({ width, right: 104, endX: Math.max(...points.map((one) => one.rewards), 1),
    endY: Math.min(1, highest * 1.1), lines, format: (value) => `${Math.round(100 * value)}%`,
    label: `Shares of the samples: ${lines.map((line) => `${line.name} ${percent([...line.points, ...line.later].at(-1)[1])}`).join(", ")}`,
    mark: decision && { x: decision.samples, text: "decided" } }),
  el("details", { id: "share-points" }, el("summary", { id: "shares-as-table" }, "As a table"),
    table("Shares of the samples", ["Arm", ...some.map((one) => `After ${number(one.rewards)}`)],
      groups.map(([name, group]) => [name, ...some.map((one) => percent(share(one, group)))]),
      some.map((_, i) => i + 1)))];
}
