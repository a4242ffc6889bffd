// Asks why a reward is struck out.
const dialog = document.getElementById("ask-reason");
const input = document.getElementById("reason-text");

// The reason, or null if there is none.
export function askForReason(what) {
  document.getElementById("reason-what").textContent = what;
  input.value = "";
  input.required = true;
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () =>
      resolve(dialog.returnValue === "void" ? input.value.trim() || null : null), { once: true });
  });
}
