// What one can do with a study as a whole: export it and, with the right token, change it.
import { call, download } from "./api.js";
import { el, section } from "./dom.js";
import { act, smallForm } from "./form.js";
import { notificationForm } from "./notifications.js";
import { may } from "./role.js";
import { webhookForm } from "./webhook_form.js";

async function save(path, file) {
  const address = URL.createObjectURL(await download(path));
  el("a", { href: address, download: file }).click();
  URL.revokeObjectURL(address);
}

const exports = (name, path) => el("p", { class: "buttons" }, ...["csv", "json"].map((kind) =>
  act(`Export as ${kind.toUpperCase()}`, "Exported.", () => save(`${path}/export?format=${kind}`, `${name}.${kind}`))));

// Buttons that fit the study's state.
export function switches(path, status, changed) {
  if (!may("run")) return el("div");
  const to = (text, action, done) => act(text, done, async () => {
    await call(`${path}/${action}`, {});
    await changed();
  }, { id: `switch-${action}` });
  const { state } = status;
  return el("p", { class: "buttons" }, ...[
    state === "running" ? to("Pause", "pause", "Paused.") : null,
    state === "paused" ? to("Resume", "resume", "Resumed.") : null,
    state === "archived" ? to("Bring it back", "resume", "It is resumed.") : null,
    state !== "archived" && may("admin") ? to("Archive", "archive", "Archived.") : null,
  ].filter(Boolean));
}

export async function actions(name, path, status) {
  const parts = [exports(name, path)];
  if (may("run")) {
    parts.push(smallForm("A remark for the journal", "", "Note it",
      (text, key) => call(`${path}/notes`, { text }, key)),
    smallForm("Tags", "Separated by commas; the list of studies can be searched for them.", "Save tags",
      (text) => call(`${path}/tags`, { tags: text.split(",").map((one) => one.trim()).filter(Boolean) }),
      status.tags.join(", "), false));
  }
  if (may("admin") && !status.stop_when?.budget) { // samples that are spent end it whatever the error
    parts.push(smallForm("A smaller allowed error", "To go on with more confidence; this cannot be undone.",
      "Extend the study", (text, key) => call(`${path}/extension`, { delta: Number(text) }, key)));
  }
  return [...parts, section("Notifications", "notifications", notificationForm(name),
    ...(may("admin") ? [await webhookForm(path)] : []))];
}
