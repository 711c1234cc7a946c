import { type Duration, milliseconds } from "../../api/duration.ts";
import { type Kind, kindText } from "../../api/kind.ts";
import type { OptionTable, Settings } from "../../api/options.ts";

/**
 * Options of the snapshots of the caches, for a warm start: after a restart the
 * caches are read from files, and the watches resume where they were.
 */
export interface SnapshotOptions {
  /**
   * Folder of the files, on a volume that outlives the process; created with mode
   * 0700. Each replica needs a folder of its own.
   */
  readonly path: string;
  /**
   * Time between two writes of what changed.
   *
   * @default {"1m"}
   */
  readonly every?: Duration | undefined;
  /**
   * Kinds that are never written, as kinds or as text like `"v1 ConfigMap"` or
   * `"apps/v1 Deployment"`. Secrets never are.
   *
   * @default {[]}
   */
  readonly exclude?: readonly (Kind | string)[] | undefined;
  /**
   * Whether all objects run after a warm start, as after any other. Otherwise those
   * run that changed since, or were waiting for a run or a retry.
   *
   * @default {false}
   */
  readonly resync?: boolean | undefined;
}

/** Types and defaults of the snapshot options. */
export const SNAPSHOT_OPTIONS: OptionTable<SnapshotOptions> = {
  path: "name",
  every: { type: "duration", default: "1m", check: checkEvery },
  exclude: { type: "array", default: [], check: checkExclude },
  resync: { type: "boolean", default: false },
};

/** Snapshot options with every default filled in. */
export type SnapshotSettings = Settings<SnapshotOptions>;

const MIN_EVERY_MS = 1_000;

function checkEvery(every: Duration, subject: string): void {
  if (milliseconds(every) >= MIN_EVERY_MS) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "every" must be at least 1s: received ${every}`,
  );
}

function checkExclude(
  exclude: readonly (Kind | string)[],
  subject: string,
): void {
  for (const one of exclude) {
    const text = typeof one === "string" ? one : kindText(Object(one) as Kind);
    if (/^([^/ ]+\/)?v\d[^/ ]* [A-Z][A-Za-z0-9]*$/.test(text)) continue;
    throw new TypeError(
      `Cannot read the options of ${subject}: "exclude" must contain kinds, or text like "apps/v1 Deployment": received ${
        typeof one === "string" ? `"${one}"` : typeof one
      }`,
    );
  }
}
