// The browser says that a study stops or stalls, while one of its pages is open.
import { ROOT } from "./address.js";
import { el } from "./dom.js";
import { field } from "./form.js";
import { plural } from "./numbers.js";

const STORED = `simplexplore-notify ${ROOT}`;  // by study: hours without a reward

const chosen = () => JSON.parse(localStorage.getItem(STORED) ?? "{}");

export const isWanted = (name) => Boolean(chosen()[name]);

const isStalled = (status, last, hours) =>
  status.state === "running" && status.pending > 0 && status.now - last > 3600 * hours;

// Says each thing once.
export function watcher(name) {
  let before = null;
  return (status, last) => {
    const hours = chosen()[name];
    const now = status.answer ? "stopped" : hours && isStalled(status, last, hours) ? "stalled" : "running";
    if (hours && before !== null && now !== before && now !== "running" && Notification.permission === "granted") {
      new Notification(name, { icon: `${ROOT}assets/icon.svg`, body: now === "stopped" ? status.answer_in_words
        : `No reward for ${plural(hours, "hour")}, and ${plural(status.pending, "pull")} pending.` });
    }
    before = now;
  };
}

export function notificationForm(name) {
  if (!("Notification" in window)) return el("p", { class: "dim" }, "This browser cannot notify.");
  const box = el("input", { id: "notify", type: "checkbox" }), known = chosen()[name];
  const hours = el("input", { id: "notify-hours", type: "number", min: "0.1", step: "any", value: known ?? 24 });
  const result = el("p", { class: "hint", role: "status" });
  box.checked = Boolean(known) && Notification.permission === "granted";
  async function save() {
    const all = chosen();
    delete all[name];
    if (box.checked && await Notification.requestPermission() !== "granted") {
      box.checked = false;
      result.textContent = "The browser does not allow it: look at its settings for this page.";
    } else {
      if (box.checked) all[name] = Number(hours.value) || 24;
      result.textContent = box.checked ? "You will be notified while a page of this study is open." : "";
    }
    localStorage.setItem(STORED, JSON.stringify(all));
  }
  box.addEventListener("change", save);
  hours.addEventListener("change", save);
  return el("div", {}, el("label", { class: "check" }, box, "Notify me in this browser when the study stops or stalls"),
    field("notify-hours", "Hours without a reward until it counts as stalled", hours), result);
}
