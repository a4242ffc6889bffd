// What one can do with a study: export it and, with the right token, write to it.
import { call, download, newKey } from "./api.js";
import { el } from "./dom.js";
import { announce, showError } from "./page.js";
import { may } from "./role.js";

async function save(path, file) {
  const address = URL.createObjectURL(await download(path));
  el("a", { href: address, download: file }).click();
  URL.revokeObjectURL(address);
}

// A form whose request has one name until something else is written, so that a second click,
// or another attempt after a lost answer, does nothing more.
function smallForm(label, hint, button, send) {
  const id = label.toLowerCase().replace(/\W+/g, "-");
  let key = newKey();
  const input = el("input", { id, required: true, oninput: () => { key = newKey(); } });
  const trouble = el("div");
  return el("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await send(input.value, key);
      input.value = "";
      key = newKey();
      trouble.replaceChildren();
      announce("Done.");
    } catch (error) { showError(error, trouble); }
  } }, el("label", { for: id }, label), hint ? el("p", { class: "hint" }, hint) : null, input,
  trouble, el("p", { class: "buttons" }, el("button", { type: "submit" }, button)));
}

export function actions(name, path) {
  const trouble = el("div");
  const parts = [el("p", { class: "buttons" }, ...["csv", "json"].map((form) =>
    el("button", { type: "button", onclick: () =>
      save(`${path}/export?format=${form}`, `${name}.${form}`).then(() => trouble.replaceChildren(),
        (error) => showError(error, trouble)) }, `Export as ${form.toUpperCase()}`))), trouble];
  if (may("run")) {
    parts.push(smallForm("A remark for the journal", "", "Note it",
      (text, key) => call(`${path}/notes`, { text }, key)));
  }
  if (may("admin")) {
    parts.push(smallForm("A smaller allowed error", "To go on with more confidence; there is no way back.",
      "Extend the study", (text, key) => call(`${path}/extension`, { delta: Number(text) }, key)));
  }
  return parts;
}
