import { FAULTS } from "./fault_choices.ts";

/** HTML of the page that shows a running operator. */
export const PAGE: string = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coracle</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body>
<header>
  <h1>Coracle</h1>
  <span id="health" class="dot wait">connecting</span>
  <span id="time" class="soft"></span>
  <div class="right">
    <span id="dev" hidden>
      <label>Fault <select id="fault">${
  Object.entries(FAULTS).map(([name, { title }]) =>
    `<option value="${name}">${title}</option>`
  ).join("")
}</select></label>
      <button id="inject">Inject</button>
      <span id="injected" class="soft" role="status"></span>
    </span>
    <button id="pause">Hold updates</button>
  </div>
</header>
<div id="notice" role="alert" hidden></div>
<main>
  <section class="wide"><h2>Controllers</h2><div id="controllers" class="cards"></div></section>
  <section class="wide" id="object" hidden>
    <div class="bar"><h2 id="name"></h2><button id="close">Close</button></div>
    <div id="histories"></div>
    <details id="logs" open><summary>Logs</summary><pre id="lines" class="scroll"></pre></details>
  </section>
  <section><h2>Objects</h2>
    <div class="bar">
      <input id="filter" type="search" placeholder="Namespace, name or controller" aria-label="Filter objects">
      <label><input id="failing" type="checkbox"> failing only</label>
    </div>
    <div class="scroll"><table>
      <thead><tr><th>Object</th><th class="hide">Controller</th><th>State</th><th class="hide">Last run</th><th>Next run</th></tr></thead>
      <tbody id="objects"></tbody>
    </table><p id="none" class="soft">No object has run yet.</p></div>
  </section>
  <section><h2>Runs</h2>
    <div class="scroll"><table class="runs">
      <thead><tr><th>Time</th><th>Object</th><th>Run</th><th>Cause and writes</th><th>Took</th></tr></thead>
      <tbody id="runs"></tbody>
    </table></div>
  </section>
  <section class="wide"><h2>Memory and event loop</h2><div id="memory"></div></section>
</main>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`;
