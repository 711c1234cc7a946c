import { type FieldRequirement, fieldRequirements } from "./field_selector.ts";
import {
  type LabelRequirement,
  labelRequirements,
  type LabelSelector,
} from "./label_selector.ts";
import type { OptionRules } from "./options.ts";
import { parseShardSelector } from "./shard_selector.ts";

/** Selectors of objects of a kind. */
export interface SelectionOptions {
  /** Label selector, such as `"app=web"`. Defaults to all objects. */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /** Field selector that objects must match. Defaults to all objects. */
  readonly fieldSelector?:
    | string
    | Readonly<Record<string, string>>
    | readonly FieldRequirement[]
    | undefined;
  /**
   * Shard selector, with which several deployments share the objects
   * (KEP-5866), by the hash of their UID or namespace. The first of two halves is
   * `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`.
   * Servers before Kubernetes 1.36 ignore it and send all objects; informers and
   * controllers then filter them by their metadata. Defaults to all objects.
   */
  readonly shardSelector?: string | undefined;
}

/** Table of {@linkcode SelectionOptions}. */
export const SELECTION_OPTIONS: OptionRules<SelectionOptions> = {
  labelSelector: { type: "selector?", check: labelRequirements },
  fieldSelector: { type: "selector?", check: fieldRequirements },
  shardSelector: { type: "string?", check: parseShardSelector },
};
