import { ApiError } from "../../core/api/api_error.ts";
import {
  type Kind,
  kindText,
  type ResolvedKind,
  untyped,
} from "../../core/api/kind.ts";
import type { KubernetesObject, UntypedObject } from "../../core/api/object.ts";
import { keyText } from "../../core/api/object_key.ts";
import { namingRule } from "../../core/cache/watch/watch_failure.ts";
import { deadline } from "../../core/clock.ts";
import { abortable } from "../../core/signals.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  EventSource,
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceRegistry,
} from "../../core/controller/event_source.ts";
import {
  byAnnotation,
  kindAndGroup,
  type Mapper,
  PRIMARY_KIND_ANNOTATION,
} from "../../core/controller/watch/mappers.ts";
import { WatchingSource } from "../../core/controller/watch/watch_source.ts";
import {
  DependentResource,
  type KubernetesDependentOptions,
} from "../dependents/dependent_resource.ts";
import { HOLDERS } from "./apply_order.ts";

/** Label of the objects of sets, with the name of the set. */
export const SET_LABEL = "coracle.dev/set";

/** Time limit for the first sync of a watch, in milliseconds. */
const SYNC_TIMEOUT_MS = 30_000;

export interface SetWatchesOptions {
  /** Name of the set. */
  readonly name: string;
  /** Kinds whose watches start with the controller. */
  readonly kinds: readonly Kind[];
  /** Namespaces to watch. */
  readonly namespaces: "inherited" | NamespaceSet;
  /** How the objects are reconciled. */
  readonly resource: Pick<
    KubernetesDependentOptions<never, UntypedObject>,
    "existing" | "recreate"
  >;
}

/** Kind of objects of a set, with its watch. */
export class WatchedKind<P extends KubernetesObject> {
  readonly kind: Kind<UntypedObject>;
  readonly source: WatchingSource<P, UntypedObject>;
  readonly #make: (isOwned: boolean) => DependentResource<P, UntypedObject>;
  readonly #resources: Map<boolean, DependentResource<P, UntypedObject>> =
    new Map();

  constructor(
    source: WatchingSource<P, UntypedObject>,
    { existing, recreate }: SetWatchesOptions["resource"],
    primaryKind: () => string,
  ) {
    const { kind } = source;
    this.kind = kind;
    this.source = source;
    this.#make = (isOwned) =>
      new DependentResource(kind, source, {
        relation: isOwned ? "owner" : "annotations",
        existing,
        recreate: recreate && !HOLDERS.includes(kind.kind),
        primaryKind,
      });
  }

  /**
   * Reconciler of the objects.
   *
   * @param isOwned Whether they have an owner reference to their primary.
   */
  resource(isOwned: boolean): DependentResource<P, UntypedObject> {
    let resource = this.#resources.get(isOwned);
    if (resource === undefined) {
      resource = this.#make(isOwned);
      this.#resources.set(isOwned, resource);
    }
    return resource;
  }
}

interface Entry<P extends KubernetesObject> {
  readonly opened: Promise<WatchedKind<P>>;
  /** Primaries whose sets have objects of the kind. */
  readonly users: Set<string>;
}

/**
 * Watches of the kinds of a set, one for each, which the sets of all primaries
 * share. They hold only objects of sets with this name. Those of `kinds` start with
 * the controller, others when a set has the first object of the kind, and they stop
 * when no set has one.
 */
export class SetWatches<P extends KubernetesObject> implements EventSource<P> {
  readonly name: string;
  /** Watches that start with the controller. */
  readonly declared: readonly WatchingSource<P, UntypedObject>[];
  readonly #options: SetWatchesOptions;
  readonly #entries: Map<string, Entry<P>> = new Map();
  #context: SourceContext<P> | undefined;
  #namespaces: NamespaceSet = [];
  #registry: SourceRegistry<P> | undefined;

  constructor(options: SetWatchesOptions) {
    this.#options = options;
    this.name = `set ${options.name}`;
    this.declared = options.kinds.map((kind) => this.#sourceOf(kind));
  }

  start(context: SourceContext<P>): Promise<void> {
    this.#context = context;
    this.#namespaces = context.namespaces;
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#context = undefined;
    this.#registry = undefined;
    this.#entries.clear();
    return Promise.resolve();
  }

  changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    this.#namespaces = namespaces;
    return Promise.resolve();
  }

  onPrimary({ type, key }: PrimaryEvent<P>): void {
    if (type === "deleted") this.release(keyText(key), new Set());
  }

  /** Kind of the primaries. */
  get primaryKind(): Kind<P> {
    return this.#started.primaryKind;
  }

  /** Namespaces that are watched. */
  get namespaces(): NamespaceSet {
    const { namespaces } = this.#options;
    return namespaces === "inherited" ? this.#namespaces : namespaces;
  }

  get #started(): SourceContext<P> {
    if (this.#context !== undefined) return this.#context;
    throw new Error(
      `Cannot use the set "${this.#options.name}": its sources are not started: register the workflow, or the sources, with a controller`,
    );
  }

