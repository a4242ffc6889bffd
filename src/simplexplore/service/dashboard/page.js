// What all pages have: a title, a place for errors, and a voice for those who do not see them.
import { el } from "./dom.js";

export const main = document.getElementById("main");

export function begin(title, ...children) {
  document.title = `${title} · simplexplore`;
  main.replaceChildren(el("h1", {}, title), el("div", { id: "trouble" }), ...children);
}

// Say something to those who do not see the page change.
export function announce(text) {
  const news = document.getElementById("news");
  if (news.textContent !== text) news.textContent = text;
}

// Show what is wrong; said once, however often it is tried again.
export function showError(error, place, more = "") {
  const text = error.message + more;
  if (place.textContent !== text) place.replaceChildren(el("p", { class: "error", role: "alert" }, text));
}

// The same, of something that is tried again by itself.
export const showPassingError = (error) =>
  showError(error, document.getElementById("trouble"), error.status === 0 ? " Trying again." : "");

export const clearError = () => document.getElementById("trouble").replaceChildren();
