// Numbers and times as people read them.
export function number(value, absent = "–") {
  if (value === null || value === undefined) return absent;
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

export function percent(share) {  // rounded down: only all is 100%
  return share === null ? "–" : `${Math.floor(1000 * Math.max(0, share)) / 10}%`;
}

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

export const time = (seconds) => new Date(1000 * seconds).toLocaleString([],
  { dateStyle: "medium", timeStyle: "medium" });
