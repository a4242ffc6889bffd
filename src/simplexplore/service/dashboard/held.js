// Rewards that look impossible and so keep the study from stopping: each is meant, or struck out.
import { call, newKey } from "./api.js";
import { el } from "./dom.js";
import { act } from "./form.js";
import { number } from "./numbers.js";
import { askForReason } from "./reason_dialog.js";
import { may } from "./role.js";
import { meant } from "./unlikely.js";

function one(held, path, changed) {
  const { arm, reward, usual } = held, which = held.pull ? { pull: held.pull } : { event: held.event };
  const better = meant(reward, usual), id = held.pull ?? held.event;
  const confirm = async () => {
    await call(`${path}/confirm`, which, newKey());
    await changed();
  };
  const strike = async () => {
    const reason = await askForReason("strike", `${number(reward)}, of ${arm}`);
    if (reason === null) return;
    await call(`${path}/voids`, { ...which, reason }, newKey());
    await changed();
  };
  return el("div", { class: "warning" }, el("p", {}, el("strong", {}, `${number(reward)} looks impossible for ${arm}`),
    ` (usual is ${number(usual[0])} to ${number(usual[1])}).`, better === null ? "" : ` Did you mean ${number(better)}?`,
    " The study does not stop before somebody has looked at it."),
  may("run") ? el("p", { class: "buttons" }, act(`${number(reward)} is meant`, "Confirmed.", confirm, { class: "small", id: `confirm-${id}` }),
    act("Strike out", "Struck out.", strike, { class: "small", id: `strike-held-${id}` })) : "");
}

export const heldRewards = ({ path, status, changed }) => status.held.map((held) => one(held, path, changed));
