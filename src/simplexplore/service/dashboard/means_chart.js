// Means with their intervals, over the number of rewards: a small chart per arm, all with one scale.
import { rounds } from "./chart.js";
import { el, svg } from "./dom.js";
import { number, plural } from "./numbers.js";
import { table } from "./table.js";

const HEIGHT = 116, RIGHT = 10, TOP = 10, BOTTOM = 20;
const NARROWEST = 204, GAP = 16;  // as in dashboard.css: five charts side by side on a laptop
const MOMENTS = 4;  // columns of the table

// What is known of each moment: [[rewards, [[low, mean, high], ...]], ...]; now is one of them.
function moments(points, status) {
  const samples = status.decision?.samples ?? status.rewards;
  const now = status.arms.map((arm) => [arm.low, arm.mean, arm.high]);
  const known = points.filter((one) => one.means && one.rewards !== samples).map((one) => [one.rewards, one.means]);
  return [...known, [samples, now]].sort(([a], [b]) => a - b);
}

// The range that is drawn: all means and the intervals of now, not those of a few rewards.
function scale(known, now) {
  const means = known.flatMap(([, arms]) => arms.map(([, mean]) => mean));
  const ends = [...means, ...now.flat()].filter((one) => one !== null);
  const low = Math.min(...ends), high = Math.max(...ends), margin = (high - low) * 0.06 || 0.5;
  return [low - margin, high + margin];
}

// Ticks with as many digits as they have.
function labelled(values) {
  const digits = [0, 1, 2, 3, 4, 5, 6].find((n) => values.every((one) => Math.abs(one - Number(one.toFixed(n))) < 1e-9));
  return values.map((value) => [value, digits === undefined ? number(value)
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-0$/, "0")]);
}

function panel(name, curve, later, { width, endX, from, to, ticks, decided }) {
  const left = 12 + 6.7 * Math.max(...ticks.map(([, text]) => text.length));
  const x = (value) => left + (value / endX) * (width - left - RIGHT);
  const y = (value) => TOP + (to - Math.min(to, Math.max(from, value))) / (to - from) * (HEIGHT - TOP - BOTTOM);
  const at = ([rewards, value]) => `${x(rewards).toFixed(1)},${y(value).toFixed(1)}`;
  const draw = (points, more) => points.length < 2 ? [] : [
    svg("polygon", { class: `band${more}`, points: [...points.map(([n, [low]]) => at([n, low ?? from])),
      ...points.map(([n, [, , high]]) => at([n, high ?? to])).reverse()].join(" ") }),
    svg("polyline", { class: `statistic${more}`, points: points.map(([n, [, mean]]) => at([n, mean])).join(" ") })];
  const [rewards, [low, mean, high]] = curve.at(-1), between = low === null || high === null ? "" : `, between ${number(low)} and ${number(high)}`;
  return el("figure", { class: "panel" },
    el("figcaption", {}, el("span", { class: "name" }, name), " ", el("span", { class: "number" }, number(mean))),
    svg("svg", { role: "img", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`,
      "aria-label": `${name}: mean ${number(mean)}${between} after ${plural(rewards, "reward")}` },
    ...ticks.flatMap(([value, text]) => [svg("line", { class: "axis", x1: left, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, text)]),
    ...draw(curve, ""), ...draw(later.length ? [curve.at(-1), ...later] : [], " later"),
    ...(decided === null ? [] : [svg("line", { class: "moment", x1: x(decided), x2: x(decided), y1: TOP, y2: HEIGHT - BOTTOM })]),
    svg("line", { class: "interval", x1: x(rewards), x2: x(rewards), y1: y(low ?? from), y2: y(high ?? to) }),
    svg("circle", { class: "mean", cx: x(rewards), cy: y(mean), r: 3 }),
    svg("text", { x: left, y: HEIGHT - 5 }, "0"),
    svg("text", { x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, plural(endX, "reward"))));
}

/** Charts of some arms (their numbers, in this order), and the same as a table; null if nothing is known. */
export function means(points, status, shown, width) {
  const known = moments(points, status);
  const drawn = shown.filter((a) => status.arms[a].mean !== null);
  if (!drawn.length) return null;
  const decided = status.decision?.samples ?? null, now = status.arms.map((arm) => [arm.low, arm.mean, arm.high]);
  const [from, to] = scale(known, now), endX = Math.max(...known.map(([n]) => n), 1);
  const ticks = labelled(rounds(from, to, 4));
  const of = (a, isWanted) => known.filter(([n]) => isWanted(n)).map(([n, arms]) => [n, arms[a]]).filter(([, one]) => one[1] !== null);
  const isLater = (n) => decided !== null && n > decided;
  const columns = Math.max(1, Math.floor((width + GAP) / (NARROWEST + GAP))), each = Math.floor((width - GAP * (columns - 1)) / columns);
  const until = known.filter(([n]) => !isLater(n));
  const some = until.filter((_, i) => i === until.length - 1 || (until.length - 1 - i) % Math.ceil(until.length / MOMENTS) === 0).slice(-MOMENTS);
  const text = ([low, mean, high]) => mean === null ? null
    : low === null || high === null ? number(mean) : `${number(mean)} (${number(low)} to ${number(high)})`;
  return [el("div", { class: "panels" }, ...drawn.map((a) => panel(status.arms[a].arm, of(a, (n) => !isLater(n)), of(a, isLater),
    { width: each, endX, from, to, ticks, decided }))),
  el("details", { id: "mean-points" }, el("summary", { id: "means-as-table" }, "As a table"),
    table("Means, with intervals that all hold, at every moment", ["Arm", ...some.map(([n]) => `After ${number(n)}`)],
      drawn.map((a) => [status.arms[a].arm, ...some.map(([, arms]) => text(arms[a]))])))];
}
