// Limits on the mix, on samples, and on what is measured: how much of each is used.
import { dim, el, renew, svg, whole } from "./dom.js";
import { number, plural, probability } from "./numbers.js";
import { formulas } from "./problem_file.js";
import { FEW, bar, pictured, table, tick } from "./table.js";

function limits(row) {
  if (row.lower === null) return `at most ${number(row.upper)}`;
  if (row.upper === null) return `at least ${number(row.lower)}`;
  return row.lower === row.upper ? `exactly ${number(row.upper)}` : `${number(row.lower)} to ${number(row.upper)}`;
}

// Limits on the mix and, apart from them, those on samples alone; with what is promised of either.
function constraints(status) {
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
function measuredLimits(status) {
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
  return [el("h3", { id: "measured-title" }, "Measured limits"),
    table("The mean over the mix, with an interval that is valid at every moment; the limit as a mark",
      ["Measured", "Limit", "Tolerance", "Mix", "Between", "Violation, p-value", "Samples so far"],
      status.measured.map((row) => {
        const [from, to] = row.value_interval ?? [null, null];
        return [row.name, whole(row.limit), number(row.tolerance),
          row.value === null ? null : interval(row.value, from, to, row, spread(row, from, to, row.value)),
          between(from, to), row.p_value === null ? null : probability(row.p_value),
          row.explored === null ? null : number(row.explored)];
      }), [2, 5, 6]),
    dim("The p-value is valid however often you look: the probability that a mix which misses a limit by more than its tolerance is ever shown with a p-value of 0.01 or less is at most 0.01."),
    status.promise ? el("p", {}, [status.promise, ...status.measured.filter((row) => (row.explored_worst ?? null) !== null)
      .map((row) => `At worst so far: ${row.name} ${number(row.explored_worst)}.`)].join(" ")) : "",
    ...status.measured.map((row, i) => {
      const ends = spread(row, ...row.arms.flatMap((arm) => [arm.mean, arm.low, arm.high]));
      return el("details", { id: `measured-${i}`, open: i === 0 && row.arms.length <= FEW }, el("summary", { id: `show-measured-${i}` }, `${row.name} by arm`),
        table("", ["Arm", "Mean", "Between"], row.arms.filter((arm) => arm.mean !== null).map((arm) =>
          [arm.arm, interval(arm.mean, arm.low, arm.high, row, ends), between(arm.low, arm.high)])));
    })];
}

/** Which limits the pulls handed out exceed, as a warning; null if they keep them all. */
export function warning(status) {
  const above = [...status.constraints, ...status.exploration].filter((row) => isAbove(status, row));
  return above.length ? el("p", { class: "warning", role: "status" }, el("strong", {}, "Above a limit: "),
    above.map((row) => `${row.name} by ${plural(row.excess, "pull")}`).join(", ") +
    ". Pulls made elsewhere have done that; what this study hands out keeps the limits.") : null;
}

const isAbove = (status, row) => row.excess > (status.excess_bound ?? Infinity) + 1e-6;

// What is promised about limits on samples, and what came from outside.
function kept(status) {
  if (status.scenario === "end-of-time" || status.excess_bound === null) return "";
  const promise = status.excess_bound === 0
    ? "Pulls keep the limits: no prefix of them ever exceeds one."
    : `Pulls exceed a limit by at most ${number(status.excess_bound)} pulls, at any time.`;
  return [...status.constraints, ...status.exploration].some((row) => isAbove(status, row))
    ? `${promise} Pulls made elsewhere have exceeded some.` : promise;
}

export function limitsTab(study) {
  const used = el("div"), written = el("div");
  function draw() {
    const { status } = study;
    renew(used, ...(status.constraints.length + status.exploration.length ? [constraints(status)]
      : status.measured ? [] : [dim("There are none.")]), ...(status.measured ? measuredLimits(status) : []));
  }
  return { id: "limits", title: "Limits", draw, content: [used, written],
    furnish: () => written.replaceChildren(...formulas(study.problem, study.status.measured)) };
}
