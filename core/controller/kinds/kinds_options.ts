import type { ResolvedKind } from "../../api/kind.ts";
import type { UntypedObject } from "../../api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../api/options.ts";
import type { CacheEvent } from "../../cache/informer/cache_event.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
  type PrimaryCacheOptions,
} from "../controller_options.ts";
import type { ControllerHealth } from "../controller_health.ts";
import type { Reconciler } from "../reconciler.ts";
import { checkKindSelector, type KindSelector } from "./kind_selector.ts";

/**
 * Handler of the changes of all objects of the followed kinds, on each replica. It is
 * called like the handler of an informer: in order, and it must be fast.
 *
 * @param event Change of an object; valid during the call only.
 * @param kind Kind of the object.
 */
export type KindsHandler = (
  event: CacheEvent<UntypedObject>,
  kind: ResolvedKind,
) => void;

/**
 * Options of `operator.watchKinds`: which objects of the kinds are watched, and for a
 * reconciler how it runs, as in the options of a controller.
 */
export interface KindsOptions extends
  Pick<
    ControllerOptions<UntypedObject>,
    | "name"
    | "namespaces"
    | "labelSelector"
    | "fieldSelector"
    | "concurrency"
    | "fieldManager"
    | "filters"
    | "generationAware"
    | "maxInterval"
    | "rateLimit"
    | "retry"
    | "throughput"
    | "timeout"
  > {
  /**
   * Name of the watch, unique among the controllers of the operator. With a
   * reconciler, the controller of a kind is called `NAME-PLURAL.GROUP`.
   *
   * @default {"kinds"}
   */
  readonly name?: string | undefined;
  /**
   * Form of the objects in the caches. Only their metadata is requested and kept,
   * unless `metadataOnly` is false.
   *
   * @default {{ metadataOnly: true }}
   */
  readonly cache?:
    | Pick<PrimaryCacheOptions, "metadataOnly" | "prune">
    | undefined;
}

/** Kind of the cluster that `watchKinds` follows, and its state. */
export interface FollowedKind {
  /** Kind, in the version that the server prefers. */
  readonly kind: ResolvedKind;
  /** Whether its cache is complete. */
  readonly synced: boolean;
  /** Why it cannot be read now, such as the right that is missing. */
  readonly error: string | undefined;
}

/** Handle of the watch of many kinds. */
export interface KindsHandle {
  /** Name of the watch. */
  readonly name: string;
  /** Kinds that are followed now. */
  readonly followed: readonly FollowedKind[];
  /**
   * Objects that an object owns, of all followed kinds, from one index: the next level
   * of its tree. Frozen; their `apiVersion` and `kind` tell the kinds.
   *
   * @param owner Owner, or its UID.
   */
  ownedBy(
    owner: string | {
      readonly metadata: { readonly uid?: string | undefined };
    },
  ): readonly UntypedObject[];
  /** Health of the watch, as that of a controller of CustomResourceDefinitions. */
  health(): ControllerHealth;
}

const { prune, metadataOnly } = CONTROLLER_OPTIONS.cache
  .options as OptionRules<PrimaryCacheOptions>;

type SharedOption = "name" | "namespaces" | "labelSelector" | "fieldSelector";

/** Options of the runs of a reconciler. */
type RunOption = Exclude<
  keyof KindsOptions & keyof ControllerOptions<UntypedObject>,
  SharedOption | "cache" | "metadataOnly"
>;

const SHARED_RULES: OptionRules<Pick<KindsOptions, SharedOption | "cache">> = {
  name: CONTROLLER_OPTIONS.name,
  namespaces: CONTROLLER_OPTIONS.namespaces,
  labelSelector: CONTROLLER_OPTIONS.labelSelector,
  fieldSelector: CONTROLLER_OPTIONS.fieldSelector,
  cache: { type: "object?", options: { prune, metadataOnly } },
} as OptionRules<Pick<KindsOptions, SharedOption | "cache">>;

const RULES: OptionRules<KindsOptions> = {
  ...SHARED_RULES,
  ...Object.fromEntries(
    ([
      "concurrency",
      "fieldManager",
      "filters",
      "generationAware",
      "maxInterval",
      "rateLimit",
      "retry",
      "throughput",
      "timeout",
    ] satisfies RunOption[]).map((name) => [name, CONTROLLER_OPTIONS[name]]),
  ),
} as OptionRules<KindsOptions>;

/** What `operator.watchKinds` was given, checked. */
export interface KindsSettings {
  readonly selector: KindSelector;
  readonly name: string;
  readonly options: KindsOptions;
  readonly handler: KindsHandler | undefined;
  readonly reconciler: Reconciler<UntypedObject> | undefined;
}

/**
 * Checks what `operator.watchKinds` was given.
 *
 * @throws {TypeError | RangeError | SyntaxError} If something is not valid; the error
 * names it.
 */
export function kindsSettings(
  selector: KindSelector,
  react: KindsHandler | Reconciler<UntypedObject>,
  options: KindsOptions,
): KindsSettings {
  const subject = "operator.watchKinds()";
  checkKindSelector(selector, subject);
  const isHandler = typeof react === "function";
  // A handler has no runs whose options could be set.
  checkOptions(options, isHandler ? SHARED_RULES : RULES, subject);
  if (!isHandler) {
    checkOption(react?.reconcile, "function", {
      name: "reconcile",
      subject: `${subject}, which takes a handler or a reconciler`,
    });
  }
  const { name = "kinds", cache } = options;
  return {
    selector,
    name,
    options: { ...options, name, cache: { metadataOnly: true, ...cache } },
    handler: isHandler ? react : undefined,
    reconciler: isHandler ? undefined : react,
  };
}
