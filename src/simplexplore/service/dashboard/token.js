// The token, which stays in this tab, and the dialog that asks for it.
import { ROOT } from "./address.js";

const STORED = `simplexplore-token ${ROOT}`;
const dialog = document.getElementById("ask-token");
let declined = false;  // to give a token: do not ask again and again

export function authorization() {
  const token = sessionStorage.getItem(STORED);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export const hasToken = () => sessionStorage.getItem(STORED) !== null;

export function askForToken(why) {
  if (dialog.open || (why && declined)) return;
  const refused = hasToken();
  document.getElementById("token-why").textContent = !why
    ? "Your token says what you may do here. It is kept until you close this tab."
    : refused ? "The token is not known here, or was revoked. Ask the person who runs this service for another one."
      : "This service is only for people who have a token, a long word that begins with sx_. Ask the person who runs the service for one.";
  dialog.returnValue = "cancel";
  dialog.showModal();
}

document.getElementById("token").addEventListener("click", () => askForToken(""));
dialog.addEventListener("close", () => {
  const input = document.getElementById("token-text");
  const text = input.value.trim();
  input.value = "";
  if (dialog.returnValue === "forget") sessionStorage.removeItem(STORED);
  else if (dialog.returnValue === "use" && text) sessionStorage.setItem(STORED, text);
  else {
    declined = true;
    return;
  }
  location.reload();
});
