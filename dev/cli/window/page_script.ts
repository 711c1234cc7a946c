/** Script of the page: requests the state every second and shows it. */
export const SCRIPT: string = String.raw`
"use strict";
const token = location.hash.slice(1);
const byId = (id) => document.getElementById(id);
const lags = [];
/** Runs since the page was opened, and the last of each object before. */
const seenRuns = new Map();
const MAX_RUNS = 200;
let state, chosen, isPaused = false, isAsking = false;

function element(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options ?? {})) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== undefined).map(toNode));
  return made;
}
function toNode(child) {
  return child instanceof Node ? child : String(child);
}
function drawing(name, options, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(options)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function fill(id, ...children) {
  byId(id).replaceChildren(...children);
}
function size(bytes) {
  if (bytes < 2 ** 20) return (bytes / 2 ** 10).toFixed(0) + " KiB";
  return bytes < 2 ** 30
    ? (bytes / 2 ** 20).toFixed(1) + " MiB"
    : (bytes / 2 ** 30).toFixed(1) + " GiB";
}
function time(milliseconds) {
  if (milliseconds < 1000) return Math.round(milliseconds) + " ms";
  const seconds = milliseconds / 1000;
  if (seconds < 120) return seconds.toFixed(seconds < 10 ? 1 : 0) + " s";
  return seconds < 7200
    ? Math.round(seconds / 60) + " min"
    : Math.round(seconds / 3600) + " h";
}
function clock(at) {
  return new Date(at).toLocaleTimeString();
}

async function call(path, body) {
  const headers = { "x-coracle-token": token };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim() || "status " + response.status);
  return JSON.parse(text);
}
function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = text === "";
}
/** Whether the server has done it. */
async function act(body) {
  try {
    await call("/api/act", body);
    await refresh();
    return true;
  } catch (error) {
    notice(error.message);
    return false;
  }
}

async function refresh() {
  if (isAsking) return;
  isAsking = true;
  try {
    state = await call("/api/state");
    const found = chosen === undefined
      ? undefined
      : await call("/api/object?object=" + encodeURIComponent(chosen));
    notice("");
    draw();
    drawObject(found);
  } catch (error) {
    notice(error.message);
    byId("health").className = "dot bad";
    byId("health").textContent = "no answer";
  } finally {
    isAsking = false;
  }
}

function draw() {
  const { operators, dev } = state;
  const controllers = operators.flatMap(({ controllers }) => controllers);
  const objects = controllers.flatMap(({ objects }) => objects);
  const isReady = operators.every(({ state }) => state === "started") &&
    controllers.every(({ ready }) => ready);
  const isHealthy = controllers.every(({ healthy }) => healthy);
  const isActive = controllers.every(({ active }) => active);
  byId("health").className = "dot " + (isHealthy ? isReady ? "good" : "wait" : "bad");
  byId("health").textContent = (isReady ? isHealthy ? "ready" : "not healthy" : "starting") +
    (isReady && !isActive ? ", standby" : "");
  byId("time").textContent = clock(Date.now());
  byId("dev").hidden = !dev;
  fill("controllers", ...controllers.map(controllerCard));
  drawMemory(operators);
  drawObjects(objects.sort((a, b) => urgency(a) - urgency(b)));
  for (const { controller, object, runs } of objects) {
    for (const run of runs) seenRuns.set(controller + " " + object + " " + run.at, { ...run, object });
  }
  const latest = [...seenRuns].sort(([, a], [, b]) => a.at < b.at ? 1 : -1);
  for (const [key] of latest.splice(MAX_RUNS)) seenRuns.delete(key);
  drawRuns(latest.map(([, run]) => run));
}

function numbers(rows) {
  return element("dl", {}, ...rows.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, value),
  ]));
}
function controllerCard(controller) {
  const { name, kind, ready, active, healthy, failing, faults } = controller;
  const isCalm = ready && active && faults.length === 0;
  const mood = !healthy || failing > 0 ? "bad" : isCalm ? "good" : "wait";
  return element("div", { class: "card" },
    element("strong", { class: "dot " + mood }, name),
    element("div", { class: "soft" }, kind + (ready ? active ? "" : ", standby" : ", syncing")),
    numbers([
      ["objects", controller.primaries],
      ["waiting", controller.waiting],
      ["running", controller.running + (controller.overdue ? " (" + controller.overdue + " overdue)" : "")],
      ["at a set time", controller.delayed],
      ["failing", failing + (failing ? " for up to " + time(controller.oldestFailure) : "")],
    ]),
    faults.length === 0 ? undefined : element("ul", { class: "faults" },
      ...faults.map((fault) => element("li", {}, fault))));
}

function drawMemory(operators) {
  const [first] = operators;
  // Recorded runs have none.
  if (first?.memory === undefined) return fill("memory");
  lags.push(Math.max(...operators.map(({ lag }) => lag ?? 0)));
  if (lags.length > 120) lags.shift();
  const most = Math.max(20, ...lags);
  const points = lags.map((lag, index) => index * 2 + "," + (40 - 38 * lag / most)).join(" ");
  const tiers = operators.flatMap(({ caches }) => caches).map((cache) =>
    element("tr", {}, element("td", {}, cache.kind), ...["decoded", "bytes", "compressed", "keyOnly"].map((tier) =>
      element("td", { class: "number" }, cache[tier].objects === 0
        ? "–"
        : cache[tier].objects + " / " + size(cache[tier].bytes)))));
  fill("memory",
    element("div", { class: "cards" },
      element("div", { class: "card" }, numbers([
        ["resident memory", size(first.memory.resident)],
        ["caches", size(first.memory.cache)],
        ["budget of the caches", size(first.memory.budget)],
      ])),
      element("div", { class: "card" },
        element("div", {}, "Event-loop lag: " + time(lags.at(-1)) + ", at most " + time(Math.max(...lags))),
        drawing("svg", { viewBox: "0 0 240 42", width: "100%", height: "60", role: "img", "aria-label": "event-loop lag" },
          drawing("polyline", { points, class: "lag" })))),
    element("div", { class: "scroll" },
      table(["Cached kind", "decoded", "bytes", "compressed", "keys only"], tiers)));
}

const MOODS = { running: "busy", failing: "bad", deleting: "wait", paused: "wait", done: "good", deleted: "" };
function stateOf({ running, known, deleting, runs }) {
  if (running) return "running";
  if (!known) return "deleted";
  if (runs.at(-1)?.outcome === "failure") return "failing";
  if (deleting) return "deleting";
  return runs.at(-1)?.step === "paused" ? "paused" : "done";
}
function urgency(object) {
  return Object.keys(MOODS).indexOf(stateOf(object));
}
function objectButton(object) {
  return element("button", { class: "link", onclick() {
    chosen = object;
    void refresh().then(() => byId("object").scrollIntoView({ block: "nearest" }));
  } }, object);
}
function drawObjects(objects) {
  const wanted = byId("filter").value.toLowerCase();
  const isFailing = byId("failing").checked;
  const shown = objects.filter((one) =>
    (one.object + " " + one.controller).toLowerCase().includes(wanted) &&
    (!isFailing || stateOf(one) === "failing"));
  fill("objects", ...shown.map((one) => {
    const { object, controller, attempt, runs, scheduled } = one;
    const state = stateOf(one), last = runs.at(-1);
    return element("tr", { class: object === chosen ? "chosen" : undefined },
      element("td", {}, objectButton(object)),
      element("td", { class: "hide" }, controller),
      element("td", {}, element("span", { class: "dot " + MOODS[state] }, state),
        attempt > 0 ? " (attempt " + attempt + ")" : "",
        last?.error === undefined ? undefined : element("div", { class: "error" }, last.error)),
      element("td", { class: "number hide" }, last === undefined ? "" : clock(last.at)),
      element("td", {}, last?.next ?? (scheduled === undefined ? "" : "schedule at " + clock(scheduled))));
  }));
  byId("none").hidden = shown.length > 0;
}

const OUTCOMES = { success: "good", failure: "bad", aborted: "wait" };
function runRow(run, withObject) {
  const isPaused = run.step === "paused";
  const label = run.step === "reconcile" ? run.outcome : run.step + ": " + run.outcome;
  return element("tr", {},
    element("td", { class: "number" }, clock(run.at)),
    withObject ? element("td", {}, objectButton(run.object)) : undefined,
    element("td", {}, element("span", { class: "dot " + (isPaused ? "wait" : OUTCOMES[run.outcome]) },
      isPaused ? "paused" : label),
      run.error === undefined ? undefined : element("div", { class: "error" }, run.error)),
    element("td", { class: "cause" }, run.cause, ...run.writes.map((write, at) =>
      element("div", { class: "soft" }, write, ...changeLines(run.changes?.[at])))),
    element("td", { class: "number" }, time(run.duration)));
}
function changeLines(changes) {
  if (changes == null) return [];
  const lines = changes.length === 0 ? ["nothing changed"] : changes;
  return [element("ul", { class: "changes" }, ...lines.map((line) => element("li", {}, line)))];
}
function drawRuns(runs) {
  fill("runs", ...runs.slice(0, 100).map((run) => runRow(run, true)));
}

function drawObject(found) {
  byId("object").hidden = found === undefined;
  if (found === undefined) return;
  const { histories, logs } = found;
  byId("name").textContent = chosen;
  fill("histories", ...histories.map(objectDetails));
  if (histories.length === 0) fill("histories", "No controller knows this object.");
  byId("logs").hidden = logs === undefined;
  if (logs !== undefined) byId("lines").textContent = logs.join("\n") || "Nothing was logged about it.";
}
function objectDetails(history) {
  const { controller, object, runs, known, running } = history;
  const { conditions = [], deleting } = state.operators.flatMap(({ controllers }) => controllers)
    .find(({ name }) => name === controller)?.objects.find((one) => one.object === object) ?? {};
  const current = stateOf({ running, known, deleting, runs });
  const graph = workflowOf(controller);
  const last = runs.findLast(({ workflow }) => workflow !== undefined);
  const parts = [
    element("h2", {}, controller),
    element("p", { class: "dot " + MOODS[current] }, current + (history.exhausted ? ", no retries left" : "")),
  ];
  if (state.dev && known) {
    const call = (action) => ({ onclick: () => void act({ action, controller, object }) });
    parts.push(element("div", { class: "bar" },
      element("button", call("reconcile"), "Reconcile now"),
      current === "paused"
        ? element("button", call("resume"), "Resume")
        : element("button", call("pause"), "Pause")));
  }
  if (graph !== undefined) parts.push(graphOf(graph, last?.workflow));
  if (conditions.length > 0) {
    const cells = ({ type, status, reason, message }) => [type, status, reason, message];
    parts.push(table(["Condition", "Status", "Reason", "Message"], conditions.map((condition) =>
      element("tr", {}, ...cells(condition).map((value) => element("td", {}, value ?? ""))))));
  }
  const rows = runs.toReversed().map((run) => runRow(run, false));
  const names = ["Time", "Run", "Cause and writes", "Took"];
  parts.push(element("div", { class: "scroll" }, table(names, rows, { class: "runs" })));
  return element("div", {}, ...parts);
}
function table(names, rows, options) {
  return element("table", options,
    element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name)))),
    element("tbody", {}, ...rows));
}

function workflowOf(name) {
  for (const { controllers } of state.operators) {
    const found = controllers.find((controller) => controller.name === name);
    if (found?.workflow !== undefined) return found.workflow;
  }
}
const COLORS = {
  reconciled: "#aceebb", notReady: "#fae17d", waiting: "#d1d9e0", skipped: "#b6e3ff",
  inactive: "#eaeef2", deleted: "#d7ccc8", deleting: "#ffd8b5", failed: "#ffcecb",
};
/** Draws a Mermaid flowchart of a workflow, layer by layer. */
function graphOf(text, summary) {
  const names = new Map(), edges = [], states = new Map();
  for (const line of text.split("\n")) {
    const node = /^ *(n\d+)\["(.*)"\]/.exec(line);
    const edge = /^ *(n\d+) --> (n\d+)/.exec(line);
    if (node) names.set(node[1], node[2].replaceAll("#quot;", '"'));
    if (edge) edges.push([edge[1], edge[2]]);
  }
  for (const part of (summary ?? "").split(", ")) {
    const at = part.lastIndexOf(" ");
    states.set(part.slice(0, at), part.slice(at + 1));
  }
  const layer = new Map();
  const depth = (id) => {
    if (!layer.has(id)) {
      layer.set(id, 0);
      layer.set(id, Math.max(-1, ...edges.filter(([, to]) => to === id).map(([from]) => depth(from))) + 1);
    }
    return layer.get(id);
  };
  const rows = [];
  for (const id of names.keys()) (rows[depth(id)] ??= []).push(id);
  const width = 150, height = 44, gap = 24;
  const widest = Math.max(...rows.map((row) => row.length));
  const place = new Map(rows.flatMap((row, y) => row.map((id, x) => [id, {
    x: (x + (widest - row.length) / 2) * (width + gap),
    y: y * (height + gap),
  }])));
  const shape = ([id, name]) => {
    const { x, y } = place.get(id);
    const found = states.get(name);
    return [
      drawing("rect", { x, y, width, height, rx: 6, fill: COLORS[found] ?? "#eaeef2", stroke: "#59636e" }),
      drawing("text", { x: x + width / 2, y: y + 18, "text-anchor": "middle" }, name),
      drawing("text", { x: x + width / 2, y: y + 35, "text-anchor": "middle" }, found ?? ""),
    ];
  };
  const box = "-2 -2 " + (widest * (width + gap) + 4) + " " + (rows.length * (height + gap) - gap + 4);
  return drawing("svg", { viewBox: box, width: "100%", height: Math.min(420, rows.length * (height + gap)), role: "img", "aria-label": "workflow" },
    ...edges.map(([from, to]) => drawing("line", {
      x1: place.get(from).x + width / 2, y1: place.get(from).y + height,
      x2: place.get(to).x + width / 2, y2: place.get(to).y, class: "edge",
    })),
    ...[...names].flatMap(shape));
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").textContent = isPaused ? "Continue updates" : "Hold updates";
});
byId("filter").addEventListener("input", () => state && draw());
byId("failing").addEventListener("change", () => state && draw());
byId("close").addEventListener("click", () => {
  chosen = undefined;
  drawObject(undefined);
});
byId("inject").addEventListener("click", async () => {
  const { value, selectedOptions } = byId("fault");
  if (await act({ action: "fault", fault: value })) {
    byId("injected").textContent = "Injected at " + clock(Date.now()) + ": " + selectedOptions[0].textContent;
  }
});
void refresh();
setInterval(() => {
  if (!isPaused && !document.hidden) void refresh();
}, 1000);
`;
