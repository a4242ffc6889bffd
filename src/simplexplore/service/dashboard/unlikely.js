// A reward that looks impossible: what is usual for its arm, and what may have been meant.
import { el } from "./dom.js";
import { number } from "./numbers.js";

// The same digits with the point elsewhere, or another sign; null if none of them is usual.
export function meant(reward, [low, high]) {
  return [10, 100, 1000, 0.1, 0.01].map((factor) => Number((reward / factor).toPrecision(12))).concat(-reward)
    .find((value) => low <= value && value <= high) ?? null;
}

/** `found`: {arm, reward, usual}; `correct(value)` and `accept()` do what the buttons say. */
export function question({ arm, reward, usual }, correct, accept) {
  const better = meant(reward, usual);
  return el("div", { class: "question", role: "alert" },
    el("p", {}, `${number(reward)} looks impossible for ${arm}: usual is ${number(usual[0])} to ${number(usual[1])}.`,
      better === null ? "" : ` Did you mean ${number(better)}?`),
    el("p", { class: "buttons" },
      better === null || !correct ? "" : el("button", { type: "button", class: "small first", onclick: () => correct(better) }, `Yes, ${number(better)}`),
      el("button", { type: "button", class: "small", onclick: accept }, `${number(reward)} is meant`)));
}
