import { loadModule } from "../../core/clock.ts";
import { Buffer } from "node:buffer";
import {
  apiVersionOf,
  isResolved,
  type Kind,
  kindText,
  type ResolvedKind,
} from "../../core/api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  ObjectMeta,
  ReadonlyDeep,
} from "../../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import { textHash } from "../../core/controller/run/apply_memory.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import { getFrom } from "../../core/controller/watch/get_from.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import {
  kindAndGroup,
  PRIMARY_KIND_ANNOTATION,
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "../../core/controller/watch/mappers.ts";
import { managersLeft } from "../../core/controller/run/take_over.ts";
import {
  WatchingSource,
  type WatchSource,
  type WatchSourceOptions,
} from "../../core/controller/watch/watch_source.ts";
import { immediate, isPromise } from "../../core/callback.ts";
import type { DependentResult } from "./dependent.ts";
import type { MatchMemory } from "./field_match.ts";
import { UpdateLoops } from "./update_loop.ts";
import { ApiError } from "../../core/api/api_error.ts";

/**
 * Options of `kubernetesDependent`.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the object.
 * @typeParam W The type of an object that can be written.
 */
export interface KubernetesDependentOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
  W extends KubernetesObject = S,
> {
  /**
   * Desired state of the object; computed at most once a run. Include only the
   * fields to own: the server keeps the fields of other owners. The fields that
   * the server requires must be present, since it may create the object.
   */
  // A conditional type, so that TypeScript knows S where it reads the function:
  // otherwise it would take a value of an enum in its result for any text.
  readonly desired: S extends unknown ? (
      primary: P,
      ctx: Context<P>,
    ) => MaybePromise<
      & ReadonlyDeep<Omit<W, keyof KubernetesObject>>
      & Pick<ApplyObject<KubernetesObject>, keyof KubernetesObject>
    >
    : never;
  /**
   * Key of the object, for reads and deletions that must not compute the desired
   * state, such as those of a node that is not wanted. Defaults to the key of the
   * desired object, which is computed if the primary has any object of the kind.
   */
  readonly key?: ((primary: P) => ObjectKey) | undefined;
  /**
   * Relation of the object to its primary: an owner reference, so that
   * Kubernetes deletes it with the primary, or annotations, for objects in
   * another namespace or cluster-scoped ones.
   *
   * @default {"owner"}
   */
  readonly relation?: "owner" | "annotations" | undefined;
  /**
   * Behavior if the object already exists and is not owned: the run fails and
   * the object stays as it is, or its fields are taken over.
   *
   * @default {"refuse"}
   */
  readonly existing?: "refuse" | "adopt" | undefined;
  /**
   * Behavior when the object is no longer desired: it is deleted, or left in
   * place.
   *
   * @default {"delete"}
   */
  readonly unwanted?: "delete" | "orphan" | undefined;
  /**
   * Whether the object is deleted and created again when an immutable field
   * changes.
   *
   * @default {false}
   */
  readonly recreate?: boolean | undefined;
  /**
   * Field managers whose fields in the object become the controller's, as with its
   * option `takeOver`, in addition to those named there. Their objects need not
   * be adopted. With those of kubectl, such as `kubectl-edit`, what people add by
   * hand is removed.
   *
   * @default {[]}
   */
  readonly takeOver?: readonly string[] | undefined;
  /**
   * Propagation policy of deletions.
   *
   * @default {"Background"}
   */
  readonly propagationPolicy?:
    | "Background"
    | "Foreground"
    | "Orphan"
    | undefined;
  /**
   * Custom comparison of the desired and the stored object; undefined falls back
   * to the default comparison of owned fields.
   */
  readonly matches?:
    | ((desired: ApplyObject<S>, actual: S) => boolean | undefined)
    | undefined;
  /**
   * Event source that is shared by several dependents of one kind. By default
   * the dependent creates its own, by owner references or annotations. With a
   * source that reports no deletions, the 5,000 objects applied last, or more,
   * are known to be unchanged without a request.
   */
  readonly source?: EventSource<P, S> | undefined;
  /** Options of the event source that the dependent creates. */
  readonly watch?: WatchSourceOptions<P, S> | undefined;
}

