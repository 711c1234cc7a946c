/**
 * Apply sets: many objects applied as one set, in stages, with drift detection
 * by dry runs and pruning of objects that left the set.
 *
 * Guarantees: namespaces and definitions are applied before objects that need
 * them; an object is pruned only if its labels say that it is in the set.
 *
 * The folder imports graph, kstatus and core.
 *
 * @module
 */
import { ApiError } from "../../core/api/api_error.ts";
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import type { Client } from "../../core/client/client.ts";
import { type Clock, deadline, systemClock } from "../../core/clock.ts";
import { CRD_KIND, type CrdObject } from "../../core/crd/crd_object.ts";
import { waitUntilDiscovered } from "../../core/crd/install_crd.ts";
import { ConcurrencyLimit } from "../../core/pace.ts";
import {
  asReferenced,
  type ObjectReference,
  referencedKind,
  referenceId,
  referenceOf,
  waitFor,
} from "../kstatus/wait_for.ts";
import { statusOf } from "../kstatus/status_of.ts";
import {
  applyStages,
  compareForApply,
  HOLDERS,
  membersById,
} from "./apply_order.ts";
import {
  type AppliedChange,
  ApplySetError,
  objectChanges,
} from "./change_set.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import {
  appliedMetadata,
  isImmutable,
} from "../dependents/dependent_resource.ts";
import {
  inventoryReference,
  readInventory,
  type SetInventory,
} from "./set_inventory.ts";
import { isLabelValue } from "../../core/api/label_selector.ts";
import type { StatusRule } from "../kstatus/status_rules.ts";

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
   * deleted after the others are applied. The option `inventory` keeps one.
   *
   * @default {[]}
   */
  readonly previous?: readonly ObjectReference[] | undefined;
  /**
   * ConfigMap that keeps the inventory of the set, in place of `previous`: it is read
   * first, lists new objects before they are written, and forgets those that are
   * deleted at the end. So nothing is forgotten after a crash, and a set without
   * objects deletes them all. It is created if it does not exist; its namespace
   * defaults to that of the client. It takes about 8,000 objects. Defaults to none.
   */
  readonly inventory?: {
    readonly name: string;
    readonly namespace?: string | undefined;
  } | undefined;
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

const APPLY_SET_RULES: OptionRules<ApplySetOptions> = {
  owner: "object",
  fieldManager: "manager?",
  force: "boolean?",
  signal: "signal?",
  early: "strings?",
  concurrency: "count?",
  timeout: "duration?",
  rules: "map?",
  previous: "array?",
  inventory: "object?",
  clock: "clock?",
};

