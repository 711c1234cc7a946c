import { type Kind, kindText } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import {
  keyOf,
  keyText,
  type ObjectKey,
  parseKey,
} from "../core/api/object_key.ts";
import type { CacheEvent } from "../core/cache/informer/cache_event.ts";
import { keyOfHeader } from "../core/cache/informer/current_event.ts";
import type { InformerLease } from "../core/cache/informer/informer_lease.ts";
import type {
  HandlerRegistration,
  OwnWrite,
} from "../core/cache/informer/shared_informer.ts";
import type {
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceEvent,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { accepts } from "../core/controller/filters.ts";
import type { Logger } from "../core/logger.ts";
import { acquireInformer, healthOf } from "./acquire_informer.ts";
import {
  checkInformerSource,
  type WatchSource,
  type WatchSourceOptions,
} from "./watch_source_options.ts";
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
import { Succession } from "./succession.ts";

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
 * import { watch } from "@coracle/operator/sources";
 *
 * const source = watch(ConfigMap, { labelSelector: "app=web" });
 * if (source.name !== "v1 ConfigMap") throw new Error("Unexpected name");
 * ```
 */
export function watch<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: WatchSourceOptions<P, S> = {},
): WatchSource<P, S> {
  return new WatchingSource(kind, options);
}

/** What a started source holds. */
interface Watching<P extends KubernetesObject, S extends KubernetesObject> {
  readonly context: SourceContext<P>;
  readonly lease: InformerLease<S>;
  readonly registration: HandlerRegistration<S>;
  /** Only where the cache is bounded. */
  readonly remembered: RememberedMapping | undefined;
  /** While it takes the place of another watch. */
  succession: Succession<S> | undefined;
}

/** What the events of one watch are taken with. */
type Listening<P extends KubernetesObject, S extends KubernetesObject> = Omit<
  Watching<P, S>,
  "registration"
>;

class WatchingSource<P extends KubernetesObject, S extends KubernetesObject>
  implements WatchSource<P, S> {
  readonly name: string;
  readonly kind: Kind<S>;
  readonly readOnly: boolean;
  readonly startPriority: "loader" | "default";
  /** Absent where nothing refers from the primaries, which costs nothing then. */
  readonly onPrimary?: (event: PrimaryEvent<P>) => void;
  readonly #options: WatchSourceOptions<P, S>;
  readonly #mapper: Mapper<P, S>;
  readonly #references: ReferenceIndex = new ReferenceIndex();
  readonly #onGone: ((key: string | undefined) => void)[] = [];
  /** Which start counts. */
  #life: symbol | undefined;
  #log: Logger | undefined;
  #watching: Watching<P, S> | undefined;
  /** Of the watch that is to take the place of that one, or was there before. */
  #otherLease: InformerLease<S> | undefined;

  constructor(kind: Kind<S>, options: WatchSourceOptions<P, S>) {
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
    const lease = await this.#acquire(context, context.namespaces);
    if (lease === undefined) return;
    this.#watching = this.#listen({ context, lease, succession: undefined });
    await this.#watching.registration.synced;
  }

  async stop(): Promise<void> {
    const leases = [this.#watching?.lease, this.#otherLease];
    this.#life = undefined;
    this.#watching = undefined;
    this.#otherLease = undefined;
    this.#references.clear();
    for (const listener of this.#onGone) listener(undefined);
    await Promise.all(leases.map((lease) => lease?.release()));
  }

  async changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    const { namespaces: wanted = "inherited" } = this.#options;
    const before = this.#watching;
    if (wanted !== "inherited" || before === undefined) return;
    const life = this.#life;
    const { context } = before;
    const lease = await this.#acquire(context, namespaces);
    if (lease === undefined) return;
    // Runs go on meanwhile, and read the cache that is complete.
    this.#otherLease = lease;
    await lease.synced;
    if (this.#life !== life) return;
    const succession = new Succession(before.lease, lease);
    const after = this.#listen({ context, lease, succession });
    this.#watching = after;
    this.#otherLease = before.lease;
    await after.registration.synced;
    after.succession = undefined;
    for (const key of succession.missed(namespaces)) this.#missed(key, before);
    this.#otherLease = undefined;
    await before.lease.release();
  }

  /** An object is gone, or not what it was, and its watch did not tell. */
  #missed(key: string, { context, lease, remembered }: Watching<P, S>): void {
    if (this.#watching?.lease.has(key) === false) {
      for (const listener of this.#onGone) listener(key);
    }
    const last = remembered === undefined ? lease.get(key) : undefined;
    const primaries = this.#options.references !== undefined
      ? this.#references.primariesOf(key)
      : last === undefined
      ? remembered?.of(key) ?? []
      : this.#primaries(mapped(last), context);
    const cause = { kind: this.kind.kind, object: parseKey(key) };
    for (const primary of primaries) context.trigger(primary, cause);
  }

  health(): SourceHealth {
    return healthOf(this.#watching?.lease);
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

  #listen(start: Omit<Listening<P, S>, "remembered">): Watching<P, S> {
    const { bounded } = this.#options;
    const remembered = bounded ? new RememberedMapping() : undefined;
    const listening: Listening<P, S> = { ...start, remembered };
    const registration = start.lease.addHandler(
      (event) => this.#onEvent(event, listening),
      { name: `${start.context.controller}/${this.name}` },
    );
    return Object.assign(listening, { registration });
  }

  /** Opens an informer; undefined if the source was stopped meanwhile. */
  #acquire(
    context: SourceContext<P>,
    inherited: NamespaceSet,
  ): Promise<InformerLease<S> | undefined> {
    const life = this.#life;
    const index = { [BY_PRIMARY]: this.#mapper.index };
    return acquireInformer(this.kind, this.#options, {
      context,
      inherited,
      indexes: this.#options.references === undefined ? index : {},
      isWanted: () => this.#life === life,
    });
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
    // A bounded cache may have to read it, for what is remembered.
    if (remembered === undefined && listening.succession?.isTold(event)) return;
    if (!this.#accepts(event, context)) return;
    const primaries = this.#options.references === undefined
      ? followed ?? this.#affected(event, context)
      : this.#references.primariesOf(event.key);
    const cause = {
      kind: this.kind.kind,
      object: keyOfHeader(event.header),
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
