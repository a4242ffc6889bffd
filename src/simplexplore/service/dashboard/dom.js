// Elements. Whatever comes from the service becomes text nodes and attributes, never HTML.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A few words that stay on one line.
export const whole = (text) => el("span", { class: "whole" }, text);

// A remark that matters less than the rest.
export const dim = (text) => el("p", { class: "dim" }, text);

export function section(title, id, ...children) {
  return el("section", { "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), ...children);
}

// Put new content in a place; what has the focus or is unfolded stays so. If what had the focus is
// gone, the first control there gets it: whoever has no mouse would begin at the top of the page.
export function renew(place, ...children) {
  const had = place.contains(document.activeElement) ? document.activeElement : null;
  const open = [...place.querySelectorAll("details[open]")].map((one) => one.id);
  place.replaceChildren(...children.filter((child) => child !== null));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (!had || place.contains(had)) had?.focus();
  else ((had.id && document.getElementById(had.id)) || place.querySelector("input, select, button, summary, a[href]"))?.focus();
}