/** A resourceVersion that no object has: an apply with it can only create. */
const ONLY_CREATE = "1";

/** Minimum number of objects to remember if the source reports no deletions. */
const MIN_REMEMBERED = 5_000;

/** Desired state of one object in a run. */
export interface DesiredResource<S extends KubernetesObject> {
  /** Object as the user returned it. */
  readonly object: ApplyObject<S>;
  /** UID of the primary. */
  readonly owner: string | undefined;
  readonly key: ObjectKey;
}

type DependentResourceOptions<S extends KubernetesObject> =
  & Omit<
    KubernetesDependentOptions<never, S>,
    "desired" | "key" | "source" | "watch"
  >
  & {
    /**
     * Kind and group of the primaries, for objects whose annotations have them. By
     * default those annotations are not compared.
     */
    readonly primaryKind?: (() => string) | undefined;
  };

/**
 * Reconciler of the objects of a dependent, for any number of primaries. It
 * compares before it writes, so that an object that matches costs no request.
 */
export class DependentResource<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  readonly #kind: Kind<S>;
  /** Kind and group: an object is the same one in all versions. */
  readonly #name: string;
  readonly #source: EventSource<P, S>;
  readonly #options: DependentResourceOptions<S>;
  /** Whether the source reports deletions, even by the garbage collector. */
  readonly #seesDeletions: boolean;
  #memory: MatchMemory | undefined;
  readonly #loops: UpdateLoops = new UpdateLoops();

  constructor(
    kind: Kind<S>,
    source: EventSource<P, S>,
    options: DependentResourceOptions<S> = {},
  ) {
    this.#kind = kind;
    this.#name = kindAndGroup(kind);
    this.#source = source;
    this.#options = options;
    this.#seesDeletions = "onGone" in source;
    if (this.#seesDeletions) {
      (source as WatchSource<P, S>).onGone((id) => this.#forget(id));
    }
  }

  /** Whether Kubernetes deletes the objects with their primary. */
  get garbageCollected(): boolean {
    return this.#options.relation !== "annotations";
  }

  get remembered(): number {
    return Math.max(this.#memory?.size ?? 0, this.#loops.size);
  }

  /** Determines the key and the owner of a desired object. */
  desired(
    object: object,
    { primary, ctx }: { readonly primary: P; readonly ctx: Context<P> },
  ): MaybePromise<DesiredResource<S>> {
    const kind = this.#kind;
    const { name, namespace = ctx.key.namespace } =
      namedObject(kind, object).metadata;
    const placed = ({ scope }: Pick<ResolvedKind, "scope">) => {
      const key = scope === "Cluster" ? { name } : { namespace, name };
      this.#checkPlace(key, ctx.key);
      const owner = primary.metadata.uid;
      return { object: object as ApplyObject<S>, owner, key };
    };
    return isResolved(kind)
      ? placed(kind)
      : ctx.client.resolve(kind).then(placed);
  }

  /** Checks that Kubernetes would delete an owned object with its primary. */
  #checkPlace({ namespace }: ObjectKey, { namespace: home }: ObjectKey): void {
    if (!this.garbageCollected || !home || namespace === home) return;
    throw invalid(
      this.#kind,
      `it must be in the namespace of its primary, ${home}, or the dependent have the option { relation: "annotations" }: received ${
        namespace === undefined ? "no namespace" : `namespace ${namespace}`
      }`,
    );
  }

  read(key: ObjectKey, ctx: Context<P>): MaybePromise<S | undefined> {
    return this.#source.get === undefined
      ? ctx.get(this.#kind, key.name, key.namespace)
      : getFrom(ctx, this.#source, key);
  }

  /** Reads an object, unless it does not belong to the primary. */
  async readOwn(
    key: ObjectKey,
    ctx: Context<P>,
    owner: string | undefined,
  ): Promise<S | undefined> {
    const actual = await this.read(key, ctx);
    return actual && this.#isOwn(actual, owner, ctx) ? actual : undefined;
  }

  /**
   * Creates or updates an object to match its desired state.
   *
   * @throws {ApiError} If the server refuses the object.
   * @throws {Error} If the object exists and is not owned.
   * @throws {UpdateLoopError} If another writer reverts each update.
   */
  async reconcile(
    { key, owner, object }: DesiredResource<S>,
    ctx: Context<P>,
  ): Promise<DependentResult<S>> {
    const { matches } = this.#options;
    const id = keyText(key);
    this.#claim(id, ctx);
    const read = this.read(key, ctx);
    let actual = isPromise(read) ? await read : read;
    const memory = this.#memory ?? await this.#createMemory();
    // The owner reference is applied, but is not part of the user's object.
    const desired = textHash(JSON.stringify([owner, object]));
    if (
      actual !== undefined && matches === undefined &&
      memory.isUntouched({ id, desired, actual })
    ) return { operation: "none", resource: actual };
    const intent = await this.#intent(object, ctx);
    const { fieldManager } = ctx;
    const match = { id, desired, intent: intent as unknown as S, fieldManager };
    if (actual === undefined) {
      try {
        const created = await this.#apply(intent, ctx, { create: true });
        memory.applied({ ...match, actual: created });
        return { operation: "created", resource: created };
      } catch (error) {
        if (!ApiError.is(error) || !error.isConflict) throw error;
        // It left the selection, for instance by an edit of its labels.
        actual = await ctx.client.find(this.#kind, key);
        if (actual === undefined) throw error;
      }
    }
    const decided = immediate(matches?.(intent, actual), "matches()");
    const isLeft = this.#isLeft(actual, ctx);
    const field = isLeft
      ? "metadata.managedFields"
      : decided === undefined
      ? memory.difference({ ...match, actual })
      : decided
      ? undefined
      : "";
    if (field === undefined) {
      this.#loops.settled(id);
      return { operation: "none", resource: actual };
    }
    const what = `${this.#kind.kind} ${id}`;
    if (
      this.#options.existing !== "adopt" && !isLeft &&
      !this.#isOwn(actual, owner, ctx) &&
      // Of an object with a controller, the apply says whose it is.
      !(this.garbageCollected && isControlled(actual))
    ) {
      throw new Error(
        `Cannot take over ${what}: it exists and does not belong to ${
          keyText(ctx.key)
        }, so choose another name, or set { existing: "adopt" }`,
      );
    }
    ctx.log.debug("Updating a dependent", { dependent: what, field });
    this.#loops.beforeWrite(id, { what, field, now: ctx.clock.now() });
    const updated = await this.#update(intent, actual, ctx).catch((error) => {
      this.#loops.failed(id);
      throw error;
    });
    memory.applied({ ...match, actual: updated });
    return { operation: "updated", resource: updated };
  }

  /** Whether fields of an object are to be taken over from other managers. */
  #isLeft(actual: S, { fieldManager }: Context<P>): boolean {
    const source = this.#source;
    if (!(source instanceof WatchingSource)) return false;
    const managers = source.takeOver;
    const left = { managers, fieldManager, subresource: undefined };
    return managers.length > 0 &&
      (managersLeft(actual, left)?.length ?? 0) > 0;
  }

  /** Checks that no other dependent makes an object in the same run. */
  #claim(id: string, ctx: Context<P>): void {
    if (this.#isOfOther(id, ctx)) {
      throw new Error(
        `Cannot reconcile ${
          kindText(this.#kind)
        } ${id}: another dependent makes or deletes it in the same run, so give it another name, or each its own watch: { labelSelector }`,
      );
    }
    ctx.attributes.set(`${this.#name} ${id}`, this);
  }

  #isOfOther(id: string, { attributes }: Context<P>): boolean {
    const maker = attributes.get(`${this.#name} ${id}`);
    return maker !== undefined && maker !== this;
  }

  /**
   * Deletes an object, unless it is to be orphaned, does not exist or does not
   * belong to the primary.
   *
   * @param owner UID of the primary.
   */
  async delete(
    key: ObjectKey,
    ctx: Context<P>,
    owner: string | undefined,
  ): Promise<void> {
    this.#forget(keyText(key));
    if (this.#options.unwanted === "orphan") return;
    // Of two nodes for one object, the one that is wanted keeps it.
    if (this.#isOfOther(keyText(key), ctx)) return;
    const actual = await this.readOwn(key, ctx, owner);
    if (actual === undefined || actual.metadata.deletionTimestamp) return;
    await this.#delete(actual, key, ctx);
  }

  /**
   * Deletes an object of a bulk that is not desired; a dependent that makes it
   * later in the same run fails.
   */
  async prune(
    key: ObjectKey,
    ctx: Context<P>,
    owner: string | undefined,
  ): Promise<void> {
    const id = keyText(key);
    if (this.#options.unwanted !== "orphan" && !this.#isOfOther(id, ctx)) {
      ctx.attributes.set(`${this.#name} ${id}`, this);
    }
    await this.delete(key, ctx, owner);
  }

  /** Whether an object belongs to the primary, or was applied without an owner. */
  #isOwn(
    actual: S,
    owner: string | undefined,
    { key, fieldManager }: Context<P>,
  ): boolean {
    const { ownerReferences, annotations } = actual.metadata;
    if (ownerReferences?.some(({ uid }) => uid === owner)) return true;
    if (isControlled(actual)) return false;
    const name = annotations?.[PRIMARY_NAME_ANNOTATION];
    const namespace = annotations?.[PRIMARY_NAMESPACE_ANNOTATION];
    if (name) {
      const kind = this.#options.primaryKind?.();
      return name === key.name && namespace === key.namespace &&
        (kind === undefined || kind === annotations[PRIMARY_KIND_ANNOTATION]);
    }
    return actual.metadata.managedFields?.some(({ manager, operation }) =>
      manager === fieldManager && operation === "Apply"
    ) ?? false;
  }

  async #delete(actual: S, key: ObjectKey, ctx: Context<P>): Promise<void> {
    await ctx.delete(this.#kind, key, {
      uid: actual.metadata.uid,
      propagationPolicy: this.#options.propagationPolicy,
    });
  }

  /** Loads the comparison when the first object is reconciled. */
  async #createMemory(): Promise<MatchMemory> {
    const { MatchMemory } = await loadModule(import("./field_match.ts"));
    const limit = this.#seesDeletions ? undefined : MIN_REMEMBERED;
    return this.#memory ??= MatchMemory.ofKind(this.#kind, limit);
  }

  /** Forgets an object, or all if no id is given. */
  #forget(id: string | undefined): void {
    this.#memory?.forget(id);
    this.#loops.settled(id);
  }

  /** Builds the object to apply, with its relation to the primary. */
  #intent(object: ApplyObject<S>, ctx: Context<P>): Promise<ApplyObject<S>> {
    const desired = desiredObject(this.#kind, object);
    if (this.garbageCollected) return ctx.intent(this.#kind, desired);
    const { namespace, name } = ctx.key;
    desired.metadata.annotations = {
      ...desired.metadata.annotations,
      [PRIMARY_NAME_ANNOTATION]: name,
      ...(namespace && { [PRIMARY_NAMESPACE_ANNOTATION]: namespace }),
    };
    return ctx.intent(this.#kind, desired, { owned: false });
  }

  async #update(
    intent: ApplyObject<S>,
    actual: S,
    ctx: Context<P>,
  ): Promise<S> {
    try {
      return await this.#apply(intent, ctx, { create: false });
    } catch (error) {
      if (!this.#options.recreate || !isImmutable(error)) throw error;
    }
    const key = keyOf(actual);
    ctx.log.info("Recreating a dependent because a field is immutable", {
      kind: this.#kind.kind,
      object: keyText(key),
    });
    await this.#delete(actual, key, ctx);
    return await this.#apply(intent, ctx, { create: true }).catch((cause) => {
      if (!ApiError.is(cause) || !cause.isConflict) throw cause;
      throw new Error(
        `Cannot recreate ${this.#kind.kind} ${
          keyText(key)
        }: it still exists, as when finalizers keep it`,
        { cause },
      );
    });
  }

  #apply(
    intent: ApplyObject<S>,
    ctx: Context<P>,
    { create }: { readonly create: boolean },
  ): Promise<S> {
    const onlyCreate = create && this.#options.existing !== "adopt";
    const metadata = { ...intent.metadata, resourceVersion: ONLY_CREATE };
    const object = onlyCreate ? { ...intent, metadata } : intent;
    // The intent was compared, and its annotations were set.
    const owned = this.garbageCollected ? undefined : false;
    return ctx.apply(this.#kind, object, { owned, match: false });
  }
}

