import { fieldRequirements } from "../../api/field_selector.ts";
import { checkKind, type Kind } from "../../api/kind.ts";
import { labelRequirements } from "../../api/label_selector.ts";
import {
  checkOptions,
  checkParts,
  type OptionRule,
  type OptionRules,
} from "../../api/options.ts";
import { parseShardSelector } from "../../api/shard_selector.ts";
import { pruneTree } from "../../json/prune_tree.ts";
import type { InformerClient } from "./informer.ts";
import type { InformerOptions, InformerSelection } from "./informer_options.ts";
import { BUDGET_PARTS } from "../store/memory_budget.ts";
import { reconnectSettings } from "../watch/reconnect_settings.ts";

/** What a client must have for an informer. */
export const CLIENT_PARTS: OptionRules<
  Pick<InformerClient, "request" | "resolve">
> = {
  request: "function",
  resolve: "function",
};
const RELISTS_PARTS: Readonly<Record<string, OptionRule>> = {
  enter: "function",
};

/** What the options of an {@linkcode InformerSelection} must be. */
export const SELECTION_RULES: OptionRules<InformerSelection> = {
  namespaces: "strings?",
  labelSelector: "selector?",
  fieldSelector: "selector?",
  shardSelector: "string?",
  metadataOnly: "boolean?",
  prune: "strings?",
  bounded: "boolean?",
};

/** What the options that all informers of a pool share must be. */
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

/**
 * Refuses what no informer can be made of.
 *
 * @throws {TypeError | RangeError | SyntaxError} If the client or the kind is
 * none, or an option is unknown or makes no sense.
 */
export function checkInformer(
  client: InformerClient,
  kind: Kind,
  options: InformerOptions,
): void {
  checkParts(client, CLIENT_PARTS, "an informer, client");
  checkKind(kind, "an informer");
  checkOptions(options, RULES, "an informer");
  checkSharedParts(options, "an informer");
  checkSelection(options);
}

/**
 * Refuses parts that cannot be what informers share.
 *
 * @throws {TypeError | RangeError} If one is none.
 */
export function checkSharedParts(
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
 * Refuses selectors and paths that cannot be read, for whatever makes an informer
 * later.
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

const RULES: OptionRules<InformerOptions> = {
  ...SELECTION_RULES,
  ...SHARED_RULES,
};
