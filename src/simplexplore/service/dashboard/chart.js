// What charts over the number of rewards have in common: axes, lines, and names at their ends.
import { svg } from "./dom.js";
import { number } from "./numbers.js";

const HEIGHT = 220, LEFT = 44, TOP = 12, BOTTOM = 34, APART = 14;

// Round numbers between two ends, about as many as wanted.
export function rounds(start, end, wanted) {
  const rough = (end - start) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const first = Math.ceil(start / step - 1e-9);
  return Array.from({ length: Math.floor(end / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

// Heights in order of the values wanted, at least so far apart that texts do not overlap.
function spread(wanted) {
  const order = wanted.map((at, i) => ({ at, i })).sort((a, b) => a.at - b.at);
  order.forEach((one, k) => { if (k) one.at = Math.max(one.at, order[k - 1].at + APART); });
  const over = (order.at(-1)?.at ?? 0) - (HEIGHT - BOTTOM);
  for (let k = order.length - 1, end = HEIGHT - BOTTOM; over > 0 && k >= 0; k -= 1, end -= APART) {
    order[k].at = Math.min(order[k].at, end);
  }
  const found = [];
  for (const one of order) found[one.i] = one.at;
  return found;
}

const WIDE = /[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uff60]|\p{Extended_Pictographic}/u;

// Without its middle: names often differ at their ends. Tables of the command line shorten alike.
function short(text, room) {
  const letters = Math.floor(room / (WIDE.test(text) ? 12.4 : 7.2)), tail = Math.floor((letters - 1) / 2);
  const all = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
  return all.length > letters ? [...all.slice(0, letters - 1 - tail), "…", ...all.slice(-tail)].join("") : text;
}

// `lines`: {name, style, points: [[x, y], ...], later: [[x, y], ...]}; what is later is drawn apart.
// `mark`: {x, text}, a moment on the way.
export function chart({ label, width, endX, endY, lines, mark = null, right = 78, format = number }) {
  const x = (value) => LEFT + (value / endX) * (width - LEFT - right);
  const y = (value) => HEIGHT - BOTTOM - (Math.max(0, value) / endY) * (HEIGHT - TOP - BOTTOM);
  const path = (points, style) => points.length ? [svg("polyline", { class: style,
    points: points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") })] : [];
  const ends = spread(lines.map(({ points, later = [] }) => y([...points, ...later].at(-1)[1]) + 4));
  const onLeft = mark && x(mark.x) > (width - right + LEFT) / 2;
  return svg("svg", { role: "img", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-label": label },
    ...rounds(0, endY, 4).flatMap((value) => [
      svg("line", { class: "axis", x1: LEFT, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value))]),
    ...rounds(0, endX, Math.max(2, width / 160)).filter(Number.isInteger).map((value) =>
      svg("text", { x: x(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(value))),
    svg("text", { x: width - right, y: HEIGHT - 2, "text-anchor": "end" }, "rewards"),
    ...(mark ? [svg("line", { class: "moment", x1: x(mark.x), x2: x(mark.x), y1: TOP, y2: HEIGHT - BOTTOM }),
      svg("text", { class: "moment-label", x: x(mark.x) + (onLeft ? -5 : 5), y: TOP + 10,
        "text-anchor": onLeft ? "end" : "start" }, mark.text)] : []),
    ...lines.flatMap(({ style, points, later = [] }) => [...path(points, style),
      ...path(later.length ? [points.at(-1), ...later].filter(Boolean) : [], `${style} later`)]),
    ...lines.map(({ name, style }, i) => svg("text", { class: `${style}-label`, x: width - right + 6, y: ends[i] },
      short(name, right - 8))));
}
