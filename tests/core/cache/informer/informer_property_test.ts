import { fc } from "../../../support/property.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { InformerSelection } from "@coracle/operator/client";
import { shardSelector } from "../../../support/shard_selector.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { historyOfCommands } from "../../../support/informer_commands.ts";
import {
  InformerHistory,
  type World,
} from "../../../support/informer_history.ts";

/** Selection of the informer, with the number of histories to try. */
interface Setting {
  readonly where: string;
  readonly selection: InformerSelection;
  /** Whether the informer's namespaces change during the history. */
  readonly moves?: boolean;
  readonly runs: number;
}

const WORLD: fc.Arbitrary<World> = fc.record({
  pieceSize: fc.integer({ min: 1, max: 400 }),
  isSlow: fc.boolean(),
  watchList: fc.constantFrom("yes", "yes", "refused", "ignored"),
});

const SETTINGS: readonly Setting[] = [
  { where: "in all namespaces", selection: {}, runs: 200 },
  {
    where: "in several namespaces",
    selection: { namespaces: ["one", "two"] },
    runs: 100,
  },
  {
    where: "in namespaces that change",
    selection: { namespaces: ["one"] },
    moves: true,
    runs: 200,
  },
  { where: "with keys alone", selection: { bounded: true }, runs: 60 },
  { where: "with metadata alone", selection: { metadataOnly: true }, runs: 60 },
  {
    where: "with a label",
    selection: { labelSelector: "color=on" },
    runs: 200,
  },
  {
    // A field that the informer cannot match against the response to a write.
    where: "with a field",
    selection: { fieldSelector: "metadata.labels.color=on" },
    runs: 100,
  },
  {
    where: "of one shard",
    selection: { shardSelector: shardSelector({ index: 0, count: 2 }) },
    runs: 100,
  },
];

for (const { where, selection, moves = false, runs } of SETTINGS) {
  test(`Informer reaches the server's state after any history, ${where}`, async () => {
    let givenUp = 0;
    await fc.assert(
      fc.asyncProperty(
        historyOfCommands({ moves }),
        WORLD,
        async (commands, world) => {
          const server = await FakeWatchServer.start();
          try {
            const history = new InformerHistory(
              server,
              { ...world },
              selection,
            );
            for (const command of commands) await history.run(command);
            givenUp += await history.check();
          } finally {
            await server.stop();
          }
        },
      ),
      { numRuns: runs },
    );
    assert.equal(givenUp > 0, selection.bounded === true);
  });
}