/** Whether an object has a controlling owner. */
function isControlled({ metadata }: KubernetesObject): boolean {
  return metadata.ownerReferences?.some(({ controller }) => controller) ??
    false;
}

/** Checks that a desired object has a name, and no other kind. */
function namedObject<T extends KubernetesObject>(
  kind: Kind<T>,
  desired: unknown,
): {
  readonly metadata: { readonly name: string; readonly namespace?: string };
} {
  if (!isJsonObject(desired)) {
    throw invalid(kind, `it must be an object: received ${typeof desired}`);
  }
  const { metadata, kind: given = kind.kind } = desired;
  const { apiVersion = apiVersionOf(kind) } = desired;
  if (given !== kind.kind || apiVersion !== apiVersionOf(kind)) {
    throw invalid(
      kind,
      `it must be of the kind ${
        kindText(kind)
      }: received ${apiVersion} ${given}`,
    );
  }
  const name = isJsonObject(metadata) ? metadata["name"] : undefined;
  if (typeof name !== "string" || name === "") {
    throw invalid(kind, `it must have a name: received ${name}`);
  }
  return desired as unknown as ReturnType<typeof namedObject>;
}

function invalid(kind: Kind, why: string): TypeError {
  return new TypeError(`Cannot use a desired ${kind.kind}: ${why}`);
}

