// Programs that work for a study, with its address filled in.
import { SERVICE } from "./address.js";
import { el } from "./dom.js";
import { announce } from "./page.js";
import { hasToken } from "./token.js";

const quoted = (text) => JSON.stringify(text);
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// Measurements of a pull, as an example.
const example = (measured) => measured.map((name, i) => [name, (2 + i) / 10]);
const json = (measured) => `{${example(measured).map(([name, value]) => `${quoted(name)}: ${value}`).join(", ")}}`;

const python = (name, secret, measured) => `import simplexplore as sx

service = sx.connect(${quoted(SERVICE)}${secret ? ', token="sx_..."' : ""})
study = service.open(${quoted(name)})
while not study.stopped:
    for pull in study.ask(1):
${measured.length ? `        reward, measured = measure(pull.arm)   # your experiment: 1.0, ${json(measured)}
        study.tell(pull, reward, measured=measured)`
    : "        # measure: your experiment\n        study.tell(pull, measure(pull.arm))"}
print(study.answer_in_words)
`;

const curl = (name, secret, measured) => {
  const token = secret ? " -H 'Authorization: Bearer sx_...'" : "";
  return `url=${shell(`${SERVICE}/v1/studies/${encodeURIComponent(name)}`)}
# Ask for a pull: it has an id and an arm.
curl -s "$url/pulls"${token} -H 'Content-Type: application/json' -d '{"n": 1}'
# Play the arm, then tell the reward${measured.length ? " and the measurements" : ""} under that id.
curl -s "$url/rewards"${token} -H 'Content-Type: application/json' \\
     -d ${shell(`{"rewards": [{"pull": "ID", "reward": 1.0${measured.length ? `, "measured": ${json(measured)}` : ""}}]}`)}
`;
};

const r = (name, secret, measured) => `library(httr2)   # R 4.1 or later, and install.packages(c("httr2", "jsonlite"))

study <- function(path) request(paste0(${quoted(`${SERVICE}/v1/studies/${encodeURIComponent(name)}`)}, path))${secret ? ' |>\n  req_auth_bearer_token("sx_...")' : ""}
post <- function(path, body) study(path) |> req_body_json(body) |>
  req_error(body = function(response) resp_body_json(response)$detail) |>
  req_perform() |> resp_body_json()
repeat {
  pull <- post("/pulls", list(n = 1))$pulls[[1]]
  ${measured.length ? `found <- measure(pull$arm)                   # your experiment: list(reward = 1.0, ${example(measured).map(([name, value]) => `${quoted(name)} = ${value}`).join(", ")})
  told <- post("/rewards", list(rewards = list(list(pull = pull$id, reward = found$reward,
    measured = found[c(${measured.map(quoted).join(", ")})]))))` : `reward <- measure(pull$arm)                  # your experiment
  told <- post("/rewards", list(rewards = list(list(pull = pull$id, reward = reward))))`}
  if (told$rewards[[1]]$stopped) break
}
`;

// Only pages that came over HTTPS or from this machine may copy; elsewhere one does it oneself.
async function copy(node) {
  getSelection().selectAllChildren(node);
  try {
    await navigator.clipboard.writeText(node.textContent);
    announce("Copied.");
  } catch { announce("Selected: copy it with the keyboard."); }
}

export function workerSnippets(name, measured) {
  const secret = hasToken();
  return [["Python", python], ["curl", curl], ["R", r]].map(([language, write], i) => {
    const text = write(name, secret, measured);
    const program = el("pre", { class: "file", tabindex: 0, role: "group", "aria-label": `A worker in ${language}` }, text);
    return el("details", { id: `snippet-${language}`, open: i === 0 }, el("summary", { id: `show-${language}` }, language),
      program, el("p", { class: "buttons" }, el("button", { type: "button", onclick: () => copy(program) }, "Copy")));
  });
}
