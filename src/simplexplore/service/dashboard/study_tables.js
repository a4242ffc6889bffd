// Arms, constraints, comparisons and events of a study.
import { el, svg, whole } from "./dom.js";
import { number, time } from "./numbers.js";
import { FEW, bar, pictured, table, tick } from "./table.js";

export const RECENT = 15;  // events shown

export function arms(status, all) {
  const known = status.arms.filter((arm) => arm.mean !== null);
  const ends = known.flatMap((arm) => [arm.low ?? arm.mean, arm.high ?? arm.mean]);
  const from = Math.min(...ends), span = Math.max(...ends) - from || 1;
  const place = (value) => 100 * (value - from) / span;
  const most = Math.max(...status.arms.map((arm) => Math.max(arm.rewards + arm.pending, arm.target)), 1);
  const order = [...status.arms];
  if (order.length > FEW) {
    order.sort((a, b) => (b.policy ?? 0) - (a.policy ?? 0) || b.rewards - a.rewards);
  }
  return table(
    "Means with intervals that hold together, at every moment; samples with their target as a mark",
    ["Arm", "In the mix", "Mean", "Between", "Samples", "Target", "Pending"],
    order.slice(0, all ? order.length : FEW).map((arm) => [
      arm.arm,
      arm.policy === null ? null : pictured(number(arm.policy), ...bar(arm.policy)),
      arm.mean === null ? null : pictured(number(arm.mean),
        svg("line", { class: "interval", x1: place(arm.low ?? from), x2: place(arm.high ?? from + span), y1: 7, y2: 7 }),
        svg("rect", { class: "mean", x: place(arm.mean) - 1.2, y: 1, width: 2.4, height: 12 })),
      arm.low === null || arm.high === null ? null : whole(`${number(arm.low)} to ${number(arm.high)}`),
      pictured(number(arm.rewards), ...bar(arm.rewards / most), tick("target", arm.target / most)),
      number(arm.target), arm.pending ? number(arm.pending) : null,
    ]), [5, 6]);
}

function limits(row) {
  if (row.lower === null) return `at most ${number(row.upper)}`;
  if (row.upper === null) return `at least ${number(row.lower)}`;
  return row.lower === row.upper ? `exactly ${number(row.upper)}` : `${number(row.lower)} to ${number(row.upper)}`;
}

export function constraints(status) {
  const rows = [...status.constraints, ...status.exploration];
  return table(`How much of each limit the mix uses, and all pulls handed out. ${kept(status)}`,
    ["Constraint", "Limit", "Mix", "Slack", "Pulls so far"],
    rows.map((row) => {
      const slacks = [row.lower === null ? Infinity : row.policy - row.lower,
        row.upper === null ? Infinity : row.upper - row.policy];
      const slack = row.policy === null ? null : Math.max(0, Math.min(...slacks));
      const ends = [row.lower, row.upper, row.policy, row.explored].filter((one) => one !== null);
      const from = Math.min(0, ...ends), span = (Math.max(...ends) - from) * 1.1 || 1;
      return [row.name, whole(limits(row)),
        row.policy === null ? null : pictured(number(row.policy), ...bar((row.policy - from) / span),
          ...[row.lower, row.upper].filter((one) => one !== null).map((one) => tick("limit", (one - from) / span))),
        slack === null ? null : slack < 1e-9 ? "none" : number(slack),
        row.explored === null ? null : isAbove(status, row)
          ? `${number(row.explored)}, above by ${number(row.excess)} pulls` : number(row.explored)];
    }), [3, 4]);
}

const isAbove = (status, row) => row.excess > (status.excess_bound ?? Infinity) + 1e-6;

/** What is promised about limits on samples, and what came from outside. */
function kept(status) {
  if (status.scenario === "end-of-time" || status.excess_bound === null) return "";
  const promise = status.excess_bound === 0
    ? "Pulls keep the limits: no prefix of them ever exceeds one."
    : `Pulls keep the limits but for ${number(status.excess_bound)} pulls, at any time.`;
  return [...status.constraints, ...status.exploration].some((row) => isAbove(status, row))
    ? `${promise} Pulls made elsewhere have exceeded some.` : promise;
}

export function comparisons(status) {
  const side = (edge, sign) => Object.entries(edge.direction)
    .filter(([, rate]) => rate * sign > 0)
    .map(([arm, rate]) => Math.abs(rate) === 1 ? arm : `${number(Math.abs(rate))} ${arm}`).join(", ");
  const order = [...status.edges].sort((a, b) => (a.statistic - a.threshold) - (b.statistic - b.threshold));
  return table(order.length > FEW ? `The ${FEW} least settled of ${order.length}` : "",
    ["Less of", "More of", "Evidence", "Needed"],
    order.slice(0, FEW).map((edge) => [
      el("span", {}, el("span", { class: "folded" }, "Less of "), side(edge, -1)), side(edge, 1),
      pictured(number(edge.statistic), ...bar(edge.statistic / edge.threshold)), number(edge.threshold)]), [3]);
}

const EVENTS = { asked: "asked", told: "reward", late: "late reward", elsewhere: "reward from elsewhere",
  expired: "given up", extended: "extended", stopped: "stopped", noted: "note" };

export function recent(events) {
  return table("The latest first", ["What", "Arm", "Reward or remark", "Time"],
    [...events].reverse().slice(0, RECENT).map((one) => [whole(EVENTS[one.event] ?? one.event),
      one.arm ?? null, one.reward !== undefined ? number(one.reward)
        : one.text ?? (one.event === "extended" ? `allowed error ${number(one.delta)}` : null),
      whole(time(one.at))]));
}
