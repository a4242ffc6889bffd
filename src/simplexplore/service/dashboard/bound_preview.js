// What the service says of a problem file before a study is started with it.
import { dim, el } from "./dom.js";
import { number, plural } from "./numbers.js";
import { FEW, bar, pictured, table } from "./table.js";

export function boundPreview(plan) {
  const parts = [el("p", {}, el("strong", {}, plan.title ?? "The file is fine.")), el("p", {}, plan.headline),
    dim(`${plural(plan.arms.length, "arm")}, ${plural(plan.constraints.length, "constraint")}, ` +
      `${plan.measured ? `${plural(plan.measured.length, "measured limit")}, ` : ""}` +
      `${plan.family} rewards, delta ${number(plan.delta)}, ${plan.scenario}`),
    ...plan.notes.map((text) => dim(text))];
  if (plan.bound) {
    const rows = Object.entries(plan.bound.scenarios);
    parts.push(table("How hard it is if the means are as guessed",
      ["Scenario", `${plan.bound.costs ? "Cost" : "Samples"} on average, at least`, "To expect", "Characteristic time"],
      rows.map(([name, one]) => [name, number(one.lower_bound), number(one.expected_cost ?? one.expected_samples), number(one.characteristic_time)]), [1, 2, 3]));
    const [, own] = rows.find(([name]) => name === plan.scenario);
    const order = plan.arms.map((arm, i) => [arm, plan.bound.policy[i], own.allocation[i]])
      .sort((a, b) => b[2] - a[2]).slice(0, FEW);
    parts.push(table("Where samples would go", ["Arm", "In the mix", "Share of the samples"],
      order.map(([arm, policy, share]) => [arm, number(policy), pictured(number(share), ...bar(share))]), [1]));
  }
  return parts;
}
