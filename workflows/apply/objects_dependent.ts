import { ApiError } from "../../core/api/api_error.ts";
import {
  apiVersionOf,
  checkKind,
  type Kind,
  kindText,
  parseApiVersion,
  type ResolvedKind,
  untyped,
} from "../../core/api/kind.ts";
import { isLabelValue } from "../../core/api/label_selector.ts";
import type { KubernetesObject, UntypedObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import {
  checkOptions,
  type OptionRules,
  typeText,
} from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  EventSource,
  NamespaceSet,
} from "../../core/controller/event_source.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import {
  kindAndGroup,
  ownerAnnotations,
} from "../../core/controller/watch/mappers.ts";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import {
  attemptAll,
  BULK_CONCURRENCY,
  type Dependent,
  type DependentResult,
  type KubernetesDependent,
  operationOf,
  type Verdict,
} from "../dependents/dependent.ts";
import { noteSet } from "../dependents/kubernetes_dependent.ts";
import { statusOf } from "../kstatus/status_of.ts";
import { type StatusRule, WAITING_RULES } from "../kstatus/status_rules.ts";
import {
  asReferenced,
  type ObjectReference,
  referenceId,
  referenceText,
} from "../kstatus/wait_for.ts";
import { applyStages, deleteStages, membersById } from "./apply_order.ts";
import { manifestObjects } from "./manifests.ts";
import { SET_LABEL, SetWatches, type WatchedKind } from "./set_watches.ts";

/** Options of {@linkcode objectsDependent}. */
export interface ObjectsDependentOptions<P extends KubernetesObject> {
  /**
   * Objects of the set, of any kinds, with apiVersion and kind: literals, those of
   * `fromYaml`, `fromFiles` or `fromCommand`, or `toJson()` of a cdk8s chart. Lists
   * count as the objects in them; a status is left out. It is called once a run.
   */
  readonly objects: (
    primary: P,
    ctx: Context<P>,
  ) => MaybePromise<Iterable<UntypedObject | KubernetesObject>>;
  /**
   * Name of the set, at most 50 characters, in the label `coracle.dev/set` of its
   * objects. Several sets of one kind of primaries need different ones.
   *
   * @default {"objects"}
   */
  readonly name?: string | undefined;
  /**
   * Kinds that the set may have: `coracle manifests` grants the rights for them, and
   * their watches start with the controller. Other kinds are watched from the first
   * run that has them, for which the operator needs the rights too.
   *
   * @default {[]}
   */
  readonly kinds?: readonly Kind[] | undefined;
  /**
   * Namespace of objects without one. Defaults to that of the primary; for a
   * cluster-scoped primary it is needed unless all objects name theirs.
   */
  readonly namespace?: ((primary: P) => string) | undefined;
  /**
   * Namespaces in which the objects are watched; `"inherited"` follows those of the
   * controller. An object in another namespace is refused.
   *
   * @default {"inherited"}
   */
  readonly namespaces?: "inherited" | NamespaceSet | undefined;
  /**
   * Whether objects that leave the set are deleted. If not, they stay until the
   * whole set is deleted.
   *
   * @default {true}
   */
  readonly prune?: boolean | undefined;
  /**
   * When the set is ready, once all its objects are applied: with `"kstatus"` when
   * all are Current by `statusOf`, and Jobs have ended; or as a function says.
   *
   * @default {"kstatus"}
   */
  readonly readyWhen?:
    | "kstatus"
    | Dependent<P, ReadonlyMap<string, UntypedObject>>["readyWhen"];
  /**
   * Order in which the objects are applied: with `"install"` definitions, classes and
   * namespaces first, which must be Current before the next stage begins, and
   * then the others by their kinds; with `"given"` that of the list, without waits.
   *
   * @default {"install"}
   */
  readonly order?: "install" | "given" | undefined;
  /** Custom status rules, as for `statusOf`. By default there are none. */
  readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  /**
   * Behavior if an object already exists and does not belong to the set: the run
   * fails and the object stays as it is, or its fields are taken over.
   *
   * @default {"refuse"}
   */
  readonly existing?: "refuse" | "adopt" | undefined;
  /**
   * Whether an object is deleted and created again when an immutable field changes;
   * never a definition, a namespace, a volume or a claim.
   *
   * @default {false}
   */
  readonly recreate?: boolean | undefined;
}

