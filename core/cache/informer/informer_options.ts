import { fieldRequirements } from "../../api/field_selector.ts";
import { labelRequirements } from "../../api/label_selector.ts";
import {
  checkParts,
  type OptionRule,
  type OptionRules,
} from "../../api/options.ts";
import { parseShardSelector } from "../../api/shard_selector.ts";
import type { Clock } from "../../clock.ts";
import { pruneTree } from "../../json/prune.ts";
import type { Logger } from "../../logger.ts";
import type { Metrics } from "../../metrics.ts";
import { BUDGET_PARTS, type MemoryBudget } from "../store/memory_budget.ts";
import {
  type ReconnectOptions,
  reconnectSettings,
} from "../watch/reconnect.ts";
import type { RelistQueue } from "../watch/relist_queue.ts";
import type {
  InformerClient,
  InformerSelection,
} from "../watch/watch_requests.ts";

/** Options of an {@linkcode Informer}. */
export interface InformerOptions extends InformerSelection {
  /** Options for connecting and recovering. */
  readonly reconnect?: ReconnectOptions | undefined;
  /** Memory budget that the cache shares with others; no limit when left out. */
  readonly budget?: MemoryBudget | undefined;
  /**
   * Queue that limits concurrent relists of the informers that share it; no limit
   * when left out.
   */
  readonly relists?: RelistQueue | undefined;
  /** Logger. Defaults to that of the client. */
  readonly logger?: Logger | undefined;
  /** Metrics registry. Defaults to that of the client. */
  readonly metrics?: Metrics | undefined;
  /** Clock. Defaults to that of the client. */
  readonly clock?: Clock | undefined;
  /**
   * Random number from 0 to below 1, for jitter. Defaults to that of the client.
   */
  readonly random?: (() => number) | undefined;
}

/** Required methods of a client of an informer. */
export const CLIENT_PARTS: OptionRules<
  Pick<InformerClient, "request" | "resolve">
> = {
  request: "function",
  resolve: "function",
};
const RELISTS_PARTS: Readonly<Record<string, OptionRule>> = {
  enter: "function",
};

/** Types of the options of an {@linkcode InformerSelection}. */
export const SELECTION_RULES: OptionRules<InformerSelection> = {
  namespaces: "strings?",
  labelSelector: "selector?",
  fieldSelector: "selector?",
  shardSelector: "string?",
  metadataOnly: "boolean?",
  prune: "strings?",
  bounded: "boolean?",
};

/** Types of the options that all informers of a pool share. */
export const SHARED_RULES: OptionRules<
  Omit<InformerOptions, keyof InformerSelection>
> = {
  reconnect: "object?",
  budget: "object?",
  relists: "object?",
  logger: "logger?",
  metrics: "metrics?",
  clock: "clock?",
  random: "function?",
};

/** Types of the options of an informer. */
export const INFORMER_RULES: OptionRules<InformerOptions> = {
  ...SELECTION_RULES,
  ...SHARED_RULES,
};

/**
 * Checks the options that the informers of a pool share.
 *
 * @throws {TypeError | RangeError} If one is invalid.
 */
export function checkSharedOptions(
  { budget, relists, reconnect }: Pick<
    InformerOptions,
    "budget" | "relists" | "reconnect"
  >,
  subject: string,
): void {
  if (budget !== undefined) {
    checkParts(budget, BUDGET_PARTS, `${subject}, budget`);
  }
  if (relists !== undefined) {
    checkParts(relists, RELISTS_PARTS, `${subject}, relists`);
  }
  reconnectSettings(reconnect);
}

/**
 * Checks the syntax of selectors and paths of an informer.
 *
 * @throws {TypeError | SyntaxError} If one is malformed.
 */
export function checkSelection(
  { labelSelector, fieldSelector, shardSelector, prune }: Pick<
    InformerSelection,
    "labelSelector" | "fieldSelector" | "shardSelector" | "prune"
  >,
): void {
  if (labelSelector !== undefined) labelRequirements(labelSelector);
  if (fieldSelector !== undefined) fieldRequirements(fieldSelector);
  if (shardSelector !== undefined) parseShardSelector(shardSelector);
  if (prune !== undefined) pruneTree(prune);
}