/**
 * Labels that find the objects of a set: name and namespace of the owner, with its
 * group as prefix.
 *
 * @throws {TypeError} If an option of the owner is unknown, missing or of another
 * type.
 * @throws {RangeError} If its name or namespace is no valid label value.
 */
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
function isOwnedBy(object: KubernetesObject, owner: SetOwner): boolean {
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

/**
 * Applies objects of any kinds as one set, by server-side apply.
 *
 * 1. The objects are divided into stages: definitions, classes, the kinds of
 *    `early`, and all others. Each stage must be Current, by {@linkcode
 *    waitFor}, and listed by the API discovery if it is a definition, before the
 *    next begins.
 * 2. Within a stage, dry runs determine which objects differ. Only those are
 *    written, one after the other, dependencies first.
 * 3. Objects that are no longer in the set are deleted in reverse order, but
 *    only those with the labels of the owner.
 *
 * An object with the annotation `<group>/apply: ignore` is not changed, one
 * with `<group>/apply: ifnotpresent` only if it does not exist, and one with
 * `<group>/prune: disabled` is never deleted.
 *
 * @param client The client of the cluster.
 * @param objects The desired objects, with apiVersion and kind.
 * @param options The owner, and how the objects are applied.
 * @returns `changes` are the changes of the objects, in order; `inventory`
 * lists the objects of the set, to store and pass as `previous` to the next
 * apply where the option `inventory` does not keep them.
 * @throws {TypeError} If an object has no kind, or an option is unknown, missing
 * or of another type.
 * @throws {RangeError} If an object is in the set twice, the name of the owner is
 * no valid label value, or an option is out of range.
 * @throws {ApplySetError} If an object is refused or a stage does not become
 * Current; it has the changes before.
 * @throws {Error} If the inventory cannot be read or written, or is that of another
 * set.
 * @throws The reason of the signal, if that fires.
 *
 * @example Remove a ConfigMap from a set
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { applySet } from "@coracle/operator/workflows";
 *
 * const server = await ApiServer.start({ port: false });
 * const configMap = (name: string) => ({
 *   apiVersion: "v1",
 *   kind: "ConfigMap",
 *   metadata: { namespace: "default", name },
 * });
 * const owner = { group: "sample.coracle.dev", name: "web" };
 * const options = { owner, inventory: { name: "web-inventory" } };
 * await applySet(server.client, [configMap("a"), configMap("b")], options);
 * const { changes } = await applySet(
 *   server.client,
 *   [configMap("a")],
 *   options,
 * );
 * const actions = changes.map(({ action }) => action);
 * if (actions.join() !== "unchanged,deleted") throw new Error("Unexpected set");
 * await server.stop();
 * ```
 */
export async function applySet(
  client: Client,
  objects: readonly KubernetesObject[],
  options: ApplySetOptions,
): Promise<{
  readonly changes: readonly AppliedChange[];
  readonly inventory: readonly ObjectReference[];
}> {
  const set = setOf(client, objects, { name: "applySet()", options });
  const { stages, inventory } = set;
  const { owner, signal } = options;
  const kept = await set.kept();
  const removed = set.removedOf(kept);
  // Before the first write, so that nothing is forgotten after a crash.
  await kept?.keep([...kept.objects, ...inventory]);
  const changes: AppliedChange[] = [];
  try {
    for (const stage of stages) {
      const isLast = stage === stages.at(-1);
      await applyStage(client, stage, { ...options, changes, isLast });
    }
    await pruneSet(client, removed, { owner, signal, changes });
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof ApplySetError
      ? error
      : new ApplySetError(error, { changes });
  }
  await kept?.keep(inventory);
  return { changes, inventory };
}

/**
 * Determines what {@linkcode applySet} would change, by dry runs. The action is
 * unknown for an object whose namespace or kind does not exist.
 *
 * @param client The client of the cluster.
 * @param objects The desired objects.
 * @param options Options of `applySet`.
 * @returns The change of each object, with the fields that differ.
 * @throws {TypeError | RangeError} As `applySet` does.
 * @throws {ApplySetError} If an object would be refused.
 *
 * @example Changes of a dry run
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { diffSet } from "@coracle/operator/workflows";
 *
 * const server = await ApiServer.start({ port: false });
 * const metadata = { namespace: "default", name: "a" };
 * const [change] = await diffSet(
 *   server.client,
 *   [{ apiVersion: "v1", kind: "ConfigMap", metadata }],
 *   { owner: { group: "sample.coracle.dev", name: "web" } },
 * );
 * if (change?.action !== "created") throw new Error("Unexpected change");
 * await server.stop();
 * ```
 */
export async function diffSet(
  client: Client,
  objects: readonly KubernetesObject[],
  options: Omit<ApplySetOptions, "concurrency" | "timeout" | "rules" | "clock">,
): Promise<readonly AppliedChange[]> {
  const set = setOf(client, objects, { name: "diffSet()", options });
  const { owner, signal } = options;
  const changes: AppliedChange[] = [];
  for (const { object, ...reference } of set.stages.flat()) {
    try {
      changes.push((await planObject(client, object, options)).change);
    } catch (error) {
      signal?.throwIfAborted();
      if (!ApiError.is(error) || !error.isNotFound) {
        throw new ApplySetError(error, { reference, changes });
      }
      changes.push({ reference, action: "unknown", fields: [] });
    }
  }
  const prune = { owner, signal, changes, dryRun: true };
  await pruneSet(client, set.removedOf(await set.kept()), prune);
  return changes;
}

interface Member extends ObjectReference {
  readonly object: KubernetesObject;
}

/** Checks the arguments of a set, and orders its objects. */
function setOf(
  client: Client,
  objects: readonly KubernetesObject[],
  { name, options }: {
    readonly name: string;
    readonly options: Parameters<typeof diffSet>[2];
  },
): {
  readonly stages: readonly (readonly Member[])[];
  readonly inventory: readonly ObjectReference[];
  /** Reads the inventory that is kept; undefined without one. */
  kept(): Promise<SetInventory | undefined>;
  /** Objects of the previous inventory that are no longer in the set. */
  removedOf(kept: SetInventory | undefined): readonly ObjectReference[];
} {
  checkOption(client, "object", { name: "client", subject: name });
  checkOption(objects, "array", { name: "objects", subject: name });
  checkOptions(options, APPLY_SET_RULES, name);
  const labels = ownerLabels(options.owner);
  const { early, previous = [], fieldManager, signal } = options;
  const inventory = inventoryKey(client, options, name);
  const members = membersById(
    objects.map((object) => ({ ...referenceOf(object), object })),
  );
  if (inventory && members.has(referenceId(inventoryReference(inventory)))) {
    throw new RangeError(
      `Cannot apply a set: its inventory cannot be in it: received ConfigMap ${
        keyText(inventory)
      }`,
    );
  }
  return {
    stages: applyStages([...members.values()], early),
    inventory: objects.map(referenceOf).sort(compareForApply),
    kept: async () =>
      inventory &&
      await readInventory(client, inventory, { labels, fieldManager, signal }),
    removedOf: (kept) =>
      (kept?.objects ?? previous).filter((one) =>
        !members.has(referenceId(one))
      ),
  };
}

const INVENTORY_RULES: OptionRules<
  NonNullable<ApplySetOptions["inventory"]>
> = { name: "name", namespace: "name?" };

/** Name and namespace of the ConfigMap of an inventory; undefined without one. */
function inventoryKey(
  client: Client,
  { inventory, previous }: Pick<ApplySetOptions, "inventory" | "previous">,
  subject: string,
): { readonly name: string; readonly namespace: string } | undefined {
  if (inventory === undefined) return undefined;
  checkOptions(inventory, INVENTORY_RULES, `${subject}, inventory`);
  if (previous !== undefined) {
    throw new TypeError(
      `Cannot read the options of ${subject}: "inventory" and "previous" are two inventories, so give one of them`,
    );
  }
  const { name, namespace = client.namespace } = inventory;
  return { name, namespace };
}

/** Applies one stage, and waits for it unless it is the last. */
async function applyStage(
  client: Client,
  stage: readonly Member[],
  options: ApplySetOptions & {
    readonly changes: AppliedChange[];
    readonly isLast: boolean;
  },
): Promise<void> {
  const { concurrency = 1, changes, isLast, signal, rules } = options;
  const { timeout = "60s", clock = systemClock } = options;
  const limit = new ConcurrencyLimit(concurrency);
  const named = async <T>(reference: ObjectReference, task: Promise<T>) => {
    try {
      return await task;
    } catch (error) {
      signal?.throwIfAborted();
      throw new ApplySetError(error, { reference, changes });
    }
  };
  // All are awaited, so that none continues after a failure.
  const planned = await Promise.allSettled(
    stage.map(async ({ object, ...reference }) => {
      await limit.enter();
      try {
        return await named(reference, planObject(client, object, options));
      } finally {
        limit.leave();
      }
    }),
  );
  const plans = planned.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
  const unready: ObjectReference[] = [];
  const definitions = new Map<ObjectReference, CrdObject>();
  for (const plan of plans) {
    const { change, live } = plan;
    const { reference } = change;
    const writing = executePlan(client, plan, { ...options, timeout, clock });
    const stored = await named(reference, writing) ?? live;
    changes.push(change);
    if (stored === undefined || isLast) continue;
    if (reference.kind === CRD_KIND.kind) {
      definitions.set(reference, stored as CrdObject);
    }
    const now = clock.wallTime();
    const object = asReferenced(stored, reference);
    const { status } = statusOf(object, { now, rules });
    if (status !== "Current") unready.push(reference);
  }
  await waitFor(client, unready, { timeout, signal, clock, rules });
  for (const [reference, definition] of definitions) {
    const discovered = deadline(
      (signal) => waitUntilDiscovered(client, definition, { clock, signal }),
      milliseconds(timeout, "timeout"),
      { clock, signal },
    );
    await named(reference, discovered);
  }
}

type PruneSetOptions = Parameters<typeof pruneSet>[2];

const RULES: OptionRules<PruneSetOptions> = {
  owner: "object",
  signal: "signal?",
  dryRun: "boolean?",
  changes: "array?",
};

/**
 * Deletes objects of a set, in reverse order: the whole set before its owner is
 * deleted, or the objects that are no longer in it.
 *
 * Only objects with the labels of the owner are deleted, and none with the
 * annotation `<group>/prune: disabled`. An object that does not exist counts as
 * deleted.
 *
 * @param client The client of the cluster.
 * @param references The objects: the `inventory` of an apply.
 * @param options The owner; `dryRun` only determines what would be deleted
 * (false by default); `changes` is a list to which the changes are added.
 * @returns The change of each object.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 * @throws {ApplySetError} If the server refuses a deletion.
 */
export async function pruneSet(
  client: Client,
  references: readonly ObjectReference[],
  options: Pick<ApplySetOptions, "owner" | "signal"> & {
    readonly dryRun?: boolean | undefined;
    readonly changes?: AppliedChange[] | undefined;
  },
): Promise<readonly AppliedChange[]> {
  const subject = "pruneSet()";
  checkOption(references, "array", { name: "references", subject });
  checkOptions(options, RULES, subject);
  ownerLabels(options.owner);
  const { signal, changes = [] } = options;
  for (const reference of references.toSorted(compareForApply).reverse()) {
    try {
      const action = await pruneObject(client, reference, options);
      changes.push({ reference, action, fields: [] });
    } catch (error) {
      signal?.throwIfAborted();
      throw new ApplySetError(error, { reference, changes });
    }
  }
  return changes;
}

async function pruneObject(
  client: Client,
  reference: ObjectReference,
  { owner, dryRun, signal }: PruneSetOptions,
): Promise<AppliedChange["action"]> {
  const kind = referencedKind(reference);
  const live = await client.find(kind, reference, { signal });
  if (live === undefined) return "deleted";
  const stays = !isOwnedBy(live, owner) ||
    hasPolicy(live, owner, ["prune", "disabled"]) ||
    hasPolicy(live, owner, ["apply", "ignore"]);
  if (stays) return "skipped";
  if (live.metadata.deletionTimestamp !== undefined) return "deleted";
  try {
    await client.delete(kind, reference, {
      dryRun,
      propagationPolicy: "Background",
      preconditions: { uid: live.metadata.uid },
      signal,
    });
  } catch (error) {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
  }
  return "deleted";
}

export interface ApplyPlan {
  readonly change: AppliedChange;
  /** Object to send. */
  readonly object: ApplyObject<KubernetesObject>;
  /** Current object; undefined if it does not exist. */
  readonly live: KubernetesObject | undefined;
  /** Whether the current object must be deleted first. */
  readonly replace: boolean;
}

/** Determines by a dry run what applying an object would change. */
async function planObject(
  client: Client,
  given: KubernetesObject,
  options: SetOptions,
): Promise<ApplyPlan> {
  const { owner, fieldManager, signal, force = false } = options;
  const reference = referenceOf(given);
  const kind = referencedKind(reference);
  const labels = { ...given.metadata.labels, ...ownerLabels(owner) };
  const metadata = appliedMetadata({ ...given.metadata, labels });
  const object = { ...given, metadata };
  const live = await client.find(kind, keyOf(given), { signal });
  const plan = (
    action: AppliedChange["action"],
    fields: AppliedChange["fields"] = [],
    replace = false,
  ) => ({ change: { reference, action, fields }, object, live, replace });
  const isSkipped = hasPolicy(given, owner, ["apply", "ignore"]) ||
    hasPolicy(live, owner, ["apply", "ignore"]) ||
    (live !== undefined && hasPolicy(given, owner, ["apply", "ifnotpresent"]));
  if (isSkipped) return plan("skipped");
  const dryRun = { dryRun: true, force: true, fieldManager, signal };
  try {
    const wanted = await client.apply(kind, object, dryRun);
    const fields = objectChanges(live, asReferenced(wanted, reference));
    const isEqual = live !== undefined && fields.length === 0;
    return isEqual
      ? plan("unchanged")
      : plan(live === undefined ? "created" : "configured", fields);
  } catch (error) {
    const mayReplace = (force && !HOLDERS.includes(reference.kind)) ||
      hasPolicy(given, owner, ["force", "enabled"]) ||
      hasPolicy(live, owner, ["force", "enabled"]);
    if (live === undefined || !mayReplace || !isImmutable(error)) throw error;
    return plan("created", [], true);
  }
}

/**
 * Executes a plan.
 *
 * @returns The stored object; undefined if nothing was written.
 */
async function executePlan(
  client: Client,
  { change, object, live, replace }: ApplyPlan,
  options: Pick<
    ApplySetOptions,
    "fieldManager" | "signal" | "timeout" | "clock"
  >,
): Promise<KubernetesObject | undefined> {
  const { fieldManager, signal, timeout, clock } = options;
  const { reference, action } = change;
  if (action !== "created" && action !== "configured") return undefined;
  const kind = referencedKind(reference);
  if (replace) {
    await client.delete(kind, reference, {
      propagationPolicy: "Background",
      preconditions: { uid: live?.metadata.uid },
      signal,
    });
    const gone = { desired: "NotFound", timeout, signal, clock } as const;
    await waitFor(client, [reference], gone);
  }
  return await client.apply(kind, object, {
    force: true,
    fieldManager,
    signal,
  });
}