/**
 * Normalizes a desired object for comparing and applying: with apiVersion and
 * kind, without the metadata that only the server sets, and with the
 * `stringData` of a Secret as `data`.
 *
 * @throws {TypeError} If it is no object with a name, or has a status, which
 * only its own controller may write.
 */
export function desiredObject<T extends KubernetesObject>(
  kind: Kind<T>,
  desired: ApplyObject<T>,
): ApplyObject<T> {
  const { metadata, status, stringData, ...rest } = namedObject(
    kind,
    desired,
  ) as ReturnType<typeof namedObject> & {
    readonly status?: unknown;
    readonly stringData?: unknown;
  };
  if (status !== undefined) throw invalid(kind, "it must not have a status");
  // The JSON round trip removes undefined fields, as on the wire.
  const object = JSON.parse(JSON.stringify({
    ...rest,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: appliedMetadata(metadata),
  }));
  if (isJsonObject(stringData)) {
    object.data = { ...object.data };
    for (const [name, value] of Object.entries(stringData)) {
      object.data[name] = Buffer.from(String(value)).toString("base64");
    }
  }
  return object;
}

/** Metadata fields that only the server sets. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  "creationTimestamp",
  "deletionTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
]);

/** Metadata without the fields that only the server sets, for an apply. */
export function appliedMetadata<M extends Partial<ObjectMeta>>(metadata: M): M {
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) =>
      value !== undefined && !SERVER_METADATA.has(name)
    ),
  ) as M;
}

/** Pattern of the messages of servers that refuse to change an immutable field. */
const IMMUTABLE =
  /immutable|(?:may not|cannot) (?:be )?change|may not add or remove|forbidden: updates to/i;

/** Whether the server refused to change an immutable field. */
export function isImmutable(error: unknown): boolean {
  return ApiError.is(error) && (error.isInvalid || error.isConflict) &&
    IMMUTABLE.test(error.message);
}
