import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommandLine } from "../../dev/cli/main.ts";
import { replayCommand } from "../../dev/cli/replay_command.ts";
import { uiCommand } from "../../dev/cli/ui_command.ts";
import { assertDocumented } from "../support/documented_json.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { fixture } from "../testing/plan/cluster_copy.ts";
import { recordTime } from "../testing/replay/recorded_hour.ts";
import * as operators from "../testing/replay/shop_operators.ts";

const folder = temporaryFolder();
const file = fileURLToPath(
  new URL("../testing/replay/shop_operators.ts", import.meta.url),
);
await recordTime({
  ...{ operator: operators.operator, shops: 2, kiosks: 0, minutes: 2 },
  record: (replica) => ({ path: `${folder}/${replica}` }),
});

const coracle = (...args: readonly string[]) => replay(`${folder}/a`, ...args);

async function replay(...args: readonly string[]) {
  let out = "";
  let said = "";
  const code = await runCommandLine(["replay", ...args], {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [replayCommand]);
  return { code, out, said };
}

test("coracle replay: exit code 0 if all requests are equal", async () => {
  const { code, out } = await coracle(file, "--export", "operator");
  assert.equal(code, 0);
  assert.match(
    out,
    /^\d+ runs of 2 objects from 2026-\S+ to 2026-\S+: (\d+) of \1 requests are equal\.\nNo run differs\.\n$/,
  );
});

test("coracle replay: exit code 2 for another operator, as text and JSON", async () => {
  const json = `${folder}/replay.json`;
  const { code, out } = await coracle(
    ...[file, "--export", "otherValue", "--first", "--json", json],
  );
  assert.equal(code, 2);
  assert.match(
    out,
    /\n1 run differs:\n {2}default\/shop-1 \(shop\) at 2026-\S+, because modified: request 2 of 5 has another body\n {4}then {2}apply \/api\/v1\/namespaces\/default\/configmaps\/shop-1\n {6}\.data\.color: "blue" → "grey"\n/,
  );
  const report = JSON.parse(readFileSync(json, "utf8"));
  assertDocumented(report, "replay");
  const [first] = report.differences;
  assert.equal(first.object, "default/shop-1");
});

test("coracle replay: exit code 1 if no run could be repeated", async () => {
  await recordTime({
    ...{ operator: operators.operator, shops: 0, kiosks: 1, minutes: 2 },
    record: (replica) => ({ path: `${folder}/kiosk-${replica}` }),
  });
  const { code, out } = await replay(
    ...[`${folder}/kiosk-a`, file, "--export", "asking"],
  );
  const [, runs] = /^(\d+) runs? of 1 object from/.exec(out) ?? [];
  assert.ok(
    out.includes(
      `\n${runs} ${
        runs === "1" ? "run" : "runs"
      } cannot be repeated to the end: `,
    ),
    out,
  );
  assert.doesNotMatch(out, /differ/);
  assert.equal(code, 1);
});

test("coracle replay refuses an operator without the recorded controllers", async () => {
  const { code, out, said } = await coracle(fixture("site_old"));
  assert.deepEqual([code, out], [1, ""]);
  assert.equal(
    said,
    "Cannot replay the recording: the operator must have one of its controllers: received the runs of shop\n",
  );
});

test("coracle replay: a file without an operator cannot be loaded", async () => {
  const { code, said } = await coracle(fixture("site"));
  assert.equal(code, 1);
  assert.match(said, /^Cannot load \S+site\.ts: it creates no operator: /);
});

test("coracle replay: an object that the recording does not have is refused", async () => {
  for (const operator of [[], [file, "--export", "operator"]]) {
    const { code, out, said } = await coracle(
      ...[...operator, "--object", "default/nosuch"],
    );
    assert.deepEqual([code, out], [1, ""]);
    assert.match(
      said,
      /^Cannot .* the runs of default\/nosuch: the recording has/,
    );
  }
});

test("coracle replay without an operator: the runs as coracle why shows them", async () => {
  const { code, out } = await coracle("--object", "default/shop-0");
  assert.equal(code, 0);
  assert.match(out, /^shop default\/shop-0\n {2}2026-\S+ {2}\w+: failure in /);
  assert.match(
    out,
    /\n {4}failed {3}Error: Cannot open shop-0: nobody is there\n/,
  );
  assert.match(
    out,
    /\n {4}wrote {4}apply \/api\/v1\/namespaces\/default\/configmaps\/shop-0\n/,
  );
  assert.equal((await coracle("--first")).code, 1);
  const none = await coracle("--object", "default/none");
  assert.match(none.said, /the recording has none of them/);
});

test("coracle ui shows the recorded runs of each object in its page", async () => {
  const end = new AbortController();
  const opened = Promise.withResolvers<string>();
  const ended = runCommandLine(["ui", "--recording", `${folder}/a`], {
    colors: false,
    out: (text) => opened.resolve(/http:\S+/.exec(text)?.[0] ?? text),
    say: opened.reject,
    interrupts: () => end.signal,
  }, [uiCommand]);
  const { origin, hash } = new URL(await opened.promise);
  const ask = async (path: string) => {
    const headers = { "x-coracle-token": hash.slice(1) };
    return await (await fetch(`${origin}/api/${path}`, { headers })).json();
  };
  const { dev, operators } = await ask("state");
  assert.equal(dev, false);
  const [{ name, primaries, failing, objects }] = operators[0].controllers;
  assert.deepEqual([name, primaries, failing], ["shop", 2, 0]);
  assert.match(objects[0].object, /^default\/shop-[01]$/);
  const { histories: [{ runs }] } = await ask("object?object=default/shop-0");
  assert.equal(runs[0].outcome, "failure");
  assert.match(runs[0].error, /Cannot open shop-0: nobody is there/);
  end.abort();
  assert.equal(await ended, 0);
});

test("coracle ui: a recording and a running operator exclude each other", async () => {
  let said = "";
  await runCommandLine(
    ["ui", "--recording", `${folder}/a`, "--url", "http://localhost:1"],
    {
      colors: false,
      out: () => {},
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [uiCommand],
  );
  assert.match(said, /Cannot use --recording with a running operator/);
});

test("coracle replay: a file that is no recording is refused", async () => {
  writeFileSync(`${folder}/a`, "kind: Pod\n");
  const { code, said } = await coracle(file, "--export", "operator");
  assert.equal(code, 1);
  assert.match(said, /Cannot read .*\/a: it is no recording of runs\n/);
});
