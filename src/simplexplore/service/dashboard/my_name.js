// Whose pulls are "mine": a name that this browser keeps, for all studies of the service.
import { ROOT } from "./address.js";
import { el } from "./dom.js";

const STORED = `simplexplore-name ${ROOT}`;

/** Null if nobody has said who they are. */
export const myName = () => localStorage.getItem(STORED) || null;

export function nameField(changed) {
  const input = el("input", { id: "my-name", maxlength: 50, autocomplete: "off", placeholder: "so pulls are yours", onchange: () => {
    localStorage.setItem(STORED, input.value.trim());
    changed();
  } });
  input.value = myName() ?? "";
  return el("p", { class: "me" }, el("label", { for: "my-name" }, "Your name"), input);
}
