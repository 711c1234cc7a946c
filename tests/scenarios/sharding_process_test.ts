import assert from "node:assert/strict";
import {
  type ProcessFixture,
  processScenario,
} from "../support/process_fixture.ts";

/** So many that of three replicas none is left without any. */
const NAMES = Array.from({ length: 50 }, (_, index) => `gadget-${index}`);

function run(fixture: ProcessFixture, identity: string): void {
  fixture.run("tests/scenarios/sharding_operator.ts", identity);
}

/** Waits until every gadget is written anew, and by each of these. */
async function shared(
  fixture: ProcessFixture,
  identities: readonly string[],
): Promise<void> {
  const { chronicle } = fixture;
  let since = chronicle.length;
  await fixture.until(`${identities.join(", ")} share all gadgets`, () => {
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
  async (fixture) => {
    await fixture.create(...NAMES);
    run(fixture, "a");
    await shared(fixture, ["a"]);
    run(fixture, "b");
    run(fixture, "c");
    await shared(fixture, ["a", "b", "c"]);

    // One stands still for longer than its lease, and comes back.
    fixture.freeze("b");
    await shared(fixture, ["a", "c"]);
    fixture.thaw("b");
    await shared(fixture, ["a", "b", "c"]);

    // One is killed, and comes back under its name.
    await fixture.kill("c");
    run(fixture, "c");
    await shared(fixture, ["a", "b", "c"]);

    // One leaves in order, in the midst of its runs.
    assert.equal(await fixture.end("a"), 0);
    await shared(fixture, ["b", "c"]);
    const { interleavings } = fixture.chronicle;
    const { overlaps } = fixture.journal;
    assert.deepEqual({ interleavings, overlaps }, {
      interleavings: [],
      overlaps: [],
    });
    assert.equal(await fixture.end("b"), 0);
    assert.equal(await fixture.end("c"), 0);
  },
);
