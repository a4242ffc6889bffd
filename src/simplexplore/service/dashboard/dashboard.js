// The dashboard: one script, no libraries. It is a client of /v1 like any other.
// Whatever comes from the service becomes text nodes and attributes, never HTML.
"use strict";

// Where the service is: "/", or below the path that a proxy gave it.
const ROOT = new URL("..", document.currentScript.src).pathname;
const TOKEN = `simplexplore-token ${ROOT}`;
const POLL = 5000;      // milliseconds between looks where nothing is pushed
const REDRAW = 1000;    // and at least between two redrawings of a study
const SILENCE = 40000;  // after which a stream is dead: it gives a sign of life every 15000
const FEW = 12;         // arms shown at first
const MANY = 200;       // studies shown at a time
const PAGE = 1000;      // studies read at a time
const RECENT = 15;      // events shown
const main = document.getElementById("main");

// ------------------------------------------------------------------ building pages

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function number(value, absent = "–") {
  if (value === null || value === undefined) return absent;
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

function percent(share) {  // rounded down: only all is 100%
  return share === null ? "–" : `${Math.floor(1000 * Math.max(0, share)) / 10}%`;
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const time = (seconds) => new Date(1000 * seconds).toLocaleString([],
  { dateStyle: "medium", timeStyle: "medium" });

// A few words that stay on one line.
const whole = (text) => el("span", { class: "whole" }, text);

// A table whose cells carry their column's heading, for narrow screens.
function table(caption, headings, rows, numeric = []) {
  const cell = (value, i) => {
    const attributes = { "data-label": headings[i], class: numeric.includes(i) ? "number" : null };
    if (i === 0) return el("th", { scope: "row", class: attributes.class }, value);
    return value === null ? el("td") : el("td", attributes, value);
  };
  return el("table", { class: "cards" },
    caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, ...headings.map((text, i) =>
      el("th", { scope: "col", class: numeric.includes(i) ? "number" : null }, text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))));
}

// A number with a small picture beside it; the picture says nothing that the number does not.
function pictured(text, ...marks) {
  return el("span", {}, text, svg("svg", { class: "mark", viewBox: "0 0 100 14",
    preserveAspectRatio: "none", "aria-hidden": "true" }, ...marks));
}

const bar = (share) => [
  svg("rect", { class: "track", x: 0, y: 3, width: 100, height: 8 }),
  svg("rect", { class: "bar", x: 0, y: 3, width: 100 * Math.min(1, Math.max(0, share)), height: 8 }),
];
const tick = (name, share) =>
  svg("line", { class: name, x1: 100 * share, x2: 100 * share, y1: 0, y2: 14 });

// Say something to those who do not see the page change.
function announce(text) {
  const news = document.getElementById("news");
  if (news.textContent !== text) news.textContent = text;
}

// Put new content in a place; what has the focus or is unfolded stays so.
function renew(place, ...children) {
  const focus = place.contains(document.activeElement) ? document.activeElement.id : null;
  const open = [...place.querySelectorAll("details[open]")].map((one) => one.id);
  place.replaceChildren(...children.filter((child) => child !== null));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focus) document.getElementById(focus)?.focus();
}

// ------------------------------------------------------------------ the service

