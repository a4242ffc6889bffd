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

/** The confidence that goes with an allowed error: one is never certain. */
export const sure = (delta) => delta < 0.001 ? `1 - ${number(delta)}` : number(1 - delta);

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

export const time = (seconds) => new Date(1000 * seconds).toLocaleString([],
  { dateStyle: "medium", timeStyle: "medium" });
