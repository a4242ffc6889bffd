// A study in two sentences and a few figures.
import { el } from "./dom.js";
import { number, percent } from "./numbers.js";

export function inWords(status) {
  if (status.answer) {
    return [status.answer_in_words,
      (status.epsilon ? `It earns at most ${number(status.epsilon)} less than the best mix. ` : "") +
      `Found with ${number(status.answer.rewards)} rewards` +
      (status.proven ? "." : ", by a rule of thumb: nothing is proven of this threshold.")];
  }
  if (!status.policy) return ["No answer yet: some arms have no reward.", "Every arm is played first."];
  const [low, high] = status.value_interval;
  const value = low === null || high === null ? "" : `, between ${number(low)} and ${number(high)} with confidence ${number(1 - status.delta)}`;
  const left = status.to_go === null
    ? "The best mixes tie at the means seen so far: no telling how many samples to go."
    : `${percent(status.progress)} of the evidence needed; about ${number(status.to_go)} samples to go if the means are as they look${range(status.to_go_range)}.`;
  const kind = status.epsilon ? "Good mix" : "Best mix";
  return [`${kind} so far: ${status.policy_in_words}.`, `It earns ${number(status.value)}${value}. ${left}`];
}

function range(ends) {
  if (ends === null) return "";
  const [low, high] = ends;
  if (!low && high === null) return "; it is too early for a range";
  return `, ${number(low)} ${high === null ? "or more" : `to ${number(high)}`} in four runs of five`;
}

export function figures(status) {
  const sure = status.confidence === null ? [] : [
    ["Confidence so far", percent(status.confidence)],
    ["At most lost", status.regret_bound === null ? "not known" : number(status.regret_bound)],
  ];
  const pairs = [
    ["Evidence", percent(status.answer ? 1 : status.progress)],
    ["Samples to go", status.answer ? "0" : number(status.to_go)],
    ...("cost" in status ? [
      ["Cost so far", number(status.cost)],
      ["Cost to go", status.answer ? "0" : number(status.cost_to_go)],
    ] : []),
    ["Rewards", number(status.rewards)],
    ["Pending pulls", number(status.pending)],
    ["Given up", number(status.expired)],
    ["Allowed error", number(status.delta)],
    ...(status.epsilon ? [["Allowed loss", number(status.epsilon)]] : []),
    ...(status.stop_when ? [["Stops when lost at most", number(status.stop_when.regret)]] : []),
    ...sure,
  ];
  return el("dl", { class: "figures" }, ...pairs.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
