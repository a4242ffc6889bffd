// Fields for what a pull reports: its reward and, by name, what is measured beside it.
import { el } from "./dom.js";
import { plural } from "./numbers.js";

// A number as people type it: 7,5 is 7.5, but 1,234 may be either.
export function parsed(text) {
  const plain = text.trim();
  if (/^[-+]?\d{1,3}(,\d{3})+$/.test(plain)) {
    throw new Error(`“${text}” can be ${plain.replaceAll(",", "")} or ${plain.replace(",", ".")}: write it without a comma.`);
  }
  const value = Number(plain.replace(",", "."));
  if (!plain || !Number.isFinite(value)) throw new Error(`“${text}” is not a number.`);
  return value;
}

function named(name, text) {
  if (!text.trim()) throw new Error(`${name} is missing.`);
  try { return parsed(text); } catch (error) { throw new Error(`${name}: ${error.message}`); }
}

const field = (attributes) => el("input", { inputmode: "decimal", autocomplete: "off", ...attributes });

export function outcomeFields(measured, id, attributes) {
  const value = field({ id, ...attributes("Reward") });
  const others = measured.map((name, i) => [name, field({ id: `${id}-${i}`, ...attributes(name) })]);
  return { inputs: [value, ...others.map(([, input]) => input)],
    read: () => ({ reward: parsed(value.value), ...(measured.length
      ? { measured: Object.fromEntries(others.map(([name, input]) => [name, named(name, input.value)])) } : {}) }) };
}

/** What was told, in words. */
export const said = (told) =>
  `${plural(told.length, "reward")} told.${told.some((one) => one.stopped) ? " The study has its answer." : ""}`;
