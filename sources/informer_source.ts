import { type Kind, kindText } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../core/api/object_key.ts";
import type { CacheEvent } from "../core/cache/cache_event.ts";
import type { InformerLease } from "../core/cache/informer_lease.ts";
import type {
  HandlerRegistration,
  OwnWrite,
} from "../core/cache/shared_informer.ts";
import type {
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceEvent,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { accepts } from "../core/controller/filters.ts";
import type { Logger } from "../core/logger.ts";
import {
  checkInformerSource,
  type InformerEventSource,
  type InformerSourceOptions,
} from "./informer_source_options.ts";
import {
  byOwner,
  keyTexts,
  mapped,
  MappedEvent,
  type MappedObject,
  type Mapper,
} from "./mappers.ts";
import { ReferenceIndex } from "./reference_index.ts";
import { RememberedMapping } from "./remembered_mapping.ts";

/** The name under which the lease keeps the index of the mapper. */
const BY_PRIMARY = "primary";

/**
 * Watches objects of another kind and triggers the primaries that they belong
 * to; an update triggers those from before and those from after it.
 *
 * Informers are shared with everybody in the operator who watches the same,
 * unless told otherwise.
 *
 * @param kind One of `defineKind`, `@coracle/operator/kinds` or `untyped`.
 * @param options Which of them, and whose they are.
 * @throws {TypeError | RangeError} If the kind or an option makes no sense.
 *
 * @example Own ConfigMaps
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { informerSource } from "@coracle/operator/sources";
 *
 * const source = informerSource(ConfigMap, { labelSelector: "app=web" });
 * if (source.name !== "v1 ConfigMap") throw new Error("Unexpected name");
 * ```
 */
export function informerSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: InformerSourceOptions<P, S> = {},
): InformerEventSource<P, S> {
  return new WatchingSource(kind, options);
}

/** What a started source holds. */
interface Watching<P extends KubernetesObject, S extends KubernetesObject> {
  readonly context: SourceContext<P>;
  readonly lease: InformerLease<S>;
  readonly registration: HandlerRegistration<S>;
}

/** What the events of one watch are taken with. */
interface Listening<P extends KubernetesObject, S extends KubernetesObject> {
  readonly context: SourceContext<P>;
  readonly lease: InformerLease<S>;
  /** Only where the cache is bounded. */
  readonly remembered: RememberedMapping | undefined;
}

