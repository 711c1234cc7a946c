import type { Duration } from "../../core/api/duration.ts";
import { isLabelValue } from "../../core/api/label_selector.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { ObjectReference } from "../kstatus/object_reference.ts";
import type { StatusRule } from "../kstatus/object_status.ts";

/** What everything that works on a set takes. */
export interface SetOptions {
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
  /**
   * Whose fields are written.
   *
   * @default {the client's `fieldManager`}
   */
  readonly fieldManager?: string | undefined;
  /**
   * Whether an object is deleted and made anew where a field that cannot change
   * has to. A single object can say so by the annotation `<group>/force: enabled`;
   * what holds others (CustomResourceDefinitions, Namespaces, volumes and their
   * claims) has to.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
  /** Ends everything when it fires. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@linkcode applySet}. */
export interface ApplySetOptions extends SetOptions {
  /**
   * Kinds that are applied, and waited for, before all but definitions and
   * classes, as `group/Kind`.
   *
   * @default {[]}
   */
  readonly early?: readonly string[] | undefined;
  /**
   * How many objects are compared at once.
   *
   * @default {1}
   */
  readonly concurrency?: number | undefined;
  /**
   * How long a stage may take to become current.
   *
   * @default {"60s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * How the state of objects is judged, as of `statusOf`.
   *
   * @default {none}
   */
  readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  /**
   * What the set held before: what is in it no longer is deleted once everything
   * else is applied. It is the `inventory` of the last result.
   *
   * @default {[]}
   */
  readonly previous?: readonly ObjectReference[] | undefined;
  /**
   * Measures the time of waits.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

type SetOwner = SetOptions["owner"];

const OWNER_RULES: OptionRules<SetOwner> = {
  group: "name",
  name: "name",
  namespace: "name?",
};

/** What the options of everything that works on a set must be. */
export const SET_RULES: OptionRules<SetOptions> = {
  owner: "object",
  fieldManager: "name?",
  force: "boolean?",
  signal: "signal?",
};

/** What the options of {@linkcode applySet} must be. */
export const APPLY_SET_RULES: OptionRules<ApplySetOptions> = {
  ...SET_RULES,
  early: "strings?",
  concurrency: "count?",
  timeout: "duration?",
  rules: "map?",
  previous: "array?",
  clock: "clock?",
};

/**
 * The labels by which the objects of a set are known.
 *
 * @throws {RangeError} If a name is no value of a label.
 */
export function ownerLabels(owner: SetOwner): Record<string, string> {
  checkOptions(owner, OWNER_RULES, "a set, owner");
  const { group, name, namespace } = owner;
  for (const value of [name, namespace ?? ""]) {
    if (isLabelValue(value)) continue;
    throw new RangeError(
      `Cannot label the objects of a set: the owner's name and namespace must be values of labels, of at most 63 characters: received ${
        JSON.stringify(value)
      }`,
    );
  }
  return {
    [`${group}/name`]: name,
    ...(namespace !== undefined && { [`${group}/namespace`]: namespace }),
  };
}

/** Whether an object is of a set. */
export function isOwnedBy(object: KubernetesObject, owner: SetOwner): boolean {
  const { labels = {} } = object.metadata;
  return Object.entries(ownerLabels(owner)).every(([name, value]) =>
    labels[name] === value
  );
}

/** Whether an object says something of how it is to be treated. */
export function hasWish(
  object: KubernetesObject | undefined,
  { group }: SetOwner,
  wish: readonly [name: "apply" | "force" | "prune", value: string],
): boolean {
  const [name, value] = wish;
  const { annotations = {}, labels = {} } = object?.metadata ?? {};
  const said = annotations[`${group}/${name}`] ?? labels[`${group}/${name}`];
  return said?.toLowerCase() === value;
}