class Refusal extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The service answered with status ${status}.`);
    this.status = status;
    this.line = document.line ?? null;
  }
}

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function call(path, body, key) {
  const options = { headers: headers() };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
    if (key) options.headers["Idempotency-Key"] = key;
  }
  let response;
  try {
    response = await fetch(`${ROOT}v1${path}`, options);
  } catch {
    throw new Refusal(0, { detail: "The service cannot be reached." });
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const refusal = new Refusal(response.status, await response.json().catch(() => ({})));
  if (response.status === 401) askForToken(refusal.message);
  throw refusal;
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0")).join("");
}

// Calls `changed` whenever the service says so. Read with fetch, since EventSource sends no token.
async function listen(name, changed) {
  for (;;) {
    const ending = new AbortController();
    let alarm = 0;
    const alive = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => ending.abort(), SILENCE);
    };
    try {
      alive();
      const response = await fetch(`${ROOT}v1/studies/${encodeURIComponent(name)}/events`,
        { headers: headers(), signal: ending.signal });
      if (response.ok) {
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ""; ;) {
          const { done, value } = await reader.read();
          if (done) break;
          alive();
          const events = (text + value).split("\n\n");
          text = events.pop();  // not whole yet
          if (events.some((event) => /^data:/m.test(event))) changed();
        }
      }
    } catch { /* the service is away: look again in a while */ }
    clearTimeout(alarm);
    await pause(POLL);
    changed();
  }
}

// ------------------------------------------------------------------ token and role

let role = null;
let declined = false;  // to give a token: do not ask again and again

const may = (wanted) => ["read", "run", "admin"].indexOf(role) >= ["read", "run", "admin"].indexOf(wanted);

async function learnRole() {
  const setup = await call("/setup");
  role = setup.role;
  const words = { read: "You may watch.", run: "You may run studies.", admin: "You may do everything." };
  document.getElementById("role").textContent = setup.tokens ? words[role] : "No tokens in use.";
  document.getElementById("token").hidden = !setup.tokens;
  return setup;
}

function askForToken(why) {
  const dialog = document.getElementById("ask-token");
  if (dialog.open || (why && declined)) return;
  document.getElementById("token-why").textContent = why ||
    "A token says what you may do here. It is kept until you close this tab.";
  dialog.returnValue = "cancel";
  dialog.showModal();
}

document.getElementById("token").addEventListener("click", () => askForToken(""));
document.getElementById("ask-token").addEventListener("close", (event) => {
  const input = document.getElementById("token-text");
  const text = input.value.trim();
  input.value = "";
  if (event.target.returnValue === "forget") sessionStorage.removeItem(TOKEN);
  else if (event.target.returnValue === "use" && text) sessionStorage.setItem(TOKEN, text);
  else {
    declined = true;
    return;
  }
  location.reload();
});

// Say what is wrong; said once, however often it is tried again.
function complain(error, place, more = "") {
  const text = error.message + more;
  if (place.textContent !== text) place.replaceChildren(el("p", { class: "error", role: "alert" }, text));
}

// The same, of something that is tried again by itself.
const complainForNow = (error) =>
  complain(error, document.getElementById("trouble"), error.status === 0 ? " Trying again." : "");

function begin(title, ...children) {
  document.title = `${title} · simplexplore`;
  main.replaceChildren(el("h1", {}, title), el("div", { id: "trouble" }), ...children);
}

const calm = () => document.getElementById("trouble").replaceChildren();

// ------------------------------------------------------------------ the list of studies

async function showList() {
  const place = el("div");
  const filter = el("input", { id: "filter", type: "search", oninput: () => draw() });
  const search = el("div", { hidden: true }, el("label", { for: "filter" }, "Show names that contain"), filter);
  begin("Studies", search, place);
  document.querySelector(".brand").setAttribute("aria-current", "page");
  const studies = new Map();
  let complete = false;

  // Studies that change move to the front: pages are read until one holds nothing new, or to
  // the end if the last time was interrupted.
  async function read() {
    const enough = complete;
    complete = false;
    for (let after = ""; after !== null;) {
      const page = await call(`/studies?limit=${PAGE}${after}`);
      const old = page.studies.every((one) => studies.get(one.name)?.changed === one.changed);
      for (const one of page.studies) studies.set(one.name, one);
      after = "next" in page && !(enough && old) ? `&after=${encodeURIComponent(page.next)}` : null;
    }
    complete = true;
  }

  function draw() {
    search.hidden = studies.size <= FEW;
    const wanted = filter.value.toLowerCase();
    const found = [...studies.values()].filter((one) => one.name.toLowerCase().includes(wanted));
    const shown = found.sort((a, b) => b.changed - a.changed).slice(0, MANY);
    if (!studies.size) {
      renew(place, el("p", {}, "There are no studies yet."), may("run")
        ? el("p", {}, el("a", { href: `${ROOT}new` }, "Start the first one"), " with a problem file.")
        : el("p", {}, "Somebody with a run token can start one."));
      return;
    }
    renew(place, table(
      `${number(shown.length)} of ${number(studies.size)} ${studies.size === 1 ? "study" : "studies"}, the latest change first`,
      ["Study", "State", "Evidence", "Rewards", "Pending", "Allowed error", "Last change"],
      shown.map((one) => [
        el("a", { id: `study-${one.name}`, href: `${ROOT}studies/${encodeURIComponent(one.name)}` }, one.name),
        el("span", { class: `state ${one.state}` }, one.state),
        pictured(percent(one.progress), ...bar(one.progress ?? 0)),
        number(one.rewards), number(one.pending), number(one.delta), whole(time(one.changed)),
      ]), [3, 4, 5]));
  }

  for (;;) {
    try {
      if (role === null) await learnRole();
      await read();
      calm();
      draw();
    } catch (error) { complainForNow(error); }
    await pause(POLL);
  }
}

// ------------------------------------------------------------------ one study

function answerInWords(status) {
  if (status.answer) {
    return [status.answer_in_words,
      (status.epsilon ? `It earns at most ${number(status.epsilon)} less than the best mix. ` : "") +
      `Found with ${number(status.answer.rewards)} rewards` +
      (status.proven ? "." : ", by a rule of thumb: nothing is proven of this threshold.")];
  }
  if (!status.policy) return ["No answer yet: some arms have no reward.", "Every arm is played first."];
  const [low, high] = status.value_interval;
  const value = low === null || high === null ? "" : `, between ${number(low)} and ${number(high)} with confidence ${number(1 - status.delta)}`;
  const left = status.to_go === null
    ? "The best mixes tie at the means seen so far: no telling how many samples to go."
    : `${percent(status.progress)} of the evidence needed; about ${number(status.to_go)} samples to go if the means are as they look.`;
  const kind = status.epsilon ? "Good mix" : "Best mix";
  return [`${kind} so far: ${status.policy_in_words}.`, `It earns ${number(status.value)}${value}. ${left}`];
}

function figures(status) {
  const pairs = [
    ["Evidence", percent(status.answer ? 1 : status.progress)],
    ["Samples to go", status.answer ? "0" : number(status.to_go)],
    ["Rewards", number(status.rewards)],
    ["Pending pulls", number(status.pending)],
    ["Given up", number(status.expired)],
    ["Allowed error", number(status.delta)],
    ...(status.epsilon ? [["Allowed loss", number(status.epsilon)]] : []),
  ];
  return el("dl", { class: "figures" }, ...pairs.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// Round numbers from 0 to an end, about as many as wanted.
function rounds(end, wanted) {
  const rough = end / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

// Evidence against what is needed, over the number of rewards.
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

function evidence(points, width) {
  const some = points.filter((_, i) => i % Math.ceil(points.length / 20) === 0 || i === points.length - 1);
  return [chart(points, width), el("details", { id: "points" }, el("summary", { id: "as-table" }, "As a table"),
    table("The comparison that is least settled", ["Rewards", "Evidence", "Needed", "Time"],
      some.map((one) => [number(one.rewards), number(one.statistic), number(one.threshold), whole(time(one.at))]),
      [0, 1, 2]))];
}

function arms(status, all) {
  const known = status.arms.filter((arm) => arm.mean !== null);
  const ends = known.flatMap((arm) => [arm.low ?? arm.mean, arm.high ?? arm.mean]);
  const from = Math.min(...ends), span = Math.max(...ends) - from || 1;
  const place = (value) => 100 * (value - from) / span;
  const most = Math.max(...status.arms.map((arm) => Math.max(arm.rewards + arm.pending, arm.target)), 1);
  const order = [...status.arms];
  if (order.length > FEW) {
    order.sort((a, b) => (b.policy ?? 0) - (a.policy ?? 0) || b.rewards - a.rewards);
  }
  return table(
    "Means with intervals that hold together, at every moment; samples with their target as a mark",
    ["Arm", "In the mix", "Mean", "Between", "Samples", "Target", "Pending"],
    order.slice(0, all ? order.length : FEW).map((arm) => [
      arm.arm,
      arm.policy === null ? null : pictured(number(arm.policy), ...bar(arm.policy)),
      arm.mean === null ? null : pictured(number(arm.mean),
        svg("line", { class: "interval", x1: place(arm.low ?? from), x2: place(arm.high ?? from + span), y1: 7, y2: 7 }),
        svg("rect", { class: "mean", x: place(arm.mean) - 1.2, y: 1, width: 2.4, height: 12 })),
      arm.low === null || arm.high === null ? null : whole(`${number(arm.low)} to ${number(arm.high)}`),
      pictured(number(arm.rewards), ...bar(arm.rewards / most), tick("target", arm.target / most)),
      number(arm.target), arm.pending ? number(arm.pending) : null,
    ]), [5, 6]);
}

function limits(row) {
  if (row.lower === null) return `at most ${number(row.upper)}`;
  if (row.upper === null) return `at least ${number(row.lower)}`;
  return row.lower === row.upper ? `exactly ${number(row.upper)}` : `${number(row.lower)} to ${number(row.upper)}`;
}

function constraints(status) {
  return table("How much of each limit the mix uses, and the samples so far",
    ["Constraint", "Limit", "Mix", "Slack", "Samples so far"],
    status.constraints.map((row) => {
      const slacks = [row.lower === null ? Infinity : row.policy - row.lower,
        row.upper === null ? Infinity : row.upper - row.policy];
      const slack = row.policy === null ? null : Math.max(0, Math.min(...slacks));
      const ends = [row.lower, row.upper, row.policy, row.explored].filter((one) => one !== null);
      const from = Math.min(0, ...ends), span = (Math.max(...ends) - from) * 1.1 || 1;
      return [row.name, whole(limits(row)),
        row.policy === null ? null : pictured(number(row.policy), ...bar((row.policy - from) / span),
          ...[row.lower, row.upper].filter((one) => one !== null).map((one) => tick("limit", (one - from) / span))),
        slack === null ? null : slack < 1e-9 ? "none" : number(slack),
        row.explored === null ? null : number(row.explored)];
    }), [3, 4]);
}

function comparisons(status) {
  const side = (edge, sign) => Object.entries(edge.direction)
    .filter(([, rate]) => rate * sign > 0)
    .map(([arm, rate]) => Math.abs(rate) === 1 ? arm : `${number(Math.abs(rate))} ${arm}`).join(", ");
  const order = [...status.edges].sort((a, b) => (a.statistic - a.threshold) - (b.statistic - b.threshold));
  return table(order.length > FEW ? `The ${FEW} least settled of ${order.length}` : "",
    ["Less of", "More of", "Evidence", "Needed"],
    order.slice(0, FEW).map((edge) => [
      el("span", {}, el("span", { class: "folded" }, "Less of "), side(edge, -1)), side(edge, 1),
      pictured(number(edge.statistic), ...bar(edge.statistic / edge.threshold)), number(edge.threshold)]), [3]);
}

const EVENTS = { asked: "asked", told: "reward", late: "late reward", elsewhere: "reward from elsewhere",
  expired: "given up", extended: "extended", stopped: "stopped", noted: "note" };

function recent(events) {
  return table("The latest first", ["What", "Arm", "Reward or remark", "Time"],
    [...events].reverse().slice(0, RECENT).map((one) => [whole(EVENTS[one.event] ?? one.event),
      one.arm ?? null, one.reward !== undefined ? number(one.reward)
        : one.text ?? (one.event === "extended" ? `allowed error ${number(one.delta)}` : null),
      whole(time(one.at))]));
}

async function download(path, form, file) {
  const response = await fetch(`${ROOT}v1${path}/export?format=${form}`, { headers: headers() })
    .catch(() => { throw new Refusal(0, { detail: "The service cannot be reached." }); });
  if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => ({})));
  const address = URL.createObjectURL(await response.blob());
  el("a", { href: address, download: file }).click();
  URL.revokeObjectURL(address);
}

function section(title, id, ...children) {
  return el("section", { "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), ...children);
}

// A form whose request has one name until something else is written, so that a second click,
// or another attempt after a lost answer, does nothing more.
function smallForm(label, hint, button, send) {
  const id = label.toLowerCase().replace(/\W+/g, "-");
  let key = newKey();
  const input = el("input", { id, required: true, oninput: () => { key = newKey(); } });
  const trouble = el("div");
  return el("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await send(input.value, key);
      input.value = "";
      key = newKey();
      trouble.replaceChildren();
      announce("Done.");
    } catch (error) { complain(error, trouble); }
  } }, el("label", { for: id }, label), hint ? el("p", { class: "hint" }, hint) : null, input,
  trouble, el("p", { class: "buttons" }, el("button", { type: "submit" }, button)));
}

async function showStudy(name) {
  const path = `/studies/${encodeURIComponent(name)}`;
  const places = Object.fromEntries(["words", "figures", "chart", "arms", "limits", "edges", "recent", "acts"]
    .map((id) => [id, el("div", { id: `at-${id}` })]));
  const about = el("p", { class: "dim" });
  let all = false, points = [], status = null, said = "";
  const content = el("div", { hidden: true }, about, places.words, places.figures,
    section("Evidence", "evidence", places.chart), section("Arms", "arms", places.arms),
    section("Constraints", "constraints", places.limits),
    section("Against neighbouring mixes", "edges", places.edges),
    section("Recent events", "recent", places.recent), section("Actions", "acts", places.acts));
  begin(name, content);

  const width = () => Math.max(280, Math.min(1000, main.clientWidth));

  function draw(events) {
    const words = answerInWords(status);
    about.textContent = `${status.state}, ${status.sampler}, ${status.scenario}, threshold ${status.threshold} ` +
      `(${status.proven ? "proven" : "a heuristic"}), since ${time(status.created)}`;
    renew(places.words, el("div", { class: status.answer ? "answer done" : "answer" },
      ...words.map((text) => el("p", {}, text))));
    renew(places.figures, figures(status));
    renew(places.chart, ...(points.length ? evidence(points, width())
      : [el("p", { class: "dim" }, "Nothing to draw until every arm has a reward.")]));
    renew(places.arms, el("div", { class: "wide" }, arms(status, all)),
      status.arms.length > FEW ? el("p", {}, el("button", { type: "button", id: "all-arms",
        "aria-expanded": String(all), onclick: () => { all = !all; draw(events); } },
      all ? `Show the first ${FEW}` : `Show all ${status.arms.length} arms`)) : null);
    renew(places.limits, status.constraints.length ? constraints(status)
      : el("p", { class: "dim" }, "There are none."));
    renew(places.edges, status.edges && status.edges.length ? comparisons(status)
      : el("p", { class: "dim" }, "None yet."));
    renew(places.recent, events.length ? recent(events) : el("p", { class: "dim" }, "None yet."));
    // Heard only when the answer or the best mix changes, not with every reward.
    const heard = status.answer ? words[0] : status.policy ? words[0] : "";
    if (heard && heard !== said) announce(said = heard);
  }

  function offer() {
    const trouble = el("div");
    places.acts.append(el("p", { class: "buttons" }, ...["csv", "json"].map((form) =>
      el("button", { type: "button", onclick: () =>
        download(path, form, `${name}.${form}`).then(() => trouble.replaceChildren(),
          (error) => complain(error, trouble)) }, `Export as ${form.toUpperCase()}`))), trouble);
    if (may("run")) {
      places.acts.append(smallForm("A remark for the journal", "", "Note it",
        (text, key) => call(`${path}/notes`, { text }, key)));
    }
    if (may("admin")) {
      places.acts.append(smallForm("A smaller allowed error", "To go on with more confidence; there is no way back.",
        "Extend the study", (text, key) => call(`${path}/extension`, { delta: Number(text) }, key)));
    }
  }

  let events = [];
  async function refresh() {
    if (role === null) {
      await learnRole();
      offer();
    }
    status = await call(`${path}/status`);
    const after = points.length ? points[points.length - 1].seq : 0;
    points = points.concat((await call(`${path}/history?after=${after}`)).points);
    events = (await call(`${path}/journal?after=${Math.max(0, status.seq - 2 * RECENT)}&limit=100`)).events;
    calm();
    content.hidden = false;  // first, since the chart is as wide as its place
    draw(events);
  }

  // One refresh at a time, and one more if something changed meanwhile.
  let busy = false, wanted = false;
  async function changed() {
    wanted = true;
    if (busy || document.hidden) return;
    busy = true;
    while (wanted && !document.hidden) {
      wanted = false;
      try { await refresh(); } catch (error) { complainForNow(error); }
      await pause(REDRAW);
    }
    busy = false;
  }

  window.addEventListener("resize", () => { if (status) draw(events); });
  document.addEventListener("visibilitychange", changed);
  await changed();
  listen(name, changed);
}

// ------------------------------------------------------------------ a new study

const SAMPLE = `arms = ["pizza", "salmon", "lentils"]
means = [8.0, 7.5, 6.0]          # a guess: only to see how hard it is
delta = 0.05                     # allowed probability of a wrong answer
scenario = "end-of-time"         # or "anytime": limits hold while exploring too

