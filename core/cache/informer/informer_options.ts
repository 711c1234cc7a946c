import { checkParts, type OptionRules } from "../../api/options.ts";
import type { ResolvedKind } from "../../api/kind.ts";
import { SELECTION_OPTIONS } from "../../api/selection.ts";
import type { Clock } from "../../clock.ts";
import { pruneTree } from "../../json/prune.ts";
import type { Logger } from "../../logger.ts";
import type { Metrics } from "../../metrics.ts";
import type { ConcurrencyLimit } from "../../pace.ts";
import type { SnapshotFolder } from "../snapshot/snapshot_folder.ts";
import { BUDGET_PARTS, type MemoryBudget } from "../store/memory_budget.ts";
import {
  RECONNECT_OPTIONS,
  type ReconnectOptions,
} from "../watch/reconnect.ts";
import type {
  InformerClient,
  InformerSelection,
} from "../watch/watch_requests.ts";

/** Options of an {@linkcode Informer}. */
export interface InformerOptions extends InformerSelection {
  /** Options for connecting, and for recovering from failures. */
  readonly reconnect?: ReconnectOptions | undefined;
  /** Memory budget that the cache shares with others; no limit when left out. */
  readonly budget?: MemoryBudget | undefined;
  /** Logger. Defaults to that of the client. */
  readonly logger?: Logger | undefined;
  /** Metrics registry. Defaults to that of the client. */
  readonly metrics?: Metrics | undefined;
  /** Clock. Defaults to that of the client. */
  readonly clock?: Clock | undefined;
  /**
   * Function that returns a random number from 0 to below 1, for jitter. Defaults
   * to that of the client.
   */
  readonly random?: (() => number) | undefined;
  /**
   * Callback for a kind that the server serves under another plural or scope than
   * before. Only kinds that do not state them are followed.
   */
  readonly onMoved?: ((kind: ResolvedKind) => void) | undefined;
}

/** Options of an informer, with what those of a pool share beside them. */
export interface PooledInformerOptions extends InformerOptions {
  /** Limit of how many informers relist at the same time; none when left out. */
  readonly relists?: ConcurrencyLimit | undefined;
  /** Folder with the snapshots of the caches; none when left out. */
  readonly snapshots?: SnapshotFolder | undefined;
}

/** Methods that the client of an informer must have. */
export const CLIENT_PARTS: OptionRules<
  Pick<InformerClient, "request" | "resolve">
> = { request: "function", resolve: "function" };

/** Types of the options of an {@linkcode InformerSelection}. */
export const SELECTION_RULES: OptionRules<InformerSelection> = {
  namespaces: "strings?",
  ...SELECTION_OPTIONS,
  metadataOnly: "boolean?",
  prune: { type: "strings?", check: pruneTree },
  bounded: "boolean?",
};

/** Options of an {@linkcode InformerPool}, for all of its informers. */
export type InformerPoolOptions = Omit<
  PooledInformerOptions,
  keyof InformerSelection
>;

/** Types of the options that all informers of a pool share. */
export const SHARED_RULES: OptionRules<InformerPoolOptions> = {
  reconnect: { type: "object?", options: RECONNECT_OPTIONS },
  budget: {
    type: "object?",
    check: (budget, subject) =>
      checkParts(budget, BUDGET_PARTS, `${subject}, budget`),
  },
  relists: "object?",
  snapshots: "object?",
  logger: "logger?",
  metrics: "metrics?",
  clock: "clock?",
  random: "function?",
  onMoved: "function?",
};

/** Types of the options of an informer. */
export const INFORMER_RULES: OptionRules<PooledInformerOptions> = {
  ...SELECTION_RULES,
  ...SHARED_RULES,
};
