import { ApiError } from "../../core/api/api_error.ts";
import type { Kind } from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/reconciler.ts";
import {
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "../../sources/mappers.ts";
import { desiredObject } from "./desired_object.ts";
import type { DependentResult } from "./dependent.ts";
import type { MatchMemory } from "./match_memory.ts";
import { UpdateLoops } from "./update_loop.ts";

/** How objects in the cluster are made, changed and deleted. */
export interface KeepOptions {
  /**
   * How an object knows its primary: by an owner reference, so that Kubernetes
   * deletes it with the primary, or by annotations, for objects in another
   * namespace or in none.
   *
   * @default {"owner"}
   */
  readonly relation?: "owner" | "annotations" | undefined;
  /**
   * What happens when the object exists already and is not among ours: it stays
   * as it is and the run fails, or its fields become ours.
   *
   * @default {"refuse"}
   */
  readonly existing?: "refuse" | "adopt" | undefined;
  /**
   * What happens when the object is not wanted any more: it is deleted, or left
   * to itself.
   *
   * @default {"delete"}
   */
  readonly unwanted?: "delete" | "orphan" | undefined;
  /**
   * Whether an object is deleted and made again when a field changes that the
   * server does not let change.
   *
   * @default {false}
   */
  readonly recreate?: boolean | undefined;
  /**
   * What happens to what the object itself owns when it is deleted.
   *
   * @default {"Background"}
   */
  readonly propagationPolicy?:
    | "Background"
    | "Foreground"
    | "Orphan"
    | undefined;
}

/** A resourceVersion that no object has: an apply with it can only create. */
const ONLY_CREATE = "1";

/**
 * Keeps objects of one kind as desired, for any number of primaries: matches
 * before it writes, so that an object which is right costs no request.
 */
export class ObjectKeeper<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  readonly #kind: Kind<S>;
  readonly #source: EventSource<P, S>;
  readonly #options: KeepOptions;
  #memory: MatchMemory | undefined;
  readonly #loops: UpdateLoops = new UpdateLoops();

  /**
   * Makes a keeper that knows nothing yet.
   *
   * @param kind The kind of the objects.
   * @param source Where they are read from.
   * @param options How they come and go.
   */
  constructor(
    kind: Kind<S>,
    source: EventSource<P, S>,
    options: KeepOptions = {},
  ) {
    this.#kind = kind;
    this.#source = source;
    this.#options = options;
  }

  /** Whether Kubernetes deletes the objects with their primary. */
  get garbageCollected(): boolean {
    return this.#options.relation !== "annotations";
  }

  /** An object as it would be applied, with its relation to the primary. */
  intent(
    desired: ApplyObject<S>,
    ctx: Context<P>,
  ): Promise<ApplyObject<S>> {
    const object = desiredObject(this.#kind, desired);
    if (this.garbageCollected) return ctx.intent(this.#kind, object);
    const { namespace, name } = ctx.key;
    const metadata = {
      ...object.metadata,
      annotations: {
        ...object.metadata.annotations,
        [PRIMARY_NAME_ANNOTATION]: name,
        ...(namespace && { [PRIMARY_NAMESPACE_ANNOTATION]: namespace }),
      },
    };
    const related = { ...object, metadata } as ApplyObject<S>;
    return ctx.intent(this.#kind, related, { owned: false });
  }

  /** The stored object of a key, as the cache knows it. */
  async read(key: ObjectKey, ctx: Context<P>): Promise<S | undefined> {
    return this.#source.get === undefined
      ? await ctx.get(this.#kind, key.name, key.namespace)
      : await this.#source.get(key);
  }

  /**
   * Makes an object as desired.
   *
   * @param desired What it should be, from {@linkcode ObjectKeeper.intent}.
   * @throws {ApiError} If it exists already and is not ours, or the server
   * refuses it.
   * @throws {UpdateLoopError} If it changes back again and again.
   */
  async ensure(
    desired: ApplyObject<S>,
    ctx: Context<P>,
  ): Promise<DependentResult<S>> {
    const target = desired as unknown as S;
    const key = keyOf(target);
    const id = keyText(key);
    const actual = await this.read(key, ctx);
    const { fieldManager } = ctx;
    const memory = this.#memory ?? await this.#remember();
    if (actual === undefined) {
      const made = await this.#apply(desired, ctx, { create: true });
      memory.applied(id, { desired: target, stored: made, fieldManager });
      return { operation: "created", resource: made };
    }
    const match = memory.match(id, {
      desired: target,
      actual,
      fieldManager,
    });
    if (match.matches) {
      this.#loops.settled(id);
      return { operation: "none", resource: actual };
    }
    const { field } = match;
    ctx.log.debug("Updating a dependent", {
      kind: this.#kind.kind,
      object: id,
      field,
    });
    this.#loops.beforeWrite(id, { what: `${this.#kind.kind} ${id}`, field });
    const stored = await this.#update(desired, actual, ctx);
    memory.applied(id, { desired: target, stored, fieldManager });
    return { operation: "updated", resource: stored };
  }

  /** Deletes an object, unless it is to be left, or gone already. */
  async remove(key: ObjectKey, ctx: Context<P>): Promise<void> {
    const id = keyText(key);
    this.#memory?.forget(id);
    this.#loops.settled(id);
    if (this.#options.unwanted === "orphan") return;
    const actual = await this.read(key, ctx);
    if (actual === undefined || actual.metadata.deletionTimestamp) return;
    await ctx.delete(this.#kind, key, {
      uid: actual.metadata.uid,
      propagationPolicy: this.#options.propagationPolicy,
    });
  }

  /** Begins to remember, which needs hashes, when there is the first object. */
  async #remember(): Promise<MatchMemory> {
    const { MatchMemory } = await import("./match_memory.ts");
    return this.#memory ??= new MatchMemory();
  }

  async #update(
    desired: ApplyObject<S>,
    actual: S,
    ctx: Context<P>,
  ): Promise<S> {
    try {
      return await this.#apply(desired, ctx, { create: false });
    } catch (error) {
      if (!this.#options.recreate || !isImmutable(error)) throw error;
    }
    ctx.log.info("Recreating a dependent, since a field cannot be changed", {
      kind: this.#kind.kind,
      object: keyText(keyOf(actual)),
    });
    await ctx.delete(this.#kind, keyOf(actual), {
      uid: actual.metadata.uid,
      propagationPolicy: this.#options.propagationPolicy,
    });
    return await this.#apply(desired, ctx, { create: false });
  }

  #apply(
    desired: ApplyObject<S>,
    ctx: Context<P>,
    { create }: { readonly create: boolean },
  ): Promise<S> {
    const onlyCreate = create && this.#options.existing !== "adopt";
    const object = onlyCreate
      ? {
        ...desired,
        metadata: { ...desired.metadata, resourceVersion: ONLY_CREATE },
      }
      : desired;
    // The intent has its owner already, and was matched.
    return ctx.apply(this.#kind, object, { owned: false, match: false });
  }
}

/** Whether the server refused to change a field that must stay as it is. */
function isImmutable(error: unknown): boolean {
  return ApiError.is(error) && (error.isInvalid || error.isConflict) &&
    /immutable|may not be changed|forbidden: updates to/i.test(error.message);
}