const RULES: OptionRules<ObjectsDependentOptions<never>> = {
  objects: "function",
  name: "name?",
  kinds: "array?",
  namespace: "function?",
  namespaces: "any?",
  prune: "boolean?",
  readyWhen: {
    type: "any?",
    check(value, subject) {
      if (value === "kstatus" || typeof value === "function") return;
      throw new TypeError(
        `Cannot read the options of ${subject}: "readyWhen" must be "kstatus" or a function: received ${
          typeText(value)
        }`,
      );
    },
  },
  order: ["install", "given", undefined],
  rules: "map?",
  existing: ["refuse", "adopt", undefined],
  recreate: "boolean?",
};

/**
 * Creates a dependent that is a whole set of objects of any kinds for each primary,
 * also of kinds that are not known before: the output of `helm template`, a folder
 * of YAML, a cdk8s chart.
 *
 * - Objects are applied in the order of an installation: first definitions and
 *   namespaces, then classes, then the others by their kinds. A stage that is not
 *   Current yet ends the run; the watches begin the next one when it is.
 * - An object is compared with its cached state before it is written, so that a set
 *   that matches costs no request. What others change or delete is mended at once:
 *   each kind has one watch, which holds only objects of sets.
 * - Objects that leave the set are deleted after the others were applied. An object
 *   is the same one in all versions of its kind.
 * - Objects are owned by the primary where Kubernetes allows it. With the primary all
 *   of them are deleted, custom resources first, definitions and namespaces last, and
 *   the primary waits until they are gone. An object with the annotation
 *   `helm.sh/resource-policy: keep` is never deleted.
 * - One that the server refuses, or for which a right is missing, does not keep the
 *   others of its stage from being applied.
 *
 * An annotation of the primary, `coracle.dev/kinds-of-<name>`, lists the kinds of its
 * set, so that nothing is forgotten after a restart. The resource is a map by
 * `Kind.group/namespace/name`, such as `Deployment.apps/default/web`.
 *
 * @param options The objects, and how they are reconciled.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 *
 * @example A set of two objects
 * ```ts
 * import { objectsDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const set = objectsDependent({
 *   objects: ({ metadata: { name } }) => [
 *     { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } },
 *     { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: {} },
 *   ],
 * });
 * const flow = new Workflow().add("objects", set);
 * ```
 */
export function objectsDependent<P extends KubernetesObject>(
  options: ObjectsDependentOptions<P>,
): KubernetesDependent<P, ReadonlyMap<string, UntypedObject>> {
  const subject = "objectsDependent()";
  checkOptions(options, RULES, subject);
  const { name = "objects", kinds = [] } = options;
  for (const kind of kinds) checkKind(kind, `${subject}, kinds`);
  if (!isLabelValue(name) || name.length > MAX_NAME) {
    throw new RangeError(
      `Cannot read the options of ${subject}: "name" must be a label value of at most ${MAX_NAME} characters: received ${
        JSON.stringify(name)
      }`,
    );
  }
  const set = new ObjectSet(options, name);
  noteSet(set, name);
  return set;
}

/** Maximum length of the name of a set, as it is a part of an annotation's name. */
const MAX_NAME = 50;

/** Annotation of Helm charts that keeps an object from being deleted. */
const POLICY_ANNOTATION = "helm.sh/resource-policy";

/** Pause before a kind is looked up that its definition should serve, in ms. */
const SERVED_CHECK_MS = 1_000;

/** Pause before the objects of a deleted set are looked up again, in ms. */
const DELETED_CHECK_MS = 30_000;

/** Maximum number of objects that a message names. */
const NAMED_OBJECTS = 3;

/** Object of a set, with its namespace and its marks. */
interface Member extends ObjectReference {
  readonly object: UntypedObject;
  /** Kind of the object; or the error if the server does not serve it. */
  readonly served: { readonly kind: Kind } | { readonly error: unknown };
  /** Whether it has an owner reference to the primary. */
  readonly isOwned: boolean;
}

/** Object that exists, and has the marks of a set. */
interface Found<P extends KubernetesObject> extends ObjectReference {
  readonly object: UntypedObject;
  readonly watched: WatchedKind<P>;
}

