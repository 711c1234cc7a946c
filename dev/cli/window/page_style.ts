/** Style sheet of the page. */
export const STYLE: string = `
:root {
  color-scheme: light dark;
  --back: light-dark(#f6f8fa, #0d1117);
  --card: light-dark(#ffffff, #161b22);
  --line: light-dark(#d0d7de, #30363d);
  --text: light-dark(#1f2328, #e6edf3);
  --soft: light-dark(#59636e, #9198a1);
  --good: light-dark(#1a7f37, #3fb950);
  --bad: light-dark(#cf222e, #f85149);
  --busy: light-dark(#0969da, #4493f8);
  --wait: light-dark(#9a6700, #d29922);
}
* { box-sizing: border-box; }
body {
  margin: 0;
  background: var(--back);
  color: var(--text);
  font: 14px/1.45 system-ui, sans-serif;
}
header {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 16px;
  align-items: center;
  padding: 10px 16px;
  background: var(--card);
  border-bottom: 1px solid var(--line);
}
h1 { font-size: 16px; margin: 0; }
h2 { font-size: 14px; margin: 0 0 8px; }
header .right { margin-left: auto; display: flex; gap: 8px; flex-wrap: wrap; }
main {
  display: grid;
  grid-template-columns: minmax(0, 2fr) minmax(0, 3fr);
  gap: 16px;
  padding: 16px;
  max-width: 1500px;
  margin: auto;
}
section {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 6px;
  padding: 12px;
  min-width: 0;
}
section.wide { grid-column: 1 / -1; }
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(260px, 1fr));
  gap: 12px;
}
.card { border: 1px solid var(--line); border-radius: 6px; padding: 10px; }
.card dl { display: grid; grid-template-columns: auto 1fr; gap: 0 10px; margin: 6px 0 0; max-width: 300px; }
dt { color: var(--soft); }
dd { margin: 0; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.card:has(.faults) { grid-column: 1 / -1; }
.faults { color: var(--bad); margin: 6px 0 0; padding-left: 18px; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 55vh; }
table { border-collapse: collapse; width: 100%; }
th {
  text-align: left;
  font-weight: 600;
  color: var(--soft);
  position: sticky;
  top: 0;
  background: var(--card);
}
th, td { padding: 4px 8px 4px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; min-width: 5em; }
.dot { white-space: nowrap; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.chosen td { background: light-dark(#ddf4ff, #121d2f); }
.dot::before {
  content: "";
  display: inline-block;
  width: 9px;
  height: 9px;
  margin-right: 6px;
  border-radius: 50%;
  background: var(--soft);
}
.dot.good::before { background: var(--good); }
.dot.bad::before { background: var(--bad); }
.dot.busy::before { background: var(--busy); }
.dot.wait::before { background: var(--wait); }
.soft { color: var(--soft); }
.changes { margin: 0 0 4px; padding-left: 18px; font: 12px/1.5 ui-monospace, monospace; }
.error { color: var(--bad); overflow-wrap: anywhere; }
button, select, input {
  font: inherit;
  color: inherit;
  background: var(--back);
  border: 1px solid var(--line);
  border-radius: 6px;
  padding: 3px 10px;
}
button { cursor: pointer; }
button.link { white-space: nowrap; border: 0; background: none; padding: 0; color: var(--busy); text-align: left; }
:focus-visible { outline: 2px solid var(--busy); outline-offset: 1px; }
.bar { display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 8px; align-items: center; }
.bar input { flex: 1 1 140px; min-width: 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: 12px/1.5 ui-monospace, monospace; }
#notice { background: #b42318; color: #fff; padding: 8px 16px; }
svg text { font: 12px system-ui, sans-serif; fill: #1f2328; }
svg .lag { fill: none; stroke: var(--busy); stroke-width: 1.5; }
svg .edge { stroke: var(--soft); }
@media (max-width: 900px) {
  main { grid-template-columns: minmax(0, 1fr); padding: 8px; gap: 8px; }
  td, th { min-width: 0; }
  button.link { white-space: normal; }
  .hide, .runs thead { display: none; }
  .runs tr { display: flex; flex-wrap: wrap; gap: 2px 12px; padding: 6px 0; border-bottom: 1px solid var(--line); }
  .runs td { border: 0; padding: 0; }
  #memory td:first-child { min-width: 10em; }
  .runs td.cause { order: 1; flex: 1 0 100%; }
}
`;
