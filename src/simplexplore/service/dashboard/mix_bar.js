// A mix as one bar, with its shares in percent.
import { el } from "./dom.js";
import { percent } from "./numbers.js";

const MOST = 5;  // arms with a part of their own

// `arms`: {arm, policy}. What it says to those who do not see it, the sentence beside it says.
export function mixBar(arms) {
  const used = arms.filter((one) => one.policy > 0).sort((one, other) => other.policy - one.policy);
  const rest = used.slice(MOST);
  const parts = used.slice(0, MOST).map((one) => [one.arm, one.policy]);
  if (rest.length) parts.push([`${rest.length} more`, rest.reduce((sum, one) => sum + one.policy, 0)]);
  return el("div", { class: "mix", "aria-hidden": "true" }, ...parts.map(([arm, share], i) => {
    const part = el("div", { class: `part-${i}`, title: `${percent(share)} ${arm}` },
      el("span", {}, arm), el("strong", {}, percent(share)));
    part.style.flexGrow = share;
    return part;
  }));
}
