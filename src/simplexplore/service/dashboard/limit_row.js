// A limit on the mix as a sentence: "at most 30% of pizza + pasta".
import { el } from "./dom.js";
import { percentOf, shareFrom } from "./numbers.js";

const SIGNS = { "at most": "<=", "at least": ">=", exactly: "==" };
const FREE = "as a formula";
const SENTENCE = /^([^<>=]+?)\s*(<=|>=|==)\s*(\d[\d.]*(?:e[-+]?\d+)?)$/;

// Whether it is a sum of shares, of which no limit is above 1.
const isShare = (what) => !/[*/\d(]/.test(what.replace(/`[^`]*`/g, "a").replace(/[^\W\d]\w*/g, "a"));

// Names that are not one plain word stand in backticks.
function quoted(what, arms) {
  const odd = arms.filter((arm) => !/^[\p{L}_][\p{L}\p{N}_]*$/u.test(arm)).sort((a, b) => b.length - a.length);
  return odd.reduce((text, arm) => text.split("`").map((part, i) =>
    i % 2 ? part : part.split(arm).join(`\`${arm}\``)).join("`"), what);
}

// `value`: [name, formula] of the file, or null; `names` gives the arms.
export function limitRow(value, number, names, changed) {
  const [name, formula] = value ?? [null, ""];
  const found = SENTENCE.exec(formula);
  const kind = el("select", { "aria-label": `Kind of limit ${number}` },
    ...[...Object.keys(SIGNS), FREE].map((text) => el("option", { value: text }, text)));
  const amount = el("input", { "aria-label": `Amount of limit ${number}`, placeholder: "30%", class: "amount", autocomplete: "off" });
  const of = el("span", {}, "of");
  const what = el("input", { "aria-label": `What limit ${number} is about`, placeholder: "pizza + pasta", autocomplete: "off", spellcheck: "false" });
  const trouble = el("div", { class: "question" });
  if (found) {
    kind.value = Object.keys(SIGNS).find((text) => SIGNS[text] === found[2]);
    what.value = found[1];
    amount.value = isShare(found[1]) ? percentOf(Number(found[3])) : found[3];
  } else if (formula) {
    kind.value = FREE;
    what.value = formula;
  }
  const show = () => { amount.hidden = of.hidden = kind.value === FREE; };
  kind.addEventListener("change", show);
  show();

  function ask(text) {
    const meant = `${text.replace(",", ".")}%`;
    trouble.replaceChildren(`${meant}? `, el("button", { type: "button", class: "small", onclick: () => {
      amount.value = meant;
      amount.focus();
      changed();
    } }, `Yes, ${meant}`));
  }

  // The entry of the file: null if nothing is said yet; an entry without a formula is not clear.
  function read() {
    trouble.replaceChildren();
    const text = amount.value.trim(), about = quoted(what.value.trim(), names());
    if (kind.value === FREE) return about ? [name ?? about, about] : null;
    if (!text || !about) return null;
    const value = shareFrom(text);
    if (value === null) {
      trouble.replaceChildren(`“${text}” is not a number.`);
      return [name ?? about, null];
    }
    if (isShare(about) && value > 1) {
      if (text.endsWith("%")) trouble.replaceChildren(`No share is above 100%.`);
      else ask(text);
      return [name ?? about, null];
    }
    return [name ?? about, `${about} ${SIGNS[kind.value]} ${value}`];
  }
  return { nodes: [kind, amount, of, what], trouble, read };
}
