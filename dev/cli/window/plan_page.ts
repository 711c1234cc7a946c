import { createHash } from "node:crypto";
import type { PlanReport } from "../../testing/plan/plan_report.ts";
import { planHead, planJson, planSections } from "../plan_text.ts";
import { STYLE } from "./page_style.ts";

const PLAN_STYLE = `${STYLE}
main { display: block; max-width: 1100px; }
section { margin-bottom: 12px; }
summary { cursor: pointer; padding: 4px 0; overflow-wrap: anywhere; }
details details { margin-left: 16px; border-top: 1px solid var(--line); }
ul { margin: 0; padding-left: 18px; overflow-wrap: anywhere; }
.field { font: 12px/1.5 ui-monospace, monospace; margin: 4px 0 4px 16px; overflow-wrap: anywhere; white-space: pre-wrap; }
.before { color: var(--bad); word-break: break-all; }
.after { color: var(--good); word-break: break-all; }
.delete, .replace { color: var(--bad); }
.create { color: var(--good); }
.change { color: var(--wait); }
@media (max-width: 600px) {
  #filter { flex: 1 0 100%; }
  summary { padding: 10px 0; }
  details details { margin-left: 8px; }
}
`;

/** Script of the page: draws what a filter finds, and the rest when it is asked for. */
const SCRIPT = String.raw`
"use strict";
const { head, changes, sections } = JSON.parse(document.getElementById("plan").textContent);
const byId = (id) => document.getElementById(id);
const STEP = 100;
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}
function nameOf({ kind, namespace, name }) {
  return kind + " " + (namespace === undefined ? name : namespace + "/" + name);
}
/** Adds items in steps, so that thousands stay usable. */
function addSome(to, items, draw, from = 0) {
  to.append(...items.slice(from, from + STEP).map(draw));
  const left = items.length - from - STEP;
  if (left <= 0) return;
  const more = element("button", "", "Show more of " + left);
  more.addEventListener("click", () => {
    more.remove();
    addSome(to, items, draw, from + STEP);
  });
  to.append(more);
}
/** Details whose content is drawn when they are opened first. */
function folded(title, isOpen, fill) {
  const made = element("details", "", element("summary", "", ...title));
  const draw = () => {
    if (made.open && made.children.length === 1) fill(made);
  };
  made.addEventListener("toggle", draw);
  made.open = isOpen;
  draw();
  return made;
}
function fieldOf(field) {
  const lines = ["before", "after"].filter((side) => side in field).map((side) =>
    element("div", side, (side === "before" ? "- " : "+ ") + JSON.stringify(field[side])));
  const taken = field.takenFrom === undefined ? [] :
    [element("div", "error", "taken from " + field.takenFrom.join(", "))];
  return element("div", "field", field.path, ...lines, ...taken);
}
function changeOf(change, isOpen) {
  const { action, cause, note, fields } = change;
  const title = [element("b", action, action), " " + nameOf(change),
    element("span", "soft", " " + cause + (note === undefined ? "" : "; " + note))];
  return folded(title, isOpen, (into) => {
    if (fields.length === 0) into.append(element("p", "soft", "No fields."));
    addSome(into, fields, fieldOf);
  });
}
function matches(change, words) {
  const text = [change.action, nameOf(change), change.owner, change.cause,
    ...change.fields.map(({ path }) => path)].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
function draw() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const action = byId("action").value;
  const owners = new Map();
  let count = 0;
  for (const change of changes) {
    if (action !== "" && change.action !== action || !matches(change, words)) continue;
    count++;
    const owner = change.owner ?? "without an owner";
    if (owners.has(owner)) owners.get(owner).push(change);
    else owners.set(owner, [change]);
  }
  byId("count").textContent = count + " of " + changes.length + " objects";
  byId("tree").replaceChildren();
  addSome(byId("tree"), [...owners], ([owner, list]) =>
    folded([element("b", "", owner), element("span", "soft", " " + list.length)], owners.size <= 10, (into) =>
      addSome(into, list, (change) => changeOf(change, count === 1))));
}
byId("head").textContent = head;
byId("sections").append(...sections.map(({ title, lines }) => {
  const list = element("ul", "");
  addSome(list, lines, (line) => element("li", "", line));
  return element("section", "", element("h2", "", title), list);
}));
byId("filter").addEventListener("input", draw);
byId("action").addEventListener("change", draw);
draw();
`;

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/**
 * Page of a plan: the objects as a tree by owner, with a filter and their changed
 * fields. It is one file, which loads nothing and runs no other script.
 */
export function planPage(report: PlanReport): string {
  const data = planJson({
    head: planHead(report),
    changes: report.changes,
    sections: planSections(report),
  }).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${
    hashOf(SCRIPT)
  }; style-src ${
    hashOf(PLAN_STYLE)
  }; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Plan – Coracle</title>
<link rel="icon" href="data:,">
<style>${PLAN_STYLE}</style>
</head>
<body>
<header><h1>Plan</h1><span id="head"></span></header>
<main>
  <section>
    <div class="bar">
      <input id="filter" type="search" placeholder="Kind, namespace, name, owner or field" aria-label="Filter changes">
      <select id="action" aria-label="Action"><option value="">all actions</option><option>delete</option><option>replace</option><option>change</option><option>create</option></select>
      <span id="count" class="soft" role="status"></span>
    </div>
    <div id="tree"></div>
  </section>
  <div id="sections"></div>
</main>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="plan">${data}</script>
<script>${SCRIPT}</script>
</body>
</html>
`;
}