  /**
   * Opens the watch of a kind for a primary, until it is released. An open one is
   * of no use once the server no longer serves its version.
   *
   * @returns Fulfilled when the watch has synced.
   * @throws {ApiError} With `isNotFound`, if the server does not serve the kind.
   * @throws {Error} If the right to watch it is missing, or it does not sync in time.
   */
  async open(kind: Kind, ctx: Context<P>): Promise<WatchedKind<P>> {
    const id = kindText(kind);
    this.#registry = ctx.sources;
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      const opened = this.#open(kind, ctx);
      this.#entries.set(id, entry = { opened, users: new Set() });
      opened.catch(() => {
        if (this.#entries.get(id) === entry) this.#entries.delete(id);
      });
    }
    entry.users.add(keyText(ctx.key));
    const watched = await abortable(entry.opened, ctx.signal);
    // A watch may outlive its version, so that a deletion waits in vain.
    const isLate = ctx.cause.type === "reschedule" &&
      ctx.current?.metadata.deletionTimestamp !== undefined;
    if (isLate || watched.source.health().status === "unhealthy") {
      await this.#checkServed(kind, ctx);
    }
    return watched;
  }

  async #checkServed(kind: Kind, { client }: Context<P>): Promise<void> {
    try {
      await client.resolve(untypedOf(kind), { fresh: true });
    } catch (error) {
      // In an outage, the cache still says what a set has.
      if (ApiError.is(error) && error.isNotFound) throw error;
    }
  }

  /** Stops the watches that only this primary has used, except of some kinds. */
  release(primary: string, kept: ReadonlySet<string>): void {
    const { log } = this.#started;
    for (const [id, { users, opened }] of this.#entries) {
      if (kept.has(id) || !users.delete(primary) || users.size > 0) continue;
      if (this.#declaredOf(id) !== undefined) continue;
      this.#entries.delete(id);
      opened.then(({ source }) =>
        // Another set may have opened it again before it has synced.
        this.#entries.has(id) ? undefined : this.#registry?.remove(source.name)
      ).catch((error) =>
        log.warn("Cannot stop a watch", { watched: id, error })
      );
    }
  }

  #declaredOf(id: string): WatchingSource<P, UntypedObject> | undefined {
    return this.declared.find(({ kind }) => kindText(kind) === id);
  }

  async #open(kind: Kind, ctx: Context<P>): Promise<WatchedKind<P>> {
    const source = this.#declaredOf(kindText(kind)) ??
      await this.#add(kind, ctx);
    return new WatchedKind(
      source,
      this.#options.resource,
      () => kindAndGroup(this.primaryKind),
    );
  }

  /** Adds a watch. Other runs wait for it as well: the end of this one is no end. */
  async #add(
    kind: Kind,
    { client, clock, sources }: Context<P>,
  ): Promise<WatchingSource<P, UntypedObject>> {
    // A kind that was not served before is looked up again.
    const resolved = await client.resolve(untypedOf(kind));
    await this.#checkRight(resolved, client);
    const source = this.#sourceOf(resolved);
    const added = sources.add(source);
    await deadline(added, SYNC_TIMEOUT_MS, {
      clock,
      onTimeout: () =>
        new Error(
          `Cannot watch ${
            kindText(resolved)
          }: its objects were not listed within ${SYNC_TIMEOUT_MS} ms: received ${
            source.health().message ?? "no error"
          }`,
        ),
    });
    return await added as WatchingSource<P, UntypedObject>;
  }

  /** Checks that the account may list objects: a watch would try forever. */
  async #checkRight(
    kind: ResolvedKind,
    client: Context<P>["client"],
  ): Promise<void> {
    const { name } = this.#options;
    const { namespaces } = this;
    const places = namespaces === "all" || kind.scope === "Cluster"
      ? [undefined]
      : namespaces;
    const labelSelector = `${SET_LABEL}=${name}`;
    for (const namespace of places) {
      try {
        await client.list(kind, { namespace, labelSelector, limit: 1 });
      } catch (error) {
        if (ApiError.is(error)) throw namingRule(error, kind, namespace);
        throw error;
      }
    }
  }

  #sourceOf(kind: Kind): WatchingSource<P, UntypedObject> {
    const { name, namespaces } = this.#options;
    return new WatchingSource<P, UntypedObject>(kind as Kind<UntypedObject>, {
      name: `${kindText(kind)} of ${this.name}`,
      labelSelector: `${SET_LABEL}=${name}`,
      mapper: bySet(),
      namespaces,
    });
  }
}

/** Kind without its path, which the discovery is asked for. */
function untypedOf({ group, version, kind }: Kind): Kind<UntypedObject> {
  return untyped({ group, version, kind });
}

/** Mapper by the annotations of the objects of sets. */
function bySet<P extends KubernetesObject>(): Mapper<P, UntypedObject> {
  const mapper = byAnnotation<P, UntypedObject>();
  return {
    ...mapper,
    primariesOf: (secondary, primaryKind) =>
      secondary.annotation(PRIMARY_KIND_ANNOTATION) ===
          kindAndGroup(primaryKind)
        ? mapper.primariesOf(secondary, primaryKind)
        : [],
  };
}
