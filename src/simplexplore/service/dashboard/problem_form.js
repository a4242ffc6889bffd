// A problem as a form: what its file says, in fields. What the form does not show, it keeps.
import { el } from "./dom.js";
import { field } from "./form.js";
import { limitRow } from "./limit_row.js";
import { percentOf, shareFrom } from "./numbers.js";
import { rewardFields } from "./reward_fields.js";
import { rows } from "./rows.js";

function armRow(value, number) {
  const name = el("input", { "aria-label": `Name of arm ${number}`, placeholder: "name", autocomplete: "off" });
  const guess = el("input", { "aria-label": `Guess of the mean of arm ${number}`, placeholder: "mean, if you can guess it", inputmode: "decimal", autocomplete: "off" });
  name.value = value?.name ?? "";
  guess.value = value?.mean ?? "";
  const number_ = () => Number(guess.value.trim().replace(",", "."));
  return { nodes: [name, guess], read: () => name.value.trim()
    ? { name: name.value.trim(), mean: guess.value.trim() && Number.isFinite(number_()) ? number_() : null } : null };
}

// `changed` is called with what the file is to say, whenever the form says something else.
export function problemForm(changed) {
  let file = {};
  const tell = () => {
    const found = read();
    if (found) changed(found);
  };
  const arms = rows({ noun: "arm", add: "Add an arm", make: armRow, changed: tell });
  const limits = rows({ noun: "limit", add: "Add a limit", changed: tell,
    make: (value, number) => limitRow(value, number, () => arms.read().map((one) => one.name), tell) });
  const rewards = rewardFields();
  const confidence = el("input", { id: "wanted-confidence", inputmode: "decimal", autocomplete: "off" });
  const loss = el("input", { id: "allowed-loss", inputmode: "decimal", autocomplete: "off" });
  const keeps = el("input", { id: "keeps", type: "checkbox" });

  function fill(said) {
    file = said;
    arms.fill((said.arms ?? []).map((name, i) => ({ name, mean: said.means?.[i] })));
    rewards.fill(said.rewards);
    limits.fill(Object.entries(said.constraints ?? {}).filter(([, formula]) => typeof formula === "string"));
    confidence.value = percentOf(1 - (said.delta ?? 0.1));
    loss.value = said.epsilon ?? "";
    keeps.checked = said.scenario === "anytime";
    keeps.disabled = said.scenario === "exploration" || "exploration" in said;
  }

  // What the file is to say; null while something is not clear yet.
  function read() {
    const given = arms.read(), constraints = limits.read(), sure = shareFrom(confidence.value);
    if (constraints.some(([, formula]) => formula === null)) return null;
    const { means: _, epsilon: __, constraints: before, ...rest } = file;
    const share = sure === null ? null : sure > 1 ? sure / 100 : sure;
    // Limits as a matrix are more than the form shows.
    const others = Object.entries(before ?? {}).filter(([, formula]) => typeof formula !== "string");
    const taken = new Set();
    const named = constraints.map(([name, formula]) => {
      let free = name;
      for (let i = 2; taken.has(free); i += 1) free = `${name} (${i})`;
      taken.add(free);
      return [free, formula];
    });
    return { ...rest, arms: given.map((one) => one.name),
      ...(given.length && given.every((one) => one.mean !== null) ? { means: given.map((one) => one.mean) } : {}),
      delta: share === null ? file.delta ?? 0.1 : Number((1 - share).toPrecision(12)),
      ...(loss.value.trim() ? { epsilon: Number(loss.value.trim().replace(",", ".")) } : {}),
      ...(keeps.disabled ? {} : { scenario: keeps.checked ? "anytime" : "end-of-time" }),
      rewards: rewards.read(), constraints: Object.fromEntries([...others, ...named]) };
  }

  fill({ arms: ["", ""], rewards: { family: "bernoulli" }, delta: 0.05 });
  file = {};
  const part = (title, ...nodes) => el("fieldset", {}, el("legend", {}, title), ...nodes);
  const node = el("div", { id: "problem-form", oninput: tell },
    part("What there is to choose from (arms)", ...arms.nodes),
    part("What a reward is", ...rewards.nodes),
    part("Limits on the mix", el("p", { class: "hint" }, "Such as: at most 30% of pizza + pasta; at most 40% of each."), ...limits.nodes,
      el("label", { class: "check" }, keeps, "The samples keep the limits, too")),
    part("When it is enough", el("div", { class: "columns" },
      field("wanted-confidence", "Confidence wanted", confidence, "How sure the answer is to be."),
      field("allowed-loss", "Loss that does not matter", loss, "In the unit of rewards; empty: none."))));
  return { node, fill };
}
