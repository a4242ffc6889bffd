// What is known of a study: the sentences of `study status`, and the best mix, if one is sought, as a picture.
import { el } from "./dom.js";
import { mixBar } from "./mix_bar.js";
import { capitalized } from "./numbers.js";

/** The most important sentence: the answer or, until there is one, the best mix so far. */
export function headline({ words }) {
  const [[about, sentence]] = Object.entries(words);
  return `${capitalized(about)}: ${sentence}`;
}

// Green and round, or not: the words beside it say what is wrong.
const light = ({ health }) => el("span", { class: health.some((one) => one.state === "alarm") ? "light alarm" : "light ok", "aria-hidden": "true" });

// How much evidence there is stands under the tab of that name; what is held, among what is to do.
export function knowledge(status) {
  const sentences = Object.entries(status.words).filter(([about]) => !["evidence", "held"].includes(about));
  return [status.question ? null : mixBar(status.arms), el("dl", { class: "known" }, ...sentences.map(([about, sentence]) =>
    el("div", { id: `known-${about.replaceAll(" ", "-")}` }, el("dt", {}, capitalized(about)), el("dd", {}, ...(about === "health" ? [light(status)] : []), sentence))))];
}
