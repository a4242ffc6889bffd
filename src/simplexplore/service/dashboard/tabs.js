// Parts of a page of which one is shown. Arrow keys, Home and End go from tab to tab, and the
// address keeps which one is open.
import { el } from "./dom.js";

// `parts`: {id, title, content}; `opened` is called with the part that comes into view.
export function tabs(label, parts, opened) {
  const buttons = parts.map(({ id, title }) => el("button", { type: "button", role: "tab", id: `tab-${id}`,
    "aria-controls": `panel-${id}`, onclick: () => choose(id) }, title));
  const panels = parts.map(({ id, content }) => el("div", { role: "tabpanel", id: `panel-${id}`,
    "aria-labelledby": `tab-${id}`, tabindex: 0 }, ...content));

  function show(chosen) {
    parts.forEach(({ id }, i) => {
      buttons[i].setAttribute("aria-selected", String(id === chosen));
      buttons[i].tabIndex = id === chosen ? 0 : -1;
      panels[i].hidden = id !== chosen;
    });
    opened(parts.find(({ id }) => id === chosen));
  }

  function choose(id) {
    history.replaceState(null, "", `#${id}`);
    show(id);
  }

  function move(event) {
    const now = buttons.indexOf(event.target), last = buttons.length - 1;
    const next = { ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now ? now - 1 : last, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    buttons[next].focus();
    choose(parts[next].id);
  }

  // The one that the address names, or the first.
  const fromAddress = () => show((parts.find(({ id }) => location.hash === `#${id}`) ?? parts[0]).id);
  window.addEventListener("hashchange", fromAddress);
  const bar = el("div", { role: "tablist", "aria-label": label, class: "tabs", onkeydown: move }, ...buttons);
  return { nodes: [bar, ...panels], fromAddress };
}
