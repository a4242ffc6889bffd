// Forms that write to a study.
import { newKey } from "./api.js";
import { el } from "./dom.js";
import { announce, showError } from "./page.js";

// Do something once, however often it is asked for meanwhile. A button that is disabled would lose
// the focus.
async function once(button, trouble, work) {
  if (button.hasAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  try {
    const said = await work();
    trouble.replaceChildren();
    announce(said);
  } catch (error) { showError(error, trouble); }
  button.removeAttribute("aria-disabled");
}

// A form whose request has one name until something else is written, so that a second click,
// or another attempt after a lost answer, does nothing more.
export function form(attributes, parts, button, send) {
  let key = newKey();
  const trouble = el("div");
  const submit = el("button", { type: "submit", class: attributes.first ? "first" : null }, button);
  return el("form", { id: attributes.id, class: attributes.class ?? null, oninput: () => { key = newKey(); },
    onsubmit: (event) => {
      event.preventDefault();
      once(submit, trouble, async () => {
        const said = await send(key);
        key = newKey();
        return said || "Done.";
      });
    } }, ...parts, el("p", { class: "buttons" }, submit), trouble);
}

export const field = (id, label, input, hint = "") => el("div", {}, el("label", { for: id }, label), input,
  hint ? el("p", { class: "hint" }, hint) : null);

// A form with one line of text.
export function smallForm(label, hint, button, send) {
  const id = label.toLowerCase().replace(/\W+/g, "-");
  const input = el("input", { id, required: true, autocomplete: "off" });
  return form({ id: `form-${id}` }, [field(id, label, input, hint)], button, async (key) => {
    await send(input.value, key);
    input.value = "";
  });
}

// A button that does something at once.
export function act(text, done, send, attributes = {}) {
  const trouble = el("div");
  const button = el("button", { type: "button", ...attributes, onclick: () => once(button, trouble, async () => {
    await send();
    return done;
  }) }, text);
  return el("span", {}, button, trouble);
}
