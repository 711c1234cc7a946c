import assert from "node:assert/strict";
import {
  type ProcessFixture,
  processScenario,
} from "../support/process_fixture.ts";

/** Enough that each of three replicas gets some. */
const NAMES = Array.from({ length: 30 }, (_, index) => `gadget-${index}`);

function run(fixture: ProcessFixture, identity: string): void {
  fixture.run("tests/scenarios/sharding_operator.ts", identity);
}

/** Waits until every gadget is written again, and each replica has written. */
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
  "No two replicas run the same object, through joins, freezes, kills and stops [#3498]",
  async (fixture) => {
    await fixture.create(...NAMES);
    run(fixture, "a");
    await shared(fixture, ["a"]);
    run(fixture, "b");
    run(fixture, "c");
    await shared(fixture, ["a", "b", "c"]);

    // A replica is frozen for longer than its lease, and continues.
    fixture.freeze("b");
    await shared(fixture, ["a", "c"]);
    fixture.thaw("b");
    await shared(fixture, ["a", "b", "c"]);

    // A replica is killed and starts again under the same identity.
    await fixture.kill("c");
    run(fixture, "c");
    await shared(fixture, ["a", "b", "c"]);

    // A replica is asked to stop during its runs.
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
