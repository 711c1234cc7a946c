import { durationText } from "../api/duration.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { SyncProgress } from "../cache/informer/shared_informer.ts";
import type { Timer } from "../clock.ts";
import type { Controller, ControllerDeps } from "../controller/controller.ts";

/** What has arrived of the caches that are not complete, of all clusters. */
export function syncProgress(
  informers: InformerPool | undefined,
  controllers: Iterable<Pick<Controller, "remoteInformers">>,
): readonly SyncProgress[] {
  const remote = [...controllers].flatMap(({ remoteInformers }) =>
    Array.from(
      remoteInformers,
      ([cluster, pool]) => pool.syncing().map((one) => ({ cluster, ...one })),
    )
  );
  return [...informers?.syncing() ?? [], ...remote.flat()];
}

/** Pause between two log lines about the first sync, in milliseconds. */
const PROGRESS_MS = 5_000;

/** Maximum number of caches that a line names. */
const NAMED_CACHES = 10;

/**
 * Logs what the start waits for, every five seconds until it is cancelled: the first
 * sync takes minutes on large clusters.
 */
export function logSyncProgress(
  { clock, informers, log }: Pick<
    ControllerDeps,
    "clock" | "informers" | "log"
  >,
  controllers: ReadonlyMap<string, Pick<Controller, "remoteInformers">>,
): Timer {
  const report = () => {
    const all = [...controllers.values()];
    const syncing = syncProgress(informers, all);
    let { size } = informers;
    for (const { remoteInformers } of all) {
      for (const [, pool] of remoteInformers) size += pool.size;
    }
    const what = size > 0 ? "caches to sync" : "kinds to be served";
    log.info(`Waiting for the ${what}`, {
      synced: `${size - syncing.length} of ${size}`,
      waitingFor: syncing.slice(0, NAMED_CACHES).map(progressText),
    });
    timer = clock.setTimer(report, PROGRESS_MS);
  };
  let timer = clock.setTimer(report, PROGRESS_MS);
  return { cancel: () => timer.cancel() };
}

/** Text such as `east: v1 Pod: 1200 of 5000 objects, 3.1 MB, 12s left`. */
function progressText(
  { cluster, kind, namespace, objects, bytes, expected, remaining }:
    SyncProgress,
): string {
  const where = cluster === undefined ? "" : `${cluster}: `;
  const place = namespace === undefined ? "" : ` in ${namespace}`;
  const all = expected === undefined ? "" : ` of ${expected}`;
  const size = `${Math.round(bytes / 1e5) / 10} MB`;
  const left = remaining === undefined
    ? ""
    : `, ${durationText(Math.ceil(remaining / 1_000) * 1_000)} left`;
  return `${where}${kind}${place}: ${objects}${all} objects, ${size}${left}`;
}