[rewards]
family = "gaussian"              # or bernoulli, poisson, bounded
sigma = 2.0

[constraints]
energy = "900*pizza + 600*salmon + 450*lentils <= 650"
price = "4*pizza + 12*salmon + 3*lentils <= 7"
`;

function planned(plan) {
  const parts = [el("p", {}, el("strong", {}, plan.title ?? "The file is fine.")), el("p", {}, plan.headline),
    el("p", { class: "dim" }, `${plan.arms.length} arms, ${plan.constraints.length} constraints, ` +
      `${plan.family} rewards, delta ${number(plan.delta)}, ${plan.scenario}`),
    ...plan.notes.map((text) => el("p", { class: "dim" }, text))];
  if (plan.bound) {
    const rows = Object.entries(plan.bound.scenarios);
    parts.push(table("How hard it is if the means are as guessed",
      ["Scenario", "Samples on average, at least", "Characteristic time"],
      rows.map(([name, one]) => [name, number(one.lower_bound), number(one.characteristic_time)]), [1, 2]));
    const [, own] = rows.find(([name]) => name === plan.scenario);
    const order = plan.arms.map((arm, i) => [arm, plan.bound.policy[i], own.allocation[i]])
      .sort((a, b) => b[2] - a[2]).slice(0, FEW);
    parts.push(table("Where samples would go", ["Arm", "In the mix", "Share of the samples"],
      order.map(([arm, policy, share]) => [arm, number(policy), pictured(number(share), ...bar(share))]), [1]));
  }
  return parts;
}

async function showForm() {
  const lines = el("pre", { "aria-hidden": "true" });
  const text = el("textarea", { id: "problem", spellcheck: "false", rows: 18, wrap: "off", required: true,
    "aria-describedby": "problem-hint result", onscroll: () => { lines.scrollTop = text.scrollTop; } });
  text.value = SAMPLE;
  const result = el("div", { id: "result", "aria-live": "polite" });
  const name = el("input", { id: "name", required: true, maxlength: 200, autocomplete: "off" });
  const sampler = el("select", { id: "sampler" }), threshold = el("select", { id: "threshold" });
  const expiry = el("input", { id: "expiry", type: "number", min: "0", step: "any", value: "24" });
  // Until the samplers are known there is nothing to start with.
  const start = el("button", { type: "submit", class: "first", disabled: true }, "Start the study");
  const trouble = el("div");
  let key = newKey(), timer = 0, round = 0;

  function number_lines(wrong) {
    const total = text.value.split("\n").length;
    lines.replaceChildren(...Array.from({ length: total }, (_, i) =>
      el("span", { class: i + 1 === wrong ? "wrong" : null }, `${i + 1}\n`)));
    lines.scrollTop = text.scrollTop;
    text.setAttribute("aria-invalid", String(wrong !== null));
  }

  function show(error) {
    number_lines(error.line ?? null);
    const where = error.line ? `Line ${error.line}. ` : "";
    renew(result, el("p", { class: "error" }, where + error.message),
      error.line ? el("p", {}, el("button", { type: "button", id: "go", onclick: () => {
        const before = text.value.split("\n").slice(0, error.line - 1).join("\n").length + (error.line > 1 ? 1 : 0);
        text.focus();
        text.setSelectionRange(before, before + text.value.split("\n")[error.line - 1].length);
      } }, `Go to line ${error.line}`)) : null);
  }

  async function check() {
    const mine = ++round;
    try {
      const plan = await call("/bound", { problem: text.value });
      if (mine === round) { number_lines(null); renew(result, ...planned(plan)); }
    } catch (error) {
      if (mine !== round) return;
      show(error);
      if (error.status === 0) timer = setTimeout(check, POLL);
    }
  }

  const choice = (id, label, input, hint) => el("div", {}, el("label", { for: id }, label), input,
    el("p", { class: "hint" }, hint));
  // As in the small forms, a request has one name until something else is written.
  const form = el("form", { oninput: () => { key = newKey(); }, onsubmit: async (event) => {
    event.preventDefault();
    start.disabled = true;
    trouble.replaceChildren();
    try {
      const made = await call("/studies", { name: name.value, problem: text.value, sampler: sampler.value,
        threshold: threshold.value, expire_after: expiry.value ? 3600 * Number(expiry.value) : null }, key);
      location.assign(`${ROOT}studies/${encodeURIComponent(made.name)}`);
    } catch (error) {
      start.disabled = false;
      if (error.line) show(error); else complain(error, trouble);
    }
  } },
  choice("name", "Name of the study", name, "One line; it cannot be changed."),
  el("label", { for: "problem" }, "Problem file"),
  el("p", { class: "hint", id: "problem-hint" }, "Paste one, or change this one. It is checked while you write. Means are optional."),
  el("div", { class: "editor" }, lines, text),
  el("div", { class: "columns" },
    choice("sampler", "Sampler", sampler, "How arms are chosen."),
    choice("threshold", "Threshold", threshold, "When to stop; mixture keeps its promise."),
    choice("expiry", "Give up pulls after (hours)", expiry, "Empty: never.")),
  section("Before you start", "bound", result),
  trouble, el("p", { class: "buttons" }, start));
  begin("New study", form);
  document.querySelector("nav a:not(.brand)").setAttribute("aria-current", "page");
  text.addEventListener("input", () => { number_lines(null); clearTimeout(timer); timer = setTimeout(check, 500); });
  number_lines(null);
  let setup = null;
  while (!setup) {
    try { setup = await learnRole(); } catch (error) {
      complainForNow(error);
      await pause(POLL);
    }
  }
  calm();
  if (!may("run")) {
    form.replaceChildren(el("p", {}, "You may only watch. To start a study, use a token of the role run."));
    return;
  }
  sampler.append(...setup.samplers.map((one) => el("option", { value: one }, one)));
  threshold.append(...setup.thresholds.map((one) => el("option", { value: one }, one)));
  sampler.value = "ctns";
  threshold.value = "mixture";
  start.disabled = false;
  await check();
}

// ------------------------------------------------------------------ which page

const [first, ...rest] = location.pathname.slice(ROOT.length).split("/");
if (first === "studies") showStudy(decodeURIComponent(rest.join("/")));
else if (first === "new") showForm();
else showList();
