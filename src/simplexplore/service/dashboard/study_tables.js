// Arms, constraints, comparisons and events of a study.
import { el, svg, whole } from "./dom.js";
import { number, plural, time } from "./numbers.js";
import { FEW, bar, pictured, table, tick } from "./table.js";

export const RECENT = 15;  // events shown

/** Numbers of arms: as they are, or of more than a few, those that matter most first. */
export function inOrder(arms, few) {
  const order = arms.map((_, a) => a), by = (a, b) => (b.policy ?? 0) - (a.policy ?? 0) || b.rewards - a.rewards;
  return arms.length > few ? order.sort((a, b) => by(arms[a], arms[b])) : order;
}

export function arms(status, all) {
  const known = status.arms.filter((arm) => arm.mean !== null);
  const ends = known.flatMap((arm) => [arm.low ?? arm.mean, arm.high ?? arm.mean]);
  const from = Math.min(...ends), span = Math.max(...ends) - from || 1;
  const place = (value) => 100 * (value - from) / span;
  const most = Math.max(...status.arms.map((arm) => Math.max(arm.rewards + arm.pending, arm.target)), 1);
  const later = status.arms.some((arm) => arm.later);
  const learned = status.arms.some((arm) => arm.sigma !== undefined);  // where nobody knows it
  return table(
    "Means with intervals that all hold, at every moment; samples with their target as a mark",
    ["Arm", "In the mix", "Mean", "Between", ...(learned ? ["Sigma seen"] : []), "Samples", "Target", "Pending",
      ...(later ? ["After the decision"] : [])],
    inOrder(status.arms, FEW).slice(0, all ? status.arms.length : FEW).map((a) => status.arms[a]).map((arm) => [
      arm.arm,
      arm.policy === null ? null : pictured(number(arm.policy), ...bar(arm.policy)),
      arm.mean === null ? null : pictured(number(arm.mean),
        svg("line", { class: "interval", x1: place(arm.low ?? from), x2: place(arm.high ?? from + span), y1: 7, y2: 7 }),
        svg("rect", { class: "mean", x: place(arm.mean) - 1.2, y: 1, width: 2.4, height: 12 })),
      arm.low === null || arm.high === null ? null : whole(`${number(arm.low)} to ${number(arm.high)}`),
      ...(learned ? [arm.sigma === null ? null : number(arm.sigma)] : []),
      pictured(number(arm.rewards), ...bar(arm.rewards / most), tick("target", arm.target / most)),
      number(arm.target), arm.pending ? number(arm.pending) : null,
      ...(later ? [arm.later ? whole(`${arm.later}, mean ${number(arm.later_mean)}`) : null] : []),
    ]), learned ? [4, 6, 7, 8] : [5, 6, 7]);
}

function limits(row) {
  if (row.lower === null) return `at most ${number(row.upper)}`;
  if (row.upper === null) return `at least ${number(row.lower)}`;
  return row.lower === row.upper ? `exactly ${number(row.upper)}` : `${number(row.lower)} to ${number(row.upper)}`;
}

/** Limits on the mix and, apart from them, those on samples alone; with what is promised of either. */
export function constraints(status) {
  const ofSamples = status.scenario === "exploration";
  const tables = [
    ["Constraint", status.constraints, "How much of each limit the mix uses, and all pulls handed out.", !ofSamples],
    ["Limit on exploration", status.exploration, "How much of each limit on exploration all pulls handed out use.", ofSamples],
  ];
  return el("div", {}, ...tables.filter(([, rows]) => rows.length).map(([what, rows, caption, promised]) =>
    limitTable(status, what, rows, promised ? `${caption} ${kept(status)}` : caption)));
}

function limitTable(status, what, rows, caption) {
  return table(caption, [what, "Limit", "Mix", "Slack", "Pulls so far"],
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
        row.explored === null ? null : pictured(isAbove(status, row)
          ? `${number(row.explored)}, above by ${plural(row.excess, "pull")}` : number(row.explored),
        ...bar((row.explored - from) / span), ...[row.lower, row.upper].filter((one) => one !== null)
          .map((one) => tick("limit", (one - from) / span)))];
    }), [3]);
}

