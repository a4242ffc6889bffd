// A CSV file of rewards: what it would do is shown, bad rows by line, before anything is recorded.
import { call, newKey } from "./api.js";
import { el, renew } from "./dom.js";
import { number, plural } from "./numbers.js";
import { announce, showError } from "./page.js";
import { table } from "./table.js";

const FIRST = 8;    // rows shown
const FAULTS = 20;  // bad rows named
const LARGEST = 3.5e6;  // bytes: a request has at most 4 MiB

const OUTCOMES = { told: "of a pull", late: "late", elsewhere: "made elsewhere", repeated: "known already" };

const waiting = (words) => [el("p", { class: "dim" }, words), el("progress", { "aria-label": words })];

function preview({ rows, faults }, measured, record) {
  const kinds = Object.keys(OUTCOMES).map((kind) => [kind, rows.filter((row) => row.outcome === kind).length])
    .filter(([, count]) => count).map(([kind, count]) => `${number(count)} ${OUTCOMES[kind]}`);
  return [
    faults.length ? el("div", { class: "error", role: "alert" },
      el("p", {}, `${plural(faults.length, "row")} wrong, so nothing can be imported yet:`),
      el("ul", {}, ...faults.slice(0, FAULTS).map(({ line, text }) => el("li", {}, `Line ${line}: ${text}`)),
        faults.length > FAULTS ? el("li", {}, `and ${number(faults.length - FAULTS)} more`) : "")) : null,
    el("p", {}, rows.length ? `${plural(rows.length, "row")} can be read (${kinds.join(", ")}).` : "No row can be read."),
    rows.length ? table(rows.length > FIRST ? `The first ${FIRST}` : "", ["Line", "Pull or arm", "Reward", ...measured, "Key", "Kind"],
      rows.slice(0, FIRST).map((row) => [number(row.line), row.pull ?? row.arm, number(row.reward),
        ...measured.map((name) => number(row.measured[name])), row.key, OUTCOMES[row.outcome]]), [0, 2, ...measured.map((_, i) => 3 + i)]) : null,
    rows.length && !faults.length ? el("p", { class: "buttons" },
      el("button", { type: "button", id: "import", class: "first", onclick: record }, `Import ${plural(rows.length, "reward")}`)) : null,
  ];
}

export function csvUpload(path, changed, measured) {
  const input = el("input", { id: "csv", type: "file", accept: ".csv,text/csv" });
  const place = el("div", { id: "csv-preview", "aria-live": "polite" });

  const send = (text, check, key, unlikely = "ask") => call(`${path}/imports`, { csv: text, check, unlikely }, key);

  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return renew(place);
    try {
      if (file.size > LARGEST) throw new Error("This file is too large for the browser; use 'simplexplore study tell NAME --file'.");
      renew(place, ...waiting(`Reading ${file.name}…`));
      const text = await file.text(), key = newKey();
      const found = await send(text, true);
      async function record(unlikely) {
        input.focus();  // the button goes away
        renew(place, ...waiting(`Importing ${plural(found.rows.length, "reward")}…`));
        try {
          await send(text, false, key, unlikely);
          input.value = "";
          renew(place, el("p", {}, `${plural(found.rows.length, "reward")} imported.`));
          announce("Imported.");
          changed();
        } catch (error) {
          showError(error, place);
          if (error.unlikely) place.append(el("p", { class: "buttons" }, el("button", { type: "button", id: "accept", onclick: () => record("accept") }, "They are meant: import all")));
        }
      }
      renew(place, ...preview(found, measured, () => record("ask")));
    } catch (error) { showError(error, place); }
  });
  return [el("label", { for: "csv" }, "CSV file"),
    el("p", { class: "hint" }, `The first line names the columns: ${["reward", ...measured].join(", ")}, and pull or arm; key if there are keys. Commas or semicolons. All rows are recorded, or none.`),
    input, place];
}
