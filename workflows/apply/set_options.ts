import type { Duration } from "../../core/api/duration.ts";
import { isLabelValue } from "../../core/api/label_selector.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { ObjectReference } from "../kstatus/wait_for.ts";
import type { StatusRule } from "../kstatus/object_status.ts";

/** Options of `applySet`. */
export interface ApplySetOptions {
  /** Owner of the set; the labels of its objects name it. */
  readonly owner: {
    /**
     * Domain of the labels and annotations, such as `sample.coracle.dev`; usually
     * the API group of the owner.
     */
    readonly group: string;
    /** Name of the owner. */
    readonly name: string;
    /** Namespace of the owner; absent for cluster-scoped owners. */
    readonly namespace?: string | undefined;
  };
  /** Field manager of the writes. Defaults to that of the client. */
  readonly fieldManager?: string | undefined;
  /**
   * Whether an object is deleted and created again if an immutable field
   * changes. The annotation `<group>/force: enabled` allows it for a single
   * object; CustomResourceDefinitions, Namespaces, volumes and their claims
   * always need the annotation.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
  /** Signal that aborts all requests and waits. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Kinds, as `group/Kind`, that are applied after definitions and classes, and
   * must be Current before all others.
   *
   * @default {[]}
   */
  readonly early?: readonly string[] | undefined;
  /**
   * Maximum number of objects that are compared at the same time.
   *
   * @default {1}
   */
  readonly concurrency?: number | undefined;
  /**
   * Time limit for a stage to become Current.
   *
   * @default {"60s"}
   */
  readonly timeout?: Duration | undefined;
  /** Custom status rules for `statusOf`. By default there are none. */
  readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  /**
   * Inventory of the last apply: objects that are no longer in the set are
   * deleted after the others are applied.
   *
   * @default {[]}
   */
  readonly previous?: readonly ObjectReference[] | undefined;
  /**
   * Clock for the time limits.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

/** Options of all functions for sets. */
export type SetOptions = Pick<
  ApplySetOptions,
  "owner" | "fieldManager" | "force" | "signal"
>;

type SetOwner = SetOptions["owner"];

const OWNER_RULES: OptionRules<SetOwner> = {
  group: "name",
  name: "name",
  namespace: "name?",
};

export const APPLY_SET_RULES: OptionRules<ApplySetOptions> = {
  owner: "object",
  fieldManager: "name?",
  force: "boolean?",
  signal: "signal?",
  early: "strings?",
  concurrency: "count?",
  timeout: "duration?",
  rules: "map?",
  previous: "array?",
  clock: "clock?",
};

/** Labels of the objects of a set. */
export function ownerLabels(owner: SetOwner): Record<string, string> {
  checkOptions(owner, OWNER_RULES, "a set, owner");
  const { group, name, namespace } = owner;
  for (const value of [name, namespace ?? ""]) {
    if (isLabelValue(value)) continue;
    throw new RangeError(
      `Cannot label the objects of a set: the owner's name and namespace must be valid label values of at most 63 characters: received ${
        JSON.stringify(value)
      }`,
    );
  }
  return {
    [`${group}/name`]: name,
    ...(namespace !== undefined && { [`${group}/namespace`]: namespace }),
  };
}

/** Whether an object has the labels of a set. */
export function isOwnedBy(object: KubernetesObject, owner: SetOwner): boolean {
  const { labels = {} } = object.metadata;
  return Object.entries(ownerLabels(owner)).every(([name, value]) =>
    labels[name] === value
  );
}

/** Whether an annotation or label of an object sets a policy. */
export function hasPolicy(
  object: KubernetesObject | undefined,
  { group }: SetOwner,
  policy: readonly [name: "apply" | "force" | "prune", value: string],
): boolean {
  const [name, value] = policy;
  const { annotations = {}, labels = {} } = object?.metadata ?? {};
  const found = annotations[`${group}/${name}`] ?? labels[`${group}/${name}`];
  return found?.toLowerCase() === value;
}
