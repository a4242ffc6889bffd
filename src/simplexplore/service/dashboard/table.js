// Tables, and small pictures beside their numbers.
import { el, svg, whole } from "./dom.js";

export const FEW = 12;  // rows shown at first

// A table whose cells carry their column's heading, for narrow screens.
export function table(caption, headings, rows, numeric = []) {
  const cell = (value, i) => {
    const attributes = { "data-label": headings[i], class: numeric.includes(i) ? "number" : null };
    if (i === 0) return el("th", { scope: "row", class: attributes.class }, value);
    return value === null ? el("td") : el("td", attributes, value);
  };
  return el("table", { class: "cards" },
    caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, ...headings.map((text, i) =>
      el("th", { scope: "col", class: numeric.includes(i) ? "number" : null }, text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))));
}

// A number with a small picture beside it; the picture says nothing that the number does not.
export function pictured(text, ...marks) {
  return el("span", { class: "pictured" }, typeof text === "string" ? whole(text) : text, svg("svg", { class: "mark", viewBox: "0 0 100 14",
    preserveAspectRatio: "none", "aria-hidden": "true" }, ...marks));
}

export const bar = (share) => [
  svg("rect", { class: "track", x: 0, y: 3, width: 100, height: 8 }),
  svg("rect", { class: "bar", x: 0, y: 3, width: 100 * Math.min(1, Math.max(0, share)), height: 8 }),
];

export const tick = (name, share) =>
  svg("line", { class: name, x1: 100 * share, x2: 100 * share, y1: 0, y2: 14 });
