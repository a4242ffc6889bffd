// Rows of fields: as many as are wanted, with a button each that removes it.
import { el } from "./dom.js";

// `make(value, number)` gives {nodes, read, ...}; what it read of empty fields is null and left out.
export function rows({ noun, add, make, changed }) {
  const place = el("div", { class: "rows" });
  const more = el("button", { type: "button", class: "small", onclick: () => {
    append().nodes[0].focus();
  } }, add);
  let all = [], count = 0;

  function append(value = null) {
    const number = ++count, row = make(value, number);
    const node = el("div", { class: "row", role: "group", "aria-label": `${noun} ${number}` }, ...row.nodes,
      el("button", { type: "button", class: "small", "aria-label": `Remove ${noun} ${number}`, onclick: () => {
        all = all.filter((one) => one !== row);
        node.remove();
        more.focus();
        changed();
      } }, "×"), row.trouble ?? "");
    all.push(row);
    place.append(node);
    return row;
  }

  function fill(values) {
    all = [];
    count = 0;
    place.replaceChildren();
    for (const value of values) append(value);
  }
  return { nodes: [place, el("p", { class: "buttons" }, more)], fill, read: () => all.map((row) => row.read()).filter((one) => one !== null) };
}
