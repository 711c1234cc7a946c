import { checkKind, type Kind } from "../api/kind.ts";
import { checkOptions, type OptionRules } from "../api/option_rules.ts";
import type { InformerOptions, InformerSelection } from "./informer_options.ts";

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
 * @throws {TypeError | RangeError} If the kind is none, or an option is unknown
 * or makes no sense.
 */
export function checkInformer(kind: Kind, options: InformerOptions): void {
  checkKind(kind, "an informer");
  checkOptions(options, RULES, "an informer");
}

const RULES: OptionRules<InformerOptions> = {
  ...SELECTION_RULES,
  ...SHARED_RULES,
};
