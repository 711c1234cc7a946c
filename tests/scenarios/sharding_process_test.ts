import assert from "node:assert/strict";
import { type ProcessCase, processScenario } from "../support/process_case.ts";

/** So many that of three replicas none is left without any. */
const NAMES = Array.from({ length: 50 }, (_, index) => `gadget-${index}`);

function run(one: ProcessCase, identity: string): void {
  one.run("tests/scenarios/sharding_operator.ts", identity);
}

/** Waits until every gadget is written anew, and by each of these. */
async function shared(
  one: ProcessCase,
  identities: readonly string[],
): Promise<void> {
  const { chronicle } = one;
  let since = chronicle.length;
  await one.until(`${identities.join(", ")} share all gadgets`, () => {
    const writers = chronicle.writersSince(since);
    if (writers.size < NAMES.length) return false;
    const names = new Set(writers.values());
    if (names.size === identities.length) {
      if (identities.every((name) => names.has(name))) return true;
    }
    since = chronicle.length;
    return false;
  });
}

processScenario(
  "Of the processes that share objects no two run one, through joins, stops, kills and ends [#3498]",
  async (one) => {
    await one.create(...NAMES);
    run(one, "a");
    await shared(one, ["a"]);
    run(one, "b");
    run(one, "c");
    await shared(one, ["a", "b", "c"]);

    // One stands still for longer than its lease, and comes back.
    one.freeze("b");
    await shared(one, ["a", "c"]);
    one.thaw("b");
    await shared(one, ["a", "b", "c"]);

    // One is killed, and comes back under its name.
    await one.kill("c");
    run(one, "c");
    await shared(one, ["a", "b", "c"]);

    // One leaves in order, in the midst of its runs.
    assert.equal(await one.end("a"), 0);
    await shared(one, ["b", "c"]);
    const { interleavings } = one.chronicle;
    const { overlaps } = one.journal;
    assert.deepEqual({ interleavings, overlaps }, {
      interleavings: [],
      overlaps: [],
    });
    assert.equal(await one.end("b"), 0);
    assert.equal(await one.end("c"), 0);
  },
);
