// Where the service itself says that a study stops or stalls.
import { call } from "./api.js";
import { el } from "./dom.js";
import { field, form } from "./form.js";

export async function webhookForm(path) {
  const now = await call(`${path}/webhook`);
  const url = el("input", { id: "webhook", type: "url", autocomplete: "off", placeholder: "https://" });
  const hours = el("input", { id: "webhook-hours", type: "number", min: "0.01", step: "any", required: true });
  url.value = now.url;
  hours.value = now.stall_after / 3600;
  return form({ id: "webhook-form" }, [
    now.trouble ? el("p", { class: "error" }, `The last message did not arrive: ${now.trouble}`) : "",
    field("webhook", "Webhook", url, "The service posts a short JSON message there when the study stops or stalls. Empty: nowhere."),
    field("webhook-hours", "Hours without a reward, while pulls are pending, until it counts as stalled", hours)],
  "Save", async () => {
    await call(`${path}/webhook`, { url: url.value, stall_after: 3600 * Number(hours.value) });
    return url.value ? "Saved." : "Removed.";
  });
}
