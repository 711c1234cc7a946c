import { checkKind, type Kind } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import type { ObjectKey } from "../core/api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../core/api/options.ts";
import type { InformerClient } from "../core/cache/informer/informer.ts";
import {
  checkSelection,
  CLIENT_PARTS,
  SELECTION_RULES,
} from "../core/cache/informer/informer_check.ts";
import type { InformerSelection } from "../core/cache/informer/informer_options.ts";
import { checkIndex } from "../core/cache/store/object_indexes.ts";
import type {
  EventSource,
  NamespaceSet,
} from "../core/controller/event_source.ts";
import { checkNamespaces } from "../core/controller/namespaces.ts";
import { FILTER_RULES, type Filters } from "../core/controller/filters.ts";
import type { Mapper } from "./mappers.ts";

/** Options of {@linkcode watch}. */
export interface WatchSourceOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends Omit<InformerSelection, "namespaces" | "prune"> {
  /**
   * Paths that are cut out before an object is stored, such as
   * `status.conditions[*].lastProbeTime`. `[]` keeps everything.
   *
   * By default `metadata.managedFields` has the entries of the operator's own
   * controllers only, which are what dependents are compared by: those of other
   * managers are not there when it is read.
   *
   * @default {[`metadata.managedFields[manager!=…]`] with all of the operator's}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Unique within the controller.
   *
   * @default {the kind with its apiVersion, such as "apps/v1 Deployment"}
   */
  readonly name?: string | undefined;
  /**
   * Which namespaces are watched; `"inherited"` follows the controller's.
   *
   * @default {"inherited"}
   */
  readonly namespaces?: "inherited" | NamespaceSet | undefined;
  /**
   * Which primaries a secondary belongs to.
   *
   * @default {those among its owners, by byOwner()}
   */
  readonly mapper?: Mapper<P, S> | undefined;
  /**
   * Which secondaries a primary refers to, by key; for secondaries that do not
   * know their primaries, and may have many. It takes the place of `mapper`.
   *
   * @default {none}
   */
  readonly references?:
    | ((primary: P) => Iterable<ObjectKey | string>)
    | undefined;
  /**
   * Which events trigger.
   *
   * @default {all}
   */
  readonly filters?: Filters<S> | undefined;
  /**
   * The cluster in which the secondaries are.
   *
   * @default {that of the operator}
   */
  readonly client?: InformerClient | undefined;
  /**
   * Whether the informer is shared with others in the operator who watch the
   * same; one of its own costs another watch and another cache.
   *
   * @default {true}
   */
  readonly shared?: boolean | undefined;
  /**
   * Whether the reconciler never writes these objects, so that the operator
   * needs the right to watch them and no other.
   *
   * @default {false}
   */
  readonly readOnly?: boolean | undefined;
  /**
   * Whether it has synced before other sources start.
   *
   * @default {"default"}
   */
  readonly startPriority?: "loader" | "default" | undefined;
}

const RULES: OptionRules<
  WatchSourceOptions<never, never>
> = {
  ...SELECTION_RULES,
  name: "name?",
  namespaces: "any?",
  mapper: "object?",
  references: "function?",
  filters: "object?",
  client: "object?",
  shared: "boolean?",
  readOnly: "boolean?",
  startPriority: ["loader", "default", undefined],
};

const NAMESPACE_WORDS: readonly string[] = ["inherited", "all"];
const MAPPER_PARTS: OptionRules<Mapper<never, never>> = {
  primariesOf: "function",
  index: "object",
  indexValue: "function",
};

/**
 * Refuses what no source can be made of.
 *
 * @returns The options.
 * @throws {TypeError | RangeError | SyntaxError} If the kind is none, or an option
 * is unknown or makes no sense.
 */
export function checkInformerSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: WatchSourceOptions<P, S>,
): WatchSourceOptions<P, S> {
  checkKind(kind, "watch()");
  const subject = `watch() of ${kind.kind}`;
  checkOptions(options, RULES, subject);
  checkOptions(options.filters ?? {}, FILTER_RULES, `${subject}, filters`);
  const { namespaces = "inherited", client, mapper } = options;
  checkNamespaces(namespaces, NAMESPACE_WORDS, subject);
  if (client !== undefined) {
    checkParts(client, CLIENT_PARTS, `${subject}, client`);
  }
  if (mapper !== undefined) {
    checkParts(mapper, MAPPER_PARTS, `${subject}, mapper`);
    checkIndex(`of ${subject}, mapper`, mapper.index);
  }
  checkSelection(options);
  return options;
}

/** A source that watches a kind. */
export interface WatchSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends EventSource<P, S> {
  /**
   * For whoever remembers something of each secondary: calls back with the key
   * of one that is gone, and without a key when the source stops and forgets
   * all.
   */
  onGone(listener: (key: string | undefined) => void): void;
}