// Measured limits: what the mix is thought to use of each, and how sure that is.
export function measuredLimits(status) {
  const level = ({ limit }) => Number(limit.slice(3));
  const between = (from, to) => from === null || to === null ? null : whole(`${number(from)} to ${number(to)}`);
  const interval = (value, from, to, row, ends) => {
    const margin = (Math.max(...ends) - Math.min(...ends)) / 20 || 1;  // so that marks are whole
    const first = Math.min(...ends) - margin, span = Math.max(...ends) + margin - first;
    const place = (one) => 100 * (one - first) / span;
    return pictured(number(value),
      svg("line", { class: "interval", x1: place(from ?? first), x2: place(to ?? first + span), y1: 7, y2: 7 }),
      svg("rect", { class: "mean", x: place(value) - 1.2, y: 1, width: 2.4, height: 12 }),
      tick("limit", place(level(row)) / 100));
  };
  const spread = (row, ...numbers) => [...numbers, level(row)].filter((one) => one !== null && one !== undefined);
  return [table("The mean over the mix, with an interval that is valid at every moment; the limit as a mark",
    ["Measured", "Limit", "Tolerance", "Mix", "Between", "Violation, p-value", "Samples so far"],
    status.measured.map((row) => {
      const [from, to] = row.value_interval ?? [null, null];
      return [row.name, whole(row.limit), number(row.tolerance),
        row.value === null ? null : interval(row.value, from, to, row, spread(row, from, to, row.value)),
        between(from, to), row.p_value === null ? null : atMost(row.p_value),
        row.explored === null ? null : number(row.explored)];
    }), [2, 5, 6]),
  el("p", { class: "dim" }, "The p-value is valid however often you look: the probability that a mix which misses a limit by more than its tolerance is ever shown with a p-value of 0.01 or less is at most 0.01."),
  status.promise ? el("p", {}, [status.promise, ...status.measured.filter((row) => (row.explored_worst ?? null) !== null)
    .map((row) => `At worst so far: ${row.name} ${number(row.explored_worst)}.`)].join(" ")) : "",
  ...status.measured.map((row, i) => {
    const ends = spread(row, ...row.arms.flatMap((arm) => [arm.mean, arm.low, arm.high]));
    return el("details", { id: `measured-${i}`, open: i === 0 && row.arms.length <= FEW }, el("summary", { id: `show-measured-${i}` }, `${row.name} by arm`),
      table("", ["Arm", "Mean", "Between"], row.arms.filter((arm) => arm.mean !== null).map((arm) =>
        [arm.arm, interval(arm.mean, arm.low, arm.high, row, ends), between(arm.low, arm.high)])));
  })];
}

// A p-value, rounded up: never less than is known.
const atMost = (p) => p < 0.0001 ? "<0.0001" : number(Math.min(1, Math.ceil(p * 10000) / 10000));

/** Which limits the pulls handed out exceed, as a warning; null if they keep them all. */
export function warning(status) {
  const above = [...status.constraints, ...status.exploration].filter((row) => isAbove(status, row));
  return above.length ? el("p", { class: "warning", role: "status" }, el("strong", {}, "Above a limit: "),
    above.map((row) => `${row.name} by ${plural(row.excess, "pull")}`).join(", ") +
    ". Pulls made elsewhere have done that; what this study hands out keeps the limits.") : null;
}

const isAbove = (status, row) => row.excess > (status.excess_bound ?? Infinity) + 1e-6;

/** What is promised about limits on samples, and what came from outside. */
function kept(status) {
  if (status.scenario === "end-of-time" || status.excess_bound === null) return "";
  const promise = status.excess_bound === 0
    ? "Pulls keep the limits: no prefix of them ever exceeds one."
    : `Pulls exceed a limit by at most ${number(status.excess_bound)} pulls, at any time.`;
  return [...status.constraints, ...status.exploration].some((row) => isAbove(status, row))
    ? `${promise} Pulls made elsewhere have exceeded some.` : promise;
}

export function comparisons(status) {
  const side = (edge, sign) => Object.entries(edge.direction)
    .filter(([, rate]) => rate * sign > 0)
    .map(([arm, rate]) => Math.abs(rate) === 1 ? arm : `${number(Math.abs(rate))} ${arm}`).join(", ");
  const order = [...status.edges].sort((a, b) => (a.statistic - a.threshold) - (b.statistic - b.threshold));
  const together = status.answer && !status.stop_when && order.some((edge) => edge.statistic < edge.threshold)
    ? "All other mixes were ruled out together, before each comparison alone had enough evidence. " : "";
  return table(together + (order.length > FEW ? `The ${FEW} least settled of ${order.length}` : ""),
    ["Less of", "More of", "Evidence", "Needed"],
    order.slice(0, FEW).map((edge) => [
      el("span", {}, el("span", { class: "folded" }, "Less of "), side(edge, -1)), side(edge, 1),
      pictured(number(edge.statistic), ...bar(edge.statistic / edge.threshold)), number(edge.threshold)]), [3]);
}

const EVENTS = { asked: "asked", told: "reward", late: "late reward", elsewhere: "reward from elsewhere",
  expired: "expired", extended: "extended", stopped: "stopped", noted: "note", voided: "struck out",
  paused: "paused", archived: "archived", resumed: "resumed", tagged: "tags" };

const remark = (one) => one.event === "extended" ? `allowed error ${number(one.delta)}`
  : one.event === "voided" ? `event ${one.voids}: ${one.reason}`
    : one.event === "tagged" ? one.tags.join(", ") || "none" : one.text ?? null;

// A reward, and what was measured beside it.
export const outcome = (one) => [number(one.reward),
  ...Object.entries(one.measured ?? {}).map(([name, value]) => `${name} ${number(value)}`)].join(", ");

// With `strike`, rewards have a button that strikes them out.
export function recent(events, shown, voided, strike) {
  return table("The latest first", ["What", "Arm", "Reward or remark", "Time", ...(strike ? ["Wrong?"] : [])],
    [...events].reverse().slice(0, shown).map((one) => [
      whole(EVENTS[one.event] ?? one.event), one.arm ?? null,
      one.reward === undefined ? remark(one) : voided.has(one.seq)
        ? el("span", {}, el("s", {}, outcome(one)), " struck out") : outcome(one),
      whole(time(one.at)),
      ...(!strike ? [] : [one.reward === undefined || voided.has(one.seq) ? null
        : el("button", { type: "button", class: "small", id: `void-${one.seq}`,
          "aria-label": `Strike out the reward ${number(one.reward)} of ${one.arm}`, onclick: () => strike(one) }, "Strike out")]),
    ]));
}
