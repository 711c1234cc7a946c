import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommandLine } from "../../dev/cli/main.ts";
import { replayCommand } from "../../dev/cli/replay_command.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
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

async function coracle(...args: readonly string[]) {
  let out = "";
  let said = "";
  const code = await runCommandLine(["replay", `${folder}/a`, ...args], {
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
  const [first] = JSON.parse(readFileSync(json, "utf8")).differences;
  assert.equal(first.object, "default/shop-1");
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

test("coracle replay: a file that is no recording is refused", async () => {
  writeFileSync(`${folder}/a`, "kind: Pod\n");
  const { code, said } = await coracle(file, "--export", "operator");
  assert.equal(code, 1);
  assert.match(said, /Cannot read .*\/a: it is no recording of runs\n/);
});
