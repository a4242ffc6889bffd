// Numbers and times as people read them.
export function number(value, absent = "–") {
  if (value === null || value === undefined) return absent;
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite";
  if (Math.abs(value) >= 1e10) return value.toExponential(3).replace(/\.?0+e/, "e");  // as tables of the command line do
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

export function percent(share) {  // only all is 100%, only none is 0%
  if (share === null) return "–";
  if (share >= 0.9995 && share < 1) return ">99.9%";
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${Math.round(1000 * Math.max(0, share)) / 10}%`;
}

/** A confidence, rounded down: never more than is known. */
export const confidence = (share) =>
  share === null ? "–" : `${Math.floor(1000 * Math.max(0, share)) / 10}%`;

/** A p-value, rounded up: never less than is known. */
export const probability = (p) => p < 0.0001 ? "<0.0001" : number(Math.min(1, Math.ceil(p * 10000) / 10000));

export const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

export const shortTime = (seconds) => new Date(1000 * seconds).toLocaleString([],
  { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });

export const time = (seconds) => new Date(1000 * seconds).toLocaleString([],
  { dateStyle: "medium", timeStyle: "medium" });

/** A share as one types it: 0.3 is 30%. */
export const percentOf = (share) => `${Number((100 * share).toPrecision(12))}%`;

/** A number as one types it, with a decimal point or comma; 30% is 0.3. Null if it is none. */
export function shareFrom(text) {
  const found = /^(\d+(?:[.,]\d+)?|[.,]\d+)\s*(%?)$/.exec(text.trim());
  if (!found) return null;
  const value = Number(found[1].replace(",", "."));
  return found[2] ? Number((value / 100).toPrecision(12)) : value;
}