/** A set in one run. */
interface Run<P extends KubernetesObject> {
  readonly primary: P;
  readonly ctx: Context<P>;
}

type Results = Map<string, DependentResult<UntypedObject>>;

class ObjectSet<P extends KubernetesObject>
  implements KubernetesDependent<P, ReadonlyMap<string, UntypedObject>> {
  readonly sources: readonly EventSource<P>[];
  readonly #options: ObjectsDependentOptions<P>;
  readonly #name: string;
  readonly #annotation: string;
  readonly #watches: SetWatches<P>;
  readonly #rules: ReadonlyMap<string, StatusRule>;
  readonly #readyWhen: NonNullable<ObjectsDependentOptions<P>["readyWhen"]>;

  constructor(options: ObjectsDependentOptions<P>, name: string) {
    const { kinds = [], namespaces = "inherited", rules = [] } = options;
    const { existing, recreate, readyWhen = "kstatus" } = options;
    this.#options = options;
    this.#name = name;
    this.#annotation = `coracle.dev/kinds-of-${name}`;
    this.#readyWhen = readyWhen;
    this.#rules = new Map([...WAITING_RULES, ...rules]);
    const resource = { existing, recreate };
    this.#watches = new SetWatches({ name, kinds, namespaces, resource });
    this.sources = [this.#watches, ...this.#watches.declared];
  }

  async read(
    primary: P,
    ctx: Context<P>,
  ): Promise<ReadonlyMap<string, UntypedObject> | undefined> {
    const found = await this.#found({ primary, ctx });
    return found.size === 0 ? undefined : new Map(
      Array.from(found.values(), (one) => [nameOf(one), one.object]),
    );
  }

  async reconcile(
    primary: P,
    ctx: Context<P>,
  ): Promise<DependentResult<ReadonlyMap<string, UntypedObject>>> {
    const run = { primary, ctx };
    const objects = manifestObjects(
      await this.#options.objects(primary, ctx),
      `the objects of the set "${this.#name}"`,
    );
    const definitions = definedKinds(objects);
    const members = membersById(
      await this.#membersOf(objects, definitions, run),
    );
    const kinds = new Set(Array.from(members.values(), kindOf));
    // Before the first write, so that nothing is forgotten after a crash.
    await this.#record(new Set([...kinds, ...this.#recorded(run)]), run);
    const results: Results = new Map();
    const stages = this.#options.order === "given"
      ? [[...members.values()]]
      : applyStages([...members.values()]);
    let pending: Verdict | undefined;
    for (const stage of stages) {
      pending = await this.#applyStage(stage, { results, definitions, run });
      if (pending === undefined && stage !== stages.at(-1)) {
        pending = this.#verdict(stage, results, ctx);
      }
      if (pending !== undefined) break;
    }
    if (pending === undefined) await this.#prune(members, kinds, run);
    if (pending === undefined && this.#readyWhen === "kstatus") {
      pending = this.#verdict([...members.values()], results, ctx);
    }
    ctx.attributes.set(this, pending);
    const resource = new Map<string, UntypedObject>();
    for (const [id, member] of members) {
      const object = results.get(id)?.resource;
      if (object !== undefined) {
        resource.set(nameOf(member), asReferenced(object, member));
      }
    }
    return { operation: operationOf(results.values()), resource };
  }

  async readyWhen(
    context: Parameters<
      NonNullable<
        Dependent<P, ReadonlyMap<string, UntypedObject>>["readyWhen"]
      >
    >[0],
  ): Promise<boolean | Verdict> {
    const pending = context.ctx.attributes.get(this) as Verdict | undefined;
    if (pending !== undefined) return pending;
    const readyWhen = this.#readyWhen;
    return readyWhen === "kstatus" ? true : await readyWhen(context);
  }

  async delete(primary: P, ctx: Context<P>): Promise<void> {
    const run = { primary, ctx };
    const found = await this.#found(run);
    if (found.size > 0) {
      await this.#remove([...found.values()], run);
      return;
    }
    // A deleted primary releases its watches when it is gone.
    if (primary.metadata.deletionTimestamp !== undefined) return;
    await this.#record(new Set(), run);
    this.#watches.release(keyText(ctx.key), new Set());
  }

  deletedWhen(
    { resource }: {
      readonly resource: ReadonlyMap<string, UntypedObject> | undefined;
    },
  ): Verdict {
    if (resource === undefined) return { met: true };
    const message = `Waiting until they are gone: ${
      named([...resource.keys()])
    }`;
    // The end of a version of a kind, whose objects must be found again, is no event.
    return { met: false, message, recheckAfter: DELETED_CHECK_MS };
  }

  /** Places objects in namespaces, and marks them as those of the set. */
  async #membersOf(
    objects: readonly UntypedObject[],
    definitions: ReadonlyMap<string, ResolvedKind>,
    { primary, ctx }: Run<P>,
  ): Promise<readonly Member[]> {
    const { primaryKind, namespaces } = this.#watches;
    const marks = ownerAnnotations(ctx.key, primaryKind);
    const members: Member[] = [];
    for (const { metadata, ...fields } of objects) {
      const { apiVersion = "", kind = "" } = fields;
      const names = { ...parseApiVersion(apiVersion), kind };
      const served = await this.#servedKind(names, definitions, ctx);
      const given = metadata.namespace || undefined;
      const scope = "kind" in served ? served.kind.scope : undefined;
      const namespace = scope === "Cluster"
        ? undefined
        : given ?? (scope && this.#namespaceOf(primary, ctx, metadata.name));
      const { name, annotations } = metadata;
      const { namespace: home } = ctx.key;
      if (
        name === ctx.key.name && namespace === home &&
        kindAndGroup(names) === kindAndGroup(primaryKind)
      ) {
        throw new RangeError(
          `Cannot apply the set "${this.#name}": its primary cannot be in it: received ${kind} ${
            keyText(ctx.key)
          }`,
        );
      }
      if (
        namespace !== undefined && namespaces !== "all" &&
        !namespaces.includes(namespace)
      ) {
        throw new RangeError(
          `Cannot apply the set "${this.#name}": it must watch the namespaces of its objects, so add this one to the option "namespaces": received ${kind} ${
            keyText({ namespace, name })
          }`,
        );
      }
      const { namespace: _, ...others } = metadata;
      const marked = {
        ...others,
        ...(namespace !== undefined && { namespace }),
        labels: { ...metadata.labels, [SET_LABEL]: this.#name },
        annotations: { ...annotations, ...marks },
      };
      members.push({
        apiVersion,
        kind,
        name,
        ...(namespace !== undefined && { namespace }),
        served,
        isOwned: !isKept(marked) &&
          (home === undefined || namespace === home),
        object: { ...fields, metadata: marked } as UntypedObject,
      });
    }
    return members;
  }

  /** Kind of objects, by a definition of the set or by discovery. */
  async #servedKind(
    names: Kind,
    definitions: ReadonlyMap<string, ResolvedKind>,
    { client }: Context<P>,
  ): Promise<Member["served"]> {
    try {
      const kind = definitions.get(kindText(names)) ??
        await client.resolve(untyped(names));
      return { kind };
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
      return { error };
    }
  }

  #namespaceOf(primary: P, { key }: Context<P>, name: string): string {
    const namespace = this.#options.namespace === undefined
      ? key.namespace
      : immediate(this.#options.namespace(primary), "namespace()");
    if (typeof namespace === "string" && namespace !== "") return namespace;
    throw new TypeError(
      `Cannot apply the set "${this.#name}": an object without a namespace needs the option "namespace": received ${name} for a cluster-scoped primary`,
    );
  }

  /**
   * Applies the objects of a stage, those of one kind after those of another.
   *
   * @returns Why the set has to wait, if a kind is not served yet.
   */
  async #applyStage(
    stage: readonly Member[],
    { results, definitions, run: { primary, ctx } }: {
      readonly results: Results;
      readonly definitions: ReadonlyMap<string, ResolvedKind>;
      readonly run: Run<P>;
    },
  ): Promise<Verdict | undefined> {
    const watched = new Map<string, WatchedKind<P>>();
    const awaited: string[] = [];
    const byKind = Map.groupBy(stage, kindOf);
    const openings = Array.from(byKind, ([text, [first]]) => async () => {
      const { served } = first!;
      if ("error" in served) throw served.error;
      try {
        watched.set(text, await this.#watches.open(served.kind, ctx));
      } catch (error) {
        const isDefined = definitions.has(kindText(served.kind));
        if (!isDefined || !ApiError.is(error) || !error.isNotFound) throw error;
        awaited.push(first!.kind);
      }
    });
    const groups = this.#options.order === "given"
      ? stage.map((member) => [member])
      : [...byKind.values()];
    const writes = groups.map((group) =>
      group.map((member) => async () => {
        const resource = watched.get(kindOf(member))?.resource(member.isOwned);
        if (resource === undefined) return; // Its opening has failed.
        const desired = await resource.desired(member.object, { primary, ctx });
        results.set(
          referenceId(member),
          await resource.reconcile(desired, ctx),
        );
      })
    );
    await attemptAll([openings, ...writes], {
      signal: ctx.signal,
      concurrency: BULK_CONCURRENCY,
    });
    return awaited.length === 0 ? undefined : {
      met: false,
      message: `Waiting until the kinds are served: ${named(awaited)}`,
      recheckAfter: SERVED_CHECK_MS,
    };
  }

  /** Why objects are not Current; undefined if all are. */
  #verdict(
    members: readonly Member[],
    results: Results,
    { clock }: Context<P>,
  ): Verdict | undefined {
    const now = clock.wallTime();
    const unready = members.flatMap((member) => {
      const object = results.get(referenceId(member))?.resource;
      if (object === undefined) return [];
      const given = asReferenced(object, member);
      const found = statusOf(given, { now, rules: this.#rules });
      return found.status === "Current" ? [] : [{ member, ...found }];
    });
    if (unready.length === 0) return undefined;
    const texts = unready.map(({ member, status, message }) =>
      `${referenceText(member)} is ${status}${message && ` (${message})`}`
    );
    const detail = unready.map(({ member, ...status }) => {
      const { apiVersion, kind, namespace, name } = member;
      return { apiVersion, kind, namespace, name, ...status };
    });
    return { met: false, message: named(texts), detail };
  }

  /** Deletes the objects that have left the set, and stops watches without use. */
  async #prune(
    members: ReadonlyMap<string, Member>,
    kinds: ReadonlySet<string>,
    run: Run<P>,
  ): Promise<void> {
    const left = [...await this.#found(run)]
      .flatMap(([id, one]) => members.has(id) ? [] : [one]);
    if (this.#options.prune !== false) await this.#remove(left, run);
    const used = new Set([...kinds, ...left.map(kindOf)]);
    await this.#record(used, run);
    const opened = Array.from(used, (text) => kindText(kindFrom(text)));
    this.#watches.release(keyText(run.ctx.key), new Set(opened));
  }

  /** Deletes objects of the first stage that has any. */
  async #remove(
    objects: readonly Found<P>[],
    { primary, ctx }: Run<P>,
  ): Promise<void> {
    const [stage = []] = deleteStages(objects);
    const { uid } = primary.metadata;
    const { signal } = ctx;
    const groups = [...Map.groupBy(stage, kindOf).values()];
    await attemptAll(
      groups.map((group) =>
        group.map(({ object, watched }) => async () => {
          const isOwned = object.metadata.ownerReferences
            ?.some((owner) => owner.uid === uid) ?? false;
          const resource = watched.resource(isOwned);
          await resource.prune(keyOf(object), ctx, uid);
        })
      ),
      { signal, concurrency: BULK_CONCURRENCY },
    );
  }

  /** Objects of the set that exist, by their ids, without those that are kept. */
  async #found(run: Run<P>): Promise<Map<string, Found<P>>> {
    const { primary, ctx } = run;
    const kinds = new Map<string, Kind>();
    for (const { kind } of this.#watches.declared) {
      kinds.set(kindText(kind), kind);
    }
    for (const text of this.#recorded(run)) {
      const kind = kindFrom(text);
      kinds.set(kindText(kind), kind);
    }
    const opened = await Promise.all(
      Array.from(kinds.values(), (kind) => this.#openKnown(kind, ctx)),
    );
    const found = new Map<string, Found<P>>();
    for (const watched of opened) {
      if (watched === undefined) continue;
      const { kind } = watched.kind;
      const apiVersion = apiVersionOf(watched.kind);
      for (const object of await watched.source.secondaries(primary)) {
        if (isKept(object.metadata) || isOfOther(object, primary)) continue;
        const reference = { apiVersion, kind, ...keyOf(object) };
        found.set(referenceId(reference), {
          ...reference,
          watched,
          object: asReferenced(object, reference),
        });
      }
    }
    return found;
  }

  /** Opens a kind that the set had, in another version if that is gone. */
  async #openKnown(
    kind: Kind,
    ctx: Context<P>,
  ): Promise<WatchedKind<P> | undefined> {
    try {
      return await this.#watches.open(kind, ctx);
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
    }
    const other = (await ctx.client.resources()).find((one) =>
      one.group === kind.group && one.kind === kind.kind
    );
    return other && await this.#watches.open(other, ctx);
  }

  /** Kinds that the set of a primary has, or had, as `apiVersion/Kind`. */
  #recorded({ primary, ctx }: Run<P>): readonly string[] {
    const { metadata } = ctx.current ?? primary;
    const text = metadata.annotations?.[this.#annotation] ?? "";
    return text.split(",").filter((one) => RECORDED_KIND.test(one));
  }

  /** Writes the kinds of a set into the annotation of its primary. */
  async #record(kinds: ReadonlySet<string>, run: Run<P>): Promise<void> {
    const text = [...kinds].sort().join();
    if (text === this.#recorded(run).join()) return;
    const { ctx } = run;
    await ctx.patch(this.#watches.primaryKind as Kind, ctx.key, {
      metadata: { annotations: { [this.#annotation]: text || null } },
    });
  }
}

const RECORDED_KIND = /^(?:[a-z0-9.-]+\/)?[a-z0-9-]+\/[A-Za-z0-9-]+$/;

/** Text of the kind of an object: `apps/v1/Deployment`. */
function kindOf({ apiVersion, kind }: ObjectReference): string {
  return `${apiVersion}/${kind}`;
}

function kindFrom(text: string): Kind {
  const slash = text.lastIndexOf("/");
  const kind = text.slice(slash + 1);
  return { ...parseApiVersion(text.slice(0, slash)), kind };
}

/** Key of an object in the map of a set. */
function nameOf(reference: ObjectReference): string {
  const { apiVersion, kind } = reference;
  const { group } = parseApiVersion(apiVersion);
  return `${kindAndGroup({ group, version: "", kind })}/${keyText(reference)}`;
}

function isKept(
  { annotations }: Pick<KubernetesObject["metadata"], "annotations">,
): boolean {
  return annotations?.[POLICY_ANNOTATION] === "keep";
}

/** Whether an object has another controlling owner, which has taken it over. */
function isOfOther(
  object: KubernetesObject,
  primary: KubernetesObject,
): boolean {
  return object.metadata.ownerReferences?.some(({ controller, uid }) =>
    controller && uid !== primary.metadata.uid
  ) ?? false;
}

/** First texts of a list, and the number of the others. */
function named(texts: readonly string[]): string {
  const hidden = texts.length - NAMED_OBJECTS;
  const some = texts.slice(0, NAMED_OBJECTS).join(", ");
  return hidden > 0 ? `${some} and ${hidden} more` : some;
}

/** Kinds that the CustomResourceDefinitions among objects define, by their text. */
function definedKinds(
  objects: readonly UntypedObject[],
): ReadonlyMap<string, ResolvedKind> {
  const kinds = new Map<string, ResolvedKind>();
  for (const { apiVersion = "", kind, spec } of objects) {
    const { group } = parseApiVersion(apiVersion);
    if (kind !== CRD_KIND.kind || group !== CRD_KIND.group) continue;
    const { group: defined, scope, names, versions } = Object(spec);
    if (!Array.isArray(versions)) continue;
    const { kind: of, plural } = Object(names) as Record<string, unknown>;
    for (const { name: version } of versions.map(Object)) {
      const texts = [defined, version, of, plural];
      if (!texts.every((text) => typeof text === "string" && text)) continue;
      const described = untyped({
        group: defined,
        version,
        kind: String(of),
        plural: String(plural),
        scope: scope === "Cluster" ? "Cluster" : "Namespaced",
      }) as ResolvedKind;
      kinds.set(kindText(described), described);
    }
  }
  return kinds;
}
