/**
 * Informers that begin with a snapshot, for tests: each start is an incarnation of
 * one process, with its folder, handler and events.
 *
 * @module
 */
import type { VirtualClock } from "@coracle/dev";
import type { Clock, Logger } from "@coracle/operator/client";
import { silentLogger } from "../../../../core/logger.ts";
import { Informer } from "../../../../core/cache/informer/informer.ts";
import type { PooledInformerOptions } from "../../../../core/cache/informer/informer_options.ts";
import { SnapshotFolder } from "../../../../core/cache/snapshot/snapshot_folder.ts";
import type { SnapshotSettings } from "../../../../core/cache/snapshot/snapshot_options.ts";
import { Client } from "../../../../core/client/client.ts";
import { MetricsRegistry } from "../../../../core/operator/metrics_registry.ts";
import { stateOf, Widget } from "../../../support/fake_watch_call.ts";
import type { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { toNextTimer } from "../../../support/informer_case.ts";
import { memoryTransport } from "../../../support/memory_transport.ts";
import { until } from "../../../support/until.ts";

/** Looks after which time passes until the next timer. */
const LOOKS = 20;

const PACE = { pieceSize: 400, isSlow: false } as const;

export interface WarmOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly cluster?: string;
  readonly settings?: Partial<SnapshotSettings>;
  readonly informer?: PooledInformerOptions;
  readonly log?: Logger;
  /** Whether the handler reads initial events; by default it does. */
  readonly isRead?: boolean;
}

/** One incarnation: an informer with the snapshots of a folder. */
export interface Incarnation {
  readonly informer: Informer<Widget>;
  readonly folder: SnapshotFolder;
  readonly metrics: MetricsRegistry;
  /** Events of a handler: type, key and version, and whether it is initial. */
  readonly events: string[];
  /** Stops in order: what is left is written. */
  stop(): Promise<void>;
}

/** Creates an informer that begins with the snapshot of a folder, if it has one. */
export async function incarnation(
  server: FakeWatchServer,
  options: WarmOptions,
): Promise<Incarnation> {
  const { path, clock, cluster = "one", settings, log = silentLogger } =
    options;
  const { isRead = true } = options;
  const metrics = new MetricsRegistry();
  const folder = await SnapshotFolder.open({
    settings: { path, every: 60_000, exclude: [], resync: false, ...settings },
    ...{ cluster, clock, log, metrics },
  });
  const transport = memoryTransport(server, PACE);
  const given: PooledInformerOptions = {
    ...{ clock, random: () => 0.5, snapshots: folder, logger: log, metrics },
    ...options.informer,
  };
  const informer = new Informer(new Client({ transport }), Widget, given);
  const events: string[] = [];
  informer.addHandler((event) => {
    const { type, key, initial } = event;
    if (initial && !isRead) return;
    const { resourceVersion } = event.header;
    events.push(
      `${type} ${key} ${resourceVersion}${initial ? " initial" : ""}`,
    );
  });
  const stop = async () => {
    await informer.stop();
    await folder.close();
  };
  return { informer, folder, metrics, events, stop };
}

/**
 * Waits until an informer shows what the server has; the server sends bookmarks,
 * and pauses after failures take no time.
 *
 * @param hangs Whether the server may never answer: requests are then given up.
 */
export async function settled(
  server: FakeWatchServer,
  { informer }: Incarnation,
  clock: VirtualClock,
  hangs = false,
): Promise<void> {
  let looks = 0;
  await until("the cache shows what the server has", async () => {
    const { watches } = informer.health();
    if (
      informer.hasSynced &&
      watches.every(({ state }) => state === "watching") &&
      JSON.stringify(stateOf(informer.list())) === JSON.stringify(server.state)
    ) return true;
    // A server that never answers is given up when time passes.
    const isStuck = hangs && ++looks % LOOKS === 0;
    if (isStuck || watches.some(({ state }) => state === "waiting")) {
      await toNextTimer(clock);
    }
    server.bookmark();
    return false;
  }, { every: 0 });
}