class WatchingSource<P extends KubernetesObject, S extends KubernetesObject>
  implements InformerEventSource<P, S> {
  readonly name: string;
  readonly kind: Kind<S>;
  readonly readOnly: boolean;
  readonly startPriority: "loader" | "default";
  /** Absent where nothing refers from the primaries, which costs nothing then. */
  readonly onPrimary?: (event: PrimaryEvent<P>) => void;
  readonly #options: InformerSourceOptions<P, S>;
  readonly #mapper: Mapper<P, S>;
  readonly #references: ReferenceIndex = new ReferenceIndex();
  readonly #onGone: ((key: string | undefined) => void)[] = [];
  /** Which start counts. */
  #life: symbol | undefined;
  #log: Logger | undefined;
  #watching: Watching<P, S> | undefined;

  constructor(kind: Kind<S>, options: InformerSourceOptions<P, S>) {
    this.#options = checkInformerSource(kind, options);
    this.kind = kind;
    this.name = options.name ?? kindText(kind);
    this.readOnly = options.readOnly ?? false;
    this.startPriority = options.startPriority ?? "default";
    this.#mapper = options.mapper ?? byOwner();
    if (options.references !== undefined) {
      this.onPrimary = (event) => this.#followPrimary(event);
    }
  }

  async start(context: SourceContext<P>): Promise<void> {
    this.#life = Symbol(this.name);
    this.#log = context.log;
    if (this.#options.references !== undefined) {
      for (const primary of await context.primaries.readList()) {
        this.#refer(primary);
      }
    }
    await this.#watch(context, context.namespaces);
  }

  async stop(): Promise<void> {
    const watching = this.#watching;
    this.#life = undefined;
    this.#watching = undefined;
    this.#references.clear();
    for (const listener of this.#onGone) listener(undefined);
    await watching?.lease.release();
  }

  async changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    const { namespaces: wanted = "inherited" } = this.#options;
    const before = this.#watching;
    if (wanted !== "inherited" || before === undefined) return;
    await this.#watch(before.context, namespaces);
    await before.lease.release();
  }

  health(): SourceHealth {
    const health = this.#watching?.lease.health();
    if (health === undefined) return { status: "unknown" };
    const error = health.watches
      .map(({ lastError }) => lastError?.message)
      .find((message) => message !== undefined);
    return health.healthy
      ? { status: "healthy" }
      : { status: "unhealthy", message: error ?? "not synced yet" };
  }

  get(key: ObjectKey): S | undefined | Promise<S | undefined> {
    const lease = this.#watching?.lease;
    return this.#options.bounded ? lease?.read(key) : lease?.get(key);
  }

  list(namespace?: string): readonly S[] | Promise<readonly S[]> {
    const lease = this.#watching?.lease;
    if (lease === undefined) return [];
    return this.#options.bounded
      ? lease.readList(namespace)
      : lease.list(namespace);
  }

  secondaries(primary: P): readonly S[] | Promise<readonly S[]> {
    const watching = this.#watching;
    if (watching === undefined) return [];
    if (this.#options.bounded) return this.#readSecondaries(primary, watching);
    const { lease, context } = watching;
    if (this.#options.references !== undefined) {
      return keyTexts(this.#options.references(primary))
        .map((key) => lease.get(key))
        .filter((object) => object !== undefined);
    }
    const found = lease.byIndex(BY_PRIMARY, this.#mapper.indexValue(primary));
    return this.#belonging(found, primary, context);
  }

  /** As `secondaries`, fetching those of which only the key is kept. */
  async #readSecondaries(
    primary: P,
    { lease, context }: Watching<P, S>,
  ): Promise<readonly S[]> {
    if (this.#options.references !== undefined) {
      const keys = keyTexts(this.#options.references(primary));
      const found = await Promise.all(keys.map((key) => lease.read(key)));
      return found.filter((object) => object !== undefined);
    }
    const value = this.#mapper.indexValue(primary);
    const found = await lease.readByIndex(BY_PRIMARY, value);
    return this.#belonging(found, primary, context);
  }

  /** The index may know less than the mapper, such as the name alone. */
  #belonging(
    secondaries: readonly S[],
    primary: P,
    context: SourceContext<P>,
  ): S[] {
    const key = keyText(keyOf(primary));
    return secondaries.filter((object) =>
      this.#primaries(mapped(object), context).has(key)
    );
  }

  onGone(listener: (key: string | undefined) => void): void {
    this.#onGone.push(listener);
  }

  beginWrite(key: ObjectKey): OwnWrite<S> {
    const watching = this.#watching;
    return watching === undefined
      ? { succeed() {}, fail() {} }
      : watching.registration.beginWrite(key);
  }

  #followPrimary({ type, key, object }: PrimaryEvent<P>): void {
    if (type === "deleted" || object === undefined) {
      this.#references.set(keyText(key), []);
    } else this.#refer(object);
  }

  #refer(primary: P): void {
    this.#references.set(
      keyText(keyOf(primary)),
      this.#guarded(
        keyText(keyOf(primary)),
        () => keyTexts(this.#options.references?.(primary) ?? []),
      ),
    );
  }

  /** What the user's function gives; what it throws is told, and gives nothing. */
  #guarded(
    object: string,
    map: () => readonly string[],
  ): readonly string[] {
    try {
      return map();
    } catch (error) {
      this.#log?.error("Cannot map an object", {
        source: this.name,
        object,
        error,
      });
      return [];
    }
  }

  async #watch(
    context: SourceContext<P>,
    inherited: NamespaceSet,
  ): Promise<void> {
    const {
      namespaces = "inherited",
      labelSelector,
      fieldSelector,
      shardSelector,
      metadataOnly,
      prune = [foreignManagedFields(context)],
      bounded,
      client,
      shared,
    } = this.#options;
    const set = namespaces === "inherited" ? inherited : namespaces;
    const life = this.#life;
    const everywhere = set === "all" || await this.#isClusterScoped(context);
    // It may have been stopped while the server was asked.
    if (this.#life !== life) return;
    const lease = context.informers.acquire(this.kind, {
      namespaces: everywhere ? undefined : set,
      labelSelector,
      fieldSelector,
      shardSelector,
      metadataOnly,
      prune,
      bounded,
      client,
      shared,
    });
    if (this.#options.references === undefined) {
      lease.addIndex(BY_PRIMARY, this.#mapper.index);
    }
    const remembered = bounded ? new RememberedMapping() : undefined;
    const listening = { context, lease, remembered };
    const registration = lease.addHandler(
      (event) => this.#onEvent(event, listening),
      { name: `${context.controller}/${this.name}` },
    );
    this.#watching = { context, lease, registration };
    await registration.synced;
  }

  /** Objects of a cluster-scoped kind are in none of the namespaces. */
  async #isClusterScoped(context: SourceContext<P>): Promise<boolean> {
    const { client = context.client } = this.#options;
    const { scope } = this.kind.scope === undefined
      ? await client.resolve(this.kind)
      : this.kind;
    return scope === "Cluster";
  }

  #onEvent(event: CacheEvent<S>, listening: Listening<P, S>): void {
    const { context, remembered } = listening;
    if (event.type === "deleted") {
      for (const listener of this.#onGone) listener(event.key);
    }
    // What is remembered must follow every event, accepted or not.
    const followed = remembered?.follow(
      event,
      () => this.#primaries(new MappedEvent(event, "object"), context),
    );
    if (!this.#accepts(event, context)) return;
    const primaries = this.#options.references === undefined
      ? followed ?? this.#affected(event, context)
      : this.#references.primariesOf(event.key);
    const cause = {
      kind: this.kind.kind,
      object: keyOfHeader(event),
      initial: event.initial,
    };
    for (const primary of primaries) context.trigger(primary, cause);
    if (event.header.isPartial && event.type !== "deleted") {
      void this.#readAndTrigger(event.key, { ...listening, cause });
    }
  }

  /** Maps an object of which only the key was there when its event came. */
  async #readAndTrigger(
    key: string,
    { context, lease, remembered, cause }: Listening<P, S> & {
      readonly cause: SourceEvent;
    },
  ): Promise<void> {
    try {
      const object = await lease.read(key);
      if (object === undefined) return;
      const primaries = [...this.#primaries(mapped(object), context)];
      remembered?.set(key, primaries);
      for (const primary of primaries) context.trigger(primary, cause);
    } catch (error) {
      context.log.error("Cannot map an object", { source: this.name, error });
    }
  }

  /** A filter that throws accepts: a run too many is better than one missed. */
  #accepts(event: CacheEvent<S>, { log }: SourceContext<P>): boolean {
    try {
      return accepts(this.#options.filters ?? {}, event);
    } catch (error) {
      log.error("Cannot filter an event", { source: this.name, error });
      return true;
    }
  }

  /** The primaries from before the event and those from after it. */
  #affected(event: CacheEvent<S>, context: SourceContext<P>): Set<string> {
    const after = new MappedEvent(event, "object");
    const affected = this.#primaries(after, context);
    // A mapper that has looked at the metadata alone would find the same.
    if (event.hasSameMetadata && !after.isDecoded) return affected;
    if (event.previousHeader !== undefined) {
      const before = this.#primaries(
        new MappedEvent(event, "previous"),
        context,
      );
      for (const primary of before) affected.add(primary);
    }
    return affected;
  }

  #primaries(
    secondary: MappedObject<S>,
    context: SourceContext<P>,
  ): Set<string> {
    const { name, namespace } = secondary;
    const key = namespace === "" ? name : `${namespace}/${name}`;
    return new Set(
      this.#guarded(
        key,
        () =>
          keyTexts(this.#mapper.primariesOf(secondary, context.primaryKind)),
      ),
    );
  }
}

/**
 * The path of what other operators and people own. That of a controller which
 * comes later is another one, and so is its informer: nothing of its own is
 * missing there.
 */
function foreignManagedFields({ fieldManagers }: SourceContext): string {
  const own = fieldManagers.map((name) => JSON.stringify(name));
  return `metadata.managedFields[manager!=${own.join()}]`;
}

function keyOfHeader({ header }: CacheEvent<KubernetesObject>): ObjectKey {
  const { namespace, name } = header;
  return namespace === "" ? { name } : { namespace, name };
}
