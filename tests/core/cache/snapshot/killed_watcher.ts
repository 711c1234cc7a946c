/**
 * Process that watches widgets from a snapshot, writes the snapshot all the time,
 * and says what it has seen when it has caught up with a last object.
 *
 * Arguments: URL of the server, folder, name of the last object. Lines: `ready`,
 * then the state as JSON.
 *
 * @module
 */
import process from "node:process";
import { systemClock } from "../../../../core/clock.ts";
import { silentLogger } from "../../../../core/logger.ts";
import { noMetrics } from "../../../../core/metrics.ts";
import { Informer } from "../../../../core/cache/informer/informer.ts";
import type { PooledInformerOptions } from "../../../../core/cache/informer/informer_options.ts";
import { SnapshotFolder } from "../../../../core/cache/snapshot/snapshot_folder.ts";
import { Client } from "../../../../core/client/client.ts";
import { Widget } from "../../../support/fake_watch_call.ts";

/** What a process has seen. */
export interface Seen {
  /** Contradictions between its events. */
  readonly faults: readonly string[];
  /** Versions of the objects, by the events alone. */
  readonly told: Readonly<Record<string, string>>;
  /** Objects in the cache. */
  readonly objects: readonly Widget[];
  /** Whether it began with a snapshot. */
  readonly isWarm: boolean;
}

/** Watches until the last object is seen, and says what was seen. */
async function main(
  [server = "", path = "", last = ""]: readonly string[],
): Promise<void> {
  const folder = await SnapshotFolder.open({
    settings: { path, every: 3_600_000, exclude: [], resync: false },
    ...{ cluster: server, clock: systemClock },
    ...{ log: silentLogger, metrics: noMetrics },
  });
  const options: PooledInformerOptions = { snapshots: folder };
  const informer = new Informer(new Client({ server }), Widget, options);
  const told = new Map<string, string>();
  const faults: string[] = [];
  let isWarm: boolean | undefined;
  informer.addHandler(({ type, key, header }) => {
    // With a snapshot, objects are known before anything was received.
    isWarm ??= informer.health().watches[0]?.lastContact === undefined;
    if (told.has(key) !== (type !== "added")) faults.push(`${type} ${key}`);
    if (type === "deleted") told.delete(key);
    else told.set(key, header.resourceVersion);
  });
  await informer.start().synced;
  process.stdout.write("ready\n");
  while (!informer.has(last)) {
    await folder.flush();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seen: Seen = {
    faults,
    told: Object.fromEntries([...told].toSorted()),
    objects: informer.list(),
    isWarm: isWarm === true,
  };
  process.stdout.write(`${JSON.stringify(seen)}\n`);
  while (true) {
    await folder.flush();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

// It must not outlive the process that started it.
process.stdin.resume().once("end", () => process.exit());
await main(process.argv.slice(2));
