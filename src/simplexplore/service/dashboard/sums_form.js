// Many rewards at once, as sums by arm: what a week's report has.
import { call } from "./api.js";
import { el } from "./dom.js";
import { field, form } from "./form.js";
import { parsed } from "./outcome_fields.js";

// What is told of the rewards of an arm, by family; of others every single one is needed.
const TOLD = { gaussian: "mean", bernoulli: "successes", poisson: "total" };
const LABELS = { n: "Samples", mean: "Mean", sd: "Standard deviation", successes: "Successes", total: "Total" };

// Null where rewards are told one by one.
export function sumsForm({ path, problem, status, measured, changed }) {
  const family = /^family = "(\w+)"$/m.exec(problem)?.[1] ?? "gaussian";
  if (!TOLD[family] || measured.length) return null;
  const columns = ["n", TOLD[family], ...(family === "gaussian" && /^sigma = "unknown"$/m.test(problem) ? ["sd"] : [])];
  const name = el("input", { id: "sums-name", required: true, maxlength: 100, autocomplete: "off", placeholder: "week 12" });
  const rows = status.arms.map(({ arm }) => ({ arm, inputs: columns.map((column) =>
    el("input", { inputmode: "decimal", autocomplete: "off", "aria-label": `${LABELS[column]} of ${arm}`, placeholder: LABELS[column].toLowerCase() })) }));

  function read() {
    const filled = rows.filter(({ inputs }) => inputs.some((input) => input.value.trim()));
    if (!filled.length) throw new Error("Nothing is filled in.");
    return filled.map(({ arm, inputs }) => ({ arm, key: `${name.value.trim()}: ${arm}`,
      ...Object.fromEntries(columns.map((column, i) => {
        try { return [column, parsed(inputs[i].value)]; } catch (error) { throw new Error(`${LABELS[column]} of ${arm}: ${error.message}`); }
      })) }));
  }

  return form({ id: "sums" }, [
    field("sums-name", "What they are the sums of", name, "Told again under the same name, they count once. How many samples there are must not depend on how good they were."),
    el("div", { class: "sums" }, ...rows.map(({ arm, inputs }) => el("div", { class: "row", role: "group", "aria-label": arm }, el("span", { class: "arm" }, arm), ...inputs))),
  ], "Tell the sums", async (key) => {
    const { rewards } = await call(`${path}/rewards`, { rewards: read() }, key);
    for (const { inputs } of rows) for (const input of inputs) input.value = "";
    name.value = "";
    await changed();
    return rewards.every((one) => one.outcome === "repeated") ? "They were known already." : "Told.";
  });
}
