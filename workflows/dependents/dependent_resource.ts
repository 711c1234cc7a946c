import { ApiError } from "../../core/api/api_error.ts";
import {
  apiVersionOf,
  isResolved,
  type Kind,
  type Scope,
} from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { isPromise } from "../../core/tracing.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import type { OptionRules } from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import type { WatchSource } from "../../sources/watch_source_options.ts";
import {
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "../../sources/mappers.ts";
import type { DependentResult } from "./dependent.ts";
import type { MatchMemory } from "./match_memory.ts";
import { UpdateLoops } from "./update_loop.ts";
import { Buffer } from "node:buffer";
import { isJsonObject } from "../../core/patch/json_value.ts";

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

/** How objects of a kind are compared. */
export interface CompareOptions<S extends KubernetesObject> {
  /**
   * Decides in place of the matcher whether a stored object is as it should be;
   * undefined leaves it to the matcher.
   *
   * @default {always left to the matcher}
   */
  readonly matches?:
    | ((desired: ApplyObject<S>, actual: S) => boolean | undefined)
    | undefined;
}

/** What the options of a dependent in the cluster must be. */
export const KEEP_RULES: OptionRules<KeepOptions & CompareOptions<never>> = {
  relation: ["owner", "annotations", undefined],
  existing: ["refuse", "adopt", undefined],
  unwanted: ["delete", "orphan", undefined],
  recreate: "boolean?",
  propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
  matches: "function?",
};

/** A resourceVersion that no object has: an apply with it can only create. */
const ONLY_CREATE = "1";

/** How many objects are remembered where nothing tells that they are gone. */
const MOST_REMEMBERED = 10_000;

/** What one object should be, as a run asks for it. */
export interface Wish<S extends KubernetesObject> {
  /** The object as the user gave it. */
  readonly object: ApplyObject<S>;
  /** The incarnation of the primary that it belongs to. */
  readonly owner: string | undefined;
  /** Which object it is. */
  readonly key: ObjectKey;
}

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
  readonly #options: KeepOptions & CompareOptions<S>;
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
    options: KeepOptions & CompareOptions<S> = {},
  ) {
    this.#kind = kind;
    this.#source = source;
    this.#options = options;
    // What a garbage collector deletes is never deleted by us.
    if (tellsWhatIsGone(source)) source.onGone((id) => this.#forget(id));
  }

  /** Whether Kubernetes deletes the objects with their primary. */
  get garbageCollected(): boolean {
    return this.#options.relation !== "annotations";
  }

  /** Of how many objects something is remembered. */
  get remembered(): number {
    return Math.max(this.#memory?.size ?? 0, this.#loops.size);
  }

  /**
   * What an object should be, and which one it is.
   *
   * @throws {TypeError} If it is no object with a name.
   */
  wish(
    object: ApplyObject<S>,
    { primary, ctx }: { readonly primary: P; readonly ctx: Context<P> },
  ): MaybePromise<Wish<S>> {
    const { name, namespace = ctx.key.namespace } =
      namedObject(this.#kind, object).metadata;
    const wishIn = (scope: Scope): Wish<S> => ({
      object,
      owner: primary.metadata.uid,
      key: scope === "Cluster" ? { name } : { namespace, name },
    });
    return isResolved(this.#kind)
      ? wishIn(this.#kind.scope)
      : ctx.client.resolve(this.#kind).then(({ scope }) => wishIn(scope));
  }

  /** The stored object of a key, as the cache knows it. */
  read(key: ObjectKey, ctx: Context<P>): MaybePromise<S | undefined> {
    return this.#source.get === undefined
      ? ctx.get(this.#kind, key.name, key.namespace)
      : this.#source.get(key);
  }

  /**
   * Makes an object as wished; within the call if nobody has touched it since it
   * was found to be right, as is mostly so.
   *
   * @throws {ApiError} If it exists already and is not ours, or the server
   * refuses it.
   * @throws {UpdateLoopError} If it changes back again and again.
   */
  ensure(wished: Wish<S>, ctx: Context<P>): MaybePromise<DependentResult<S>> {
    const found = this.read(wished.key, ctx);
    return isPromise(found) || this.#memory === undefined
      ? this.#ensureLater(wished, ctx, found)
      : this.#ensure(wished, ctx, { actual: found, memory: this.#memory });
  }

  async #ensureLater(
    wished: Wish<S>,
    ctx: Context<P>,
    found: MaybePromise<S | undefined>,
  ): Promise<DependentResult<S>> {
    const actual = await found;
    const memory = this.#memory ?? await this.#remember();
    return await this.#ensure(wished, ctx, { actual, memory });
  }

  #ensure(
    wished: Wish<S>,
    ctx: Context<P>,
    { actual, memory }: {
      readonly actual: S | undefined;
      readonly memory: MatchMemory;
    },
  ): MaybePromise<DependentResult<S>> {
    const id = keyText(wished.key);
    // The owner is part of what is applied, and not of what the user gave.
    const wish = memory.nameOf(
      `${wished.owner} ${JSON.stringify(wished.object)}`,
    );
    return actual !== undefined && this.#options.matches === undefined &&
        memory.isUntouched({ id, wish, actual })
      ? { operation: "none", resource: actual }
      : this.#compare(wished.object, ctx, { id, wish, actual, memory });
  }

  /** Compares an object with what was wished for, and writes it if need be. */
  async #compare(
    object: ApplyObject<S>,
    ctx: Context<P>,
    { id, wish, actual, memory }: {
      readonly id: string;
      readonly wish: string;
      readonly actual: S | undefined;
      readonly memory: MatchMemory;
    },
  ): Promise<DependentResult<S>> {
    const { matches } = this.#options;
    const { fieldManager } = ctx;
    const desired = await this.#intent(object, ctx);
    const common = {
      id,
      wish,
      intent: desired as unknown as S,
      fieldManager,
    };
    if (actual === undefined) {
      const made = await this.#apply(desired, ctx, { create: true });
      memory.applied({ ...common, actual: made });
      return { operation: "created", resource: made };
    }
    const decided = matches?.(desired, actual);
    const match = decided === undefined
      ? memory.match({ ...common, actual })
      : { matches: decided, field: "" };
    if (match.matches) {
      this.#loops.settled(id);
      return { operation: "none", resource: actual };
    }
    const { field } = match;
    const what = `${this.#kind.kind} ${id}`;
    ctx.log.debug("Updating a dependent", { dependent: what, field });
    this.#loops.beforeWrite(id, { what, field });
    const stored = await this.#update(desired, actual, ctx);
    memory.applied({ ...common, actual: stored });
    return { operation: "updated", resource: stored };
  }

  /** Deletes an object, unless it is to be left, or gone already. */
  async remove(key: ObjectKey, ctx: Context<P>): Promise<void> {
    this.#forget(keyText(key));
    if (this.#options.unwanted === "orphan") return;
    const actual = await this.read(key, ctx);
    if (actual === undefined || actual.metadata.deletionTimestamp) return;
    await ctx.delete(this.#kind, key, {
      uid: actual.metadata.uid,
      propagationPolicy: this.#options.propagationPolicy,
    });
  }

  /** Begins to remember, which needs more code, when there is an object. */
  async #remember(): Promise<MatchMemory> {
    const [{ MatchMemory }, { formOfKind }] = await Promise.all([
      import("./match_memory.ts"),
      import("./value_form.ts"),
    ]);
    return this.#memory ??= new MatchMemory({
      form: formOfKind(this.#kind),
      limit: tellsWhatIsGone(this.#source) ? undefined : MOST_REMEMBERED,
    });
  }

  /** Forgets an object, or everything. */
  #forget(id: string | undefined): void {
    if (id === undefined) {
      this.#memory?.clear();
      this.#loops.clear();
    } else {
      this.#memory?.forget(id);
      this.#loops.settled(id);
    }
  }

  /** An object as it would be applied, with its relation to the primary. */
  #intent(object: ApplyObject<S>, ctx: Context<P>): Promise<ApplyObject<S>> {
    const desired = desiredObject(this.#kind, object);
    if (this.garbageCollected) return ctx.intent(this.#kind, desired);
    const { namespace, name } = ctx.key;
    const metadata = {
      ...desired.metadata,
      annotations: {
        ...desired.metadata.annotations,
        [PRIMARY_NAME_ANNOTATION]: name,
        ...(namespace && { [PRIMARY_NAMESPACE_ANNOTATION]: namespace }),
      },
    };
    const related = { ...desired, metadata } as ApplyObject<S>;
    return ctx.intent(this.#kind, related, { owned: false });
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

function tellsWhatIsGone<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(source: EventSource<P, S>): source is WatchSource<P, S> {
  return "onGone" in source;
}

/** How servers say, of one kind or another, that a field must stay as it is. */
const IMMUTABLE =
  /immutable|(?:may not|cannot) (?:be )?change|may not add or remove|forbidden: updates to/i;

/** Whether the server refused to change a field that must stay as it is. */
function isImmutable(error: unknown): boolean {
  return ApiError.is(error) && (error.isInvalid || error.isConflict) &&
    IMMUTABLE.test(error.message);
}

/** What the server sets in metadata, which nobody can ask for. */
const SERVER_METADATA = [
  "creationTimestamp",
  "deletionTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
] as const;

/**
 * A desired object that has a name.
 *
 * @throws {TypeError} If it has none, or is no object.
 */
export function namedObject<T extends KubernetesObject>(
  kind: Kind<T>,
  desired: ApplyObject<T>,
): {
  readonly metadata: { readonly name: string; readonly namespace?: string };
} {
  if (!isJsonObject(desired)) {
    throw refusal(kind, "it must be an object", typeof desired);
  }
  const { metadata } = desired as { readonly metadata?: unknown };
  const name = isJsonObject(metadata) ? metadata["name"] : undefined;
  if (typeof name !== "string" || name === "") {
    throw refusal(kind, "it must have a name", name);
  }
  return desired as { metadata: { name: string; namespace?: string } };
}

function refusal(kind: Kind, why: string, value: unknown): TypeError {
  return new TypeError(
    `Cannot use a desired ${kind.kind}: ${why}: received ${value}`,
  );
}

/**
 * A desired object as it is compared and applied: with its apiVersion and kind,
 * without what only the server sets, and with the `stringData` of a Secret as
 * the `data` that it becomes.
 *
 * @throws {TypeError} If it is no object with a name, or carries a status, which
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
  if (status !== undefined) {
    throw refusal(kind, "it must not have a status", "one");
  }
  const kept = Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) =>
      value !== undefined &&
      !(SERVER_METADATA as readonly string[]).includes(name)
    ),
  );
  // Undefined fields vanish as they would on the wire.
  const object = JSON.parse(JSON.stringify({
    ...rest,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: kept,
  }));
  if (isJsonObject(stringData)) {
    object.data = { ...object.data, ...encoded(stringData) };
  }
  return object;
}

function encoded(strings: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(
    Object.entries(strings).map(([name, value]) => [
      name,
      Buffer.from(String(value)).toString("base64"),
    ]),
  );
}
