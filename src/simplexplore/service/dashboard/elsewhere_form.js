// A reward of an arm that was played without being asked for.
import { call } from "./api.js";
import { el } from "./dom.js";
import { field, form } from "./form.js";
import { outcomeFields, said } from "./outcome_fields.js";
import { announce } from "./page.js";
import { question } from "./unlikely.js";

export function elsewhereForm(path, arms, measured, changed) {
  const arm = el("select", { id: "elsewhere-arm" }, ...arms.map((name) => el("option", { value: name }, name)));
  const { inputs, read } = outcomeFields(measured, "elsewhere-reward", () => ({ required: true }));
  const doubt = el("div");
  async function tell(key, unlikely) {
    const told = (await call(`${path}/rewards`, { rewards: [{ arm: arm.value, ...read() }], unlikely }, key)).rewards;
    for (const input of inputs) input.value = "";
    await changed();
    return said(told);
  }
  return form({ id: "elsewhere" }, [el("div", { class: "columns" }, field("elsewhere-arm", "Arm", arm),
    ...inputs.map((input, i) => field(input.id, i ? measured[i - 1] : "Reward", input))), doubt], "Tell", async (key) => {
    doubt.replaceChildren();
    try { return await tell(key, "ask"); } catch (error) {
      if (!error.unlikely) throw error;
      doubt.replaceChildren(question(error.unlikely[0], (value) => {
        inputs[0].value = value;
        doubt.replaceChildren();
      }, async () => {
        doubt.replaceChildren();
        announce(await tell(key, "accept"));
      }));
      return "It looks impossible.";
    }
  });
}
