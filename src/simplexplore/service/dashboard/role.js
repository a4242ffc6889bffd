// What the token in use allows.
import { call } from "./api.js";

const ROLES = ["read", "run", "admin"];
const WORDS = { read: "You may watch.", run: "You may run studies.", admin: "You may do everything." };
let role = null;

export const isRoleKnown = () => role !== null;

export const may = (wanted) => ROLES.indexOf(role) >= ROLES.indexOf(wanted);

// Returns what else the service says of itself, such as its samplers.
export async function learnRole() {
  const setup = await call("/setup");
  role = setup.role;
  document.getElementById("role").textContent = setup.tokens ? WORDS[role] : "No tokens in use.";
  document.getElementById("token").hidden = !setup.tokens;
  return setup;
}
