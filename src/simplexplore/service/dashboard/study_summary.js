// A study in two sentences and a few figures.
import { el } from "./dom.js";
import { confidence, number, percent, plural, sure, time } from "./numbers.js";

export function inWords(status) {
  if (status.answer) {
    return [status.answer_in_words,
      (status.epsilon && status.answer.policy ? `It earns at most ${number(status.epsilon)} less than the best mix${status.measured ? " that keeps the measured limits" : ""}. ` : "") +
      `Found with ${plural(status.answer.rewards, "reward")}` +
      (status.proven || status.stop_when?.budget ? "." : ", by a heuristic: nothing is proven of this threshold."),
      decided(status)];
  }
  if (status.infeasible) return [`It seems that no mix keeps ${limits(status)}.`, left(status)];
  if (!status.policy && status.measured) return ["No answer yet: some arms have too few rewards.", "Every arm is played a few times first."];
  if (!status.policy) return ["No answer yet: some arms have no reward.", "Every arm is played first."];
  const [low, high] = status.value_interval;
  const value = low === null || high === null ? "" : `, between ${number(low)} and ${number(high)} with confidence ${sure(status.delta)}`;
  if (status.state === "paused") return [`Paused. Best mix so far: ${status.policy_in_words}.`, "No pulls are handed out until it is resumed; rewards are still recorded."];
  const kind = status.epsilon ? "Good mix" : "Best mix";
  return [`${kind} so far: ${status.policy_in_words}.`, `It earns ${number(status.value)}${value}. ${left(status)}`];
}

// Measured limits as a sentence has them.
const limits = ({ measured }) => measured.map(({ name, limit }) =>
  `${name} ${limit.startsWith("<") ? "below" : "above"} ${limit.slice(3)}`).join(" and ");

// What is still to be done.
function left({ progress, to_go: more, to_go_range: ends, stop_when: goal, measured }) {
  if (goal?.budget) return `${number(more ?? goal.budget)} of ${number(goal.budget)} samples to go.`;
  if (more === null) {
    return measured ? "It is too early to say how many samples to go."
      : "The best mixes tie at the means seen so far, so the samples to go cannot be estimated.";
  }
  const about = `about ${number(more)} samples to go`;
  return goal?.regret ? `At the means seen so far, ${about} until no mix can be better by more than ${number(goal.regret)}.`
    : `${percent(progress)} of the evidence needed; ${about} if the means are as they look${range(ends)}.`;
}

// How and when it was decided; what came later stands apart.
function decided({ decision: { at, statistic, threshold, later }, stop_when: goal }) {
  const why = goal?.budget ? "when the samples were spent"
    : goal?.regret ? `when no mix could be better by more than ${number(goal.regret)}`
      : `with evidence ${number(statistic)} where ${number(threshold)} was needed`;
  return `Decided on ${time(at)}, ${why}. ` + (later ? `${plural(later, "reward")} came later and changed nothing: ` +
      "all figures are those of the decision." : "");
}

function range(ends) {
  if (ends === null) return "";
  const [low, high] = ends;
  if (!low && high === null) return "; it is too early for a range";
  return `, ${number(low)} ${high === null ? "or more" : `to ${number(high)}`} in four runs of five`;
}

export function figures(status) {
  const sure = status.confidence === null ? [] : [
    ["Confidence so far", confidence(status.confidence)],
    ...(status.measured ? [] : [["Regret bound", status.regret_bound === null ? "not known" : number(status.regret_bound)]]),
  ];
  const pairs = [
    [status.stop_when ? "Progress" : "Evidence", percent(status.answer ? 1 : status.progress)],
    ["Samples to go", status.answer ? "0" : number(status.to_go)],
    ...("cost" in status ? [
      ["Cost so far", number(status.cost)],
      ["Cost to go", status.answer ? "0" : number(status.cost_to_go)],
    ] : []),
    ["Rewards", number(status.rewards)],
    ["Pending pulls", number(status.pending)],
    ["Expired pulls", number(status.expired)],
    ...(status.voided ? [["Struck out", number(status.voided)]] : []),
    // With a budget none is promised.
    ...(status.stop_when?.budget ? [] : [["Allowed error", number(status.delta)]]),
    ...(status.epsilon ? [["Allowed loss", number(status.epsilon)]] : []),
    ...(status.stop_when?.regret
      ? [["Stops at regret", number(status.stop_when.regret)]]
      : []),
    ...(status.stop_when?.budget
      ? [["Stops after", `${number(status.stop_when.budget)} samples`]]
      : []),
    ...sure,
  ];
  return el("dl", { class: "figures" }, ...pairs.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
