// Asks for a reason before something is done that cannot be undone.
const dialog = document.getElementById("ask-reason");
const input = document.getElementById("reason-text");

const KINDS = {
  strike: { title: "Strike out a reward", button: "Strike it out", usual: "",
    hint: "The study goes on as if this reward had never been told. The journal keeps the reward and your reason." },
  release: { title: "Not made", button: "Give it back", usual: "not made",
    hint: "Its arm may be asked for again. Only for pulls of which nobody has seen a reward: what is given back must not depend on how good it was." },
};

// The reason, or null if there is none.
export function askForReason(kind, what) {
  const { title, button, usual, hint } = KINDS[kind];
  for (const [id, text] of [["reason-title", title], ["reason-what", what], ["reason-hint", hint], ["reason-go", button]]) {
    document.getElementById(id).textContent = text;
  }
  input.value = usual;
  input.required = true;
  dialog.returnValue = "cancel";
  const opener = document.activeElement.id;
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      document.getElementById(opener)?.focus();  // it may have been drawn anew in the meantime
      resolve(dialog.returnValue === "go" ? input.value.trim() || null : null);
    }, { once: true });
  });
}
