// Evidence against what is needed, over the number of rewards: a chart, and the same as a table.
import { el, svg, whole } from "./dom.js";
import { number, time } from "./numbers.js";
import { table } from "./table.js";

// Round numbers from 0 to an end, about as many as wanted.
function rounds(end, wanted) {
  const rough = end / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

function chart(points, width) {
  const height = 260, left = 44, right = 78, top = 12, bottom = 34;
  const last = points[points.length - 1];
  const endX = Math.max(last.rewards, 1);
  const endY = Math.max(...points.map((one) => Math.max(one.statistic, one.threshold))) * 1.05;
  const x = (value) => left + (value / endX) * (width - left - right);
  const y = (value) => height - bottom - (Math.max(0, value) / endY) * (height - top - bottom);
  const line = (name) => svg("polyline", { class: name,
    points: points.map((one) => `${x(one.rewards).toFixed(1)},${y(one[name]).toFixed(1)}`).join(" ") });
  const apart = Math.abs(y(last.statistic) - y(last.threshold)) < 14 ? 7 : 0;
  const lower = last.statistic < last.threshold ? 1 : -1;
  const label = (name, text, shift) => svg("text", { class: `${name}-label`,
    x: width - right + 6, y: y(last[name]) + 4 + shift }, text);
  return svg("svg", { role: "img", width, height, viewBox: `0 0 ${width} ${height}`,
    "aria-label": `Evidence ${number(last.statistic)} of ${number(last.threshold)} needed after ${number(last.rewards)} rewards` },
    ...rounds(endY, 4).flatMap((value) => [
      svg("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value))]),
    ...rounds(endX, Math.max(2, width / 160)).filter(Number.isInteger).map((value) =>
      svg("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, number(value))),
    svg("text", { x: width - right, y: height - 2, "text-anchor": "end" }, "rewards"),
    line("threshold"), line("statistic"),
    label("statistic", "evidence", lower * apart), label("threshold", "needed", -lower * apart));
}

export function evidence(points, width) {
  const some = points.filter((_, i) => i % Math.ceil(points.length / 20) === 0 || i === points.length - 1);
  return [chart(points, width), el("details", { id: "points" }, el("summary", { id: "as-table" }, "As a table"),
    table("The comparison that is least settled", ["Rewards", "Evidence", "Needed", "Time"],
      some.map((one) => [number(one.rewards), number(one.statistic), number(one.threshold), whole(time(one.at))]),
      [0, 1, 2]))];
}
