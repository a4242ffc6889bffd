// What rewards are, in words, and the family that goes with it.
import { el } from "./dom.js";
import { field } from "./form.js";

const KINDS = {
  yes: { label: "yes or no", family: "bernoulli", fields: [] },
  rating: { label: "a rating", family: "bounded", fields: ["low", "high"], usual: { low: 1, high: 5 } },
  money: { label: "money, or another amount with a most", family: "bounded", fields: ["high"], usual: { low: 0, high: 100 } },
  counts: { label: "counts: how often something happened", family: "poisson", fields: [] },
  any: { label: "any number", family: "gaussian", fields: ["sigma"], usual: {} },
};
const LABELS = { low: "From", high: "To at most", sigma: "Standard deviation of one reward" };
const HINTS = { sigma: "Empty: nobody knows it, and it is learned for each arm." };

// Which kind a table of the file is; of a family with several, the one that is chosen stays.
function kindOf(table, chosen) {
  const family = table.family ?? "gaussian";
  if (KINDS[chosen].family === family && family !== "bounded") return chosen;
  if (family === "bounded") return (table.low ?? 0) === 0 && table.high !== 1 ? "money" : "rating";
  return Object.keys(KINDS).find((kind) => KINDS[kind].family === family) ?? "any";
}

export function rewardFields() {
  const kind = el("select", { id: "reward-kind" }, ...Object.entries(KINDS).map(([name, { label }]) => el("option", { value: name }, label)));
  const inputs = Object.fromEntries(Object.keys(LABELS).map((name) => [name, el("input", { id: `reward-${name}`, inputmode: "decimal", autocomplete: "off" })]));
  const places = Object.fromEntries(Object.keys(LABELS).map((name) => [name, field(`reward-${name}`, LABELS[name], inputs[name], HINTS[name])]));
  let rest = {};  // what the file says beyond these fields

  function show() {
    for (const name of Object.keys(LABELS)) places[name].hidden = !KINDS[kind.value].fields.includes(name);
  }

  kind.addEventListener("change", () => {
    rest = {};
    for (const name of Object.keys(LABELS)) inputs[name].value = KINDS[kind.value].usual?.[name] ?? "";
    show();
  });

  function fill(table = {}) {
    kind.value = kindOf(table, kind.value);
    rest = table;
    for (const name of Object.keys(LABELS)) {
      inputs[name].value = typeof table[name] === "number" ? table[name] : name === "sigma" && !("sigma" in table) && kind.value === "any" ? 1 : "";
    }
    show();
  }

  function read() {
    const { family, fields, usual } = KINDS[kind.value];
    const { low, high, sigma, ...others } = rest;
    const found = { ...(rest.family === family ? others : {}), family };
    const given = (name) => inputs[name].value.trim() ? Number(inputs[name].value.trim().replace(",", ".")) : null;
    if (family === "bounded") Object.assign(found, { low: fields.includes("low") ? given("low") ?? usual.low : 0, high: given("high") ?? usual.high });
    // One number for each arm is more than the form shows.
    if (family === "gaussian") found.sigma = given("sigma") ?? (Array.isArray(sigma) ? sigma : "unknown");
    return found;
  }
  show();
  return { nodes: [el("div", { class: "columns" }, field("reward-kind", "A reward is", kind), ...Object.values(places))], fill, read };
}
