// Asks why a reward is struck out.
const dialog = document.getElementById("ask-reason");
const input = document.getElementById("reason-text");

// The reason, or null if there is none.
export function askForReason(what) {
  document.getElementById("reason-what").textContent = what;
  input.value = "";
  input.required = true;
  dialog.returnValue = "cancel";
  const opener = document.activeElement.id;
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      document.getElementById(opener)?.focus();  // it may have been drawn anew in the meantime
      resolve(dialog.returnValue === "void" ? input.value.trim() || null : null);
    }, { once: true });
  });
}
