import { checkKind, type Kind, kindText } from "../../api/kind.ts";
import {
  fieldRequirements,
  fieldSelectorText,
  matchesFields,
} from "../../api/field_selector.ts";
import {
  labelRequirements,
  labelSelectorText,
  matchesLabels,
} from "../../api/label_selector.ts";
import type { KubernetesObject, ObjectMeta } from "../../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../../api/options.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import {
  type CacheEvent,
  CurrentEvent,
  keyOfHeader,
} from "../../cache/informer/cache_event.ts";
import {
  CLIENT_PARTS,
  SELECTION_RULES,
} from "../../cache/informer/informer_options.ts";
import {
  type InformerLease,
  selectionText,
} from "../../cache/informer/informer_pool.ts";
import type {
  HandlerRegistration,
  OwnWrite,
} from "../../cache/informer/shared_informer.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { checkIndex } from "../../cache/store/object_indexes.ts";
import type {
  InformerClient,
  InformerSelection,
} from "../../cache/watch/watch_requests.ts";
import type {
  EventSource,
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceHealth,
} from "../event_source.ts";
import type { ResumableContext } from "./source_group.ts";
import { accepts, FILTER_RULES, type Filters } from "../filters.ts";
import { checkNamespaces } from "../namespaces.ts";
import { NO_OWN_WRITE } from "./primary_source.ts";
import {
  byOwner,
  byOwnership,
  keyTexts,
  mapped,
  MappedEvent,
  type MappedObject,
  type Mapper,
} from "./mappers.ts";
import { ReferenceIndex } from "./reference_index.ts";
import { RememberedMapping } from "./remembered_mapping.ts";

/** Options of {@linkcode watch}. */
export interface WatchSourceOptions<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends Omit<InformerSelection, "namespaces" | "prune"> {
  /**
   * Paths to remove before an object is stored, such as
   * `status.conditions[*].lastProbeTime`; `[]` keeps everything.
   *
   * By default, `metadata.managedFields` keeps only the entries of the
   * operator's own controllers, which dependents are compared with; those of
   * other managers are removed.
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Name of the source, unique within the controller. Defaults to the kind with
   * its apiVersion, such as `apps/v1 Deployment`.
   */
  readonly name?: string | undefined;
  /**
   * Namespaces to watch; `"inherited"` follows those of the controller.
   *
   * @default {"inherited"}
   */
  readonly namespaces?: "inherited" | NamespaceSet | undefined;
  /**
   * Mapper from a secondary to its primaries. Defaults to `byOwner()`: the
   * primaries among its owners.
   */
  readonly mapper?: Mapper<P, S> | undefined;
  /**
   * Keys of the secondaries that a primary refers to; for secondaries that do
   * not name their primaries and may have many of them. It replaces `mapper`.
   */
  readonly references?:
    | ((primary: P) => Iterable<ObjectKey | string>)
    | undefined;
  /** Filters of the events that trigger runs. Defaults to no filters. */
  readonly filters?: Filters<S> | undefined;
  /** Client of the cluster of the secondaries. Defaults to the operator's. */
  readonly client?: InformerClient | undefined;
  /**
   * Whether the informer is shared with other users in the operator; a separate
   * one costs another watch and another cache.
   *
   * @default {true}
   */
  readonly shared?: boolean | undefined;
  /**
   * Whether the reconciler never writes these objects, so that the operator needs
   * only the permission to watch them. Defaults to true in the option `watches`
   * of a controller, and to false otherwise.
   */
  readonly readOnly?: boolean | undefined;
  /**
   * Start priority: a `"loader"` has synced before other sources start.
   *
   * @default {"default"}
   */
  readonly startPriority?: "loader" | "default" | undefined;
  /**
   * Field managers whose fields in these objects become the controller's, as with
   * its option `takeOver`, in addition to those named there.
   *
   * @default {[]}
   */
  readonly takeOver?: readonly string[] | undefined;
}

/** Event source that watches a kind. */
export interface WatchSource<
  P extends KubernetesObject,
  S extends KubernetesObject,
> extends EventSource<P, S> {
  /** Kind of the secondaries. */
  readonly kind: Kind<S>;
  /**
   * Adds a listener for deleted secondaries, for data that is kept about each.
   * Its argument is the key of a deleted secondary, or of one that was reset
   * when the server's data was restored from a backup, and undefined when the
   * source stops.
   */
  onGone(listener: (key: string | undefined) => void): void;
}

/** Name of the index of a mapper. */
function indexName(number: number): string {
  return `primary ${number}`;
}

const NAMESPACE_WORDS: readonly string[] = ["inherited", "all"];
const MAPPER_PARTS: OptionRules<Mapper<never, never>> = {
  primariesOf: "function",
  index: "object",
  indexValue: "function",
};

const RULES: OptionRules<WatchSourceOptions<never, never>> = {
  ...SELECTION_RULES,
  name: "name?",
  namespaces: {
    type: "any?",
    words: NAMESPACE_WORDS,
    check: (value, subject) => checkNamespaces(value, NAMESPACE_WORDS, subject),
  },
  mapper: {
    type: "any?",
    check(mapper: Mapper<never, never>, subject) {
      if (typeof mapper === "function") {
        throw new TypeError(
          `Cannot read the options of ${subject}: "mapper" must be made by byOwner(), byLabel(), byAnnotation() or byFunction(): received ${
            typeText(mapper)
          }`,
        );
      }
      checkParts(mapper, MAPPER_PARTS, `${subject}, mapper`);
      checkIndex(`of ${subject}, mapper`, mapper.index);
    },
  },
  references: "function?",
  filters: { type: "object?", options: FILTER_RULES },
  client: {
    type: "object?",
    check: (client, subject) =>
      checkParts(client, CLIENT_PARTS, `${subject}, client`),
  },
  shared: "boolean?",
  readOnly: "boolean?",
  startPriority: ["loader", "default", undefined],
  takeOver: "strings?",
};

/** Options of a source that select its objects and what is kept of them. */
function selectionOf<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(options: WatchSourceOptions<P, S>) {
  const { name: _, mapper: _m, references: _r, filters: _f, ...others } =
    options;
  const { readOnly: _o, startPriority: _p, takeOver: _t, ...selection } =
    others;
  return selection;
}

/**
 * Watches objects of another kind and triggers the primaries that they belong
 * to; an update triggers those of the previous and of the new state.
 *
 * Informers are shared with all users of the same selection and `prune` in the
 * operator, unless `shared` is `false`.
 *
 * @param kind Kind of the secondaries: one of `defineKind`,
 * `@coracle/operator/kinds` or `untyped`.
 * @param options Selection of the secondaries, and mapping to their primaries.
 * @throws {TypeError | RangeError} If the kind or an option is invalid.
 *
 * @example Own ConfigMaps
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { watch } from "@coracle/operator/sources";
 *
 * const source = watch(ConfigMap, { labelSelector: "app=web" });
 * ```
 */
export function watch<P extends KubernetesObject, S extends KubernetesObject>(
  kind: Kind<S>,
  options: WatchSourceOptions<P, S> = {},
): WatchSource<P, S> {
  return new WatchingSource(kind, options);
}

/** Mark of an event of an object that is as it was in a snapshot. */
const RESTORED = { isRestored: true };

/** State of a started source. */
interface Watching<P extends KubernetesObject, S extends KubernetesObject> {
  readonly context: SourceContext<P>;
  readonly informer: InformerLease<S>["informer"];
  readonly lease: InformerLease<S>;
  readonly registration: HandlerRegistration<S>;
}

/** Option of a controller that has a watch source, other than `sources`. */
type Role = "owns" | "watches";

/** Implementation of {@linkcode WatchSource} with an informer. */
export class WatchingSource<
  P extends KubernetesObject,
  S extends KubernetesObject = KubernetesObject,
> implements WatchSource<P, S> {
  name: string;
  readonly kind: Kind<S>;
  readonly startPriority: "loader" | "default";
  /** Handler of primary events; undefined without `references`. */
  readonly onPrimary?: (event: PrimaryEvent<P>) => void;
  readonly #given: WatchSourceOptions<P, S>;
  #options: WatchSourceOptions<P, S>;
  #role: Role | undefined;
  #mappers: readonly Mapper<P, S>[];
  readonly #references: ReferenceIndex = new ReferenceIndex();
  /** Primaries with an event while the start reads all of them. */
  #heard: Set<string> | undefined;
  /** Primary that each change triggers; undefined if the mappers say which. */
  #sole: string | undefined;
  /** Mapping of the previous states; only for a bounded cache. */
  #remembered: RememberedMapping | undefined;
  readonly #onGone: ((key: string | undefined) => void)[] = [];
  /** Context of the current start; undefined while stopped. */
  #context: SourceContext<P> | undefined;
  #watching: Watching<P, S> | undefined;

  /** Source that this one is a copy of, for a further controller; else itself. */
  readonly origin: WatchingSource<P, S>;

  constructor(
    kind: Kind<S>,
    options: WatchSourceOptions<P, S>,
    origin?: WatchingSource<P, S>,
  ) {
    this.origin = origin ?? this;
    checkKind(kind, "watch()");
    checkOptions(options, RULES, `watch() of ${kind.kind}`);
    this.#given = this.#options = options;
    this.kind = kind;
    this.name = options.name ?? kindText(kind);
    this.startPriority = options.startPriority ?? "default";
    this.#mappers = [options.mapper ?? byOwner()];
    if (options.references !== undefined) {
      this.onPrimary = ({ type, key, object }) => {
        this.#heard?.add(keyText(key));
        if (type === "deleted" || object === undefined) {
          this.#references.set(keyText(key), []);
        } else this.#refer(object);
      };
    }
  }

  get readOnly(): boolean {
    return this.#options.readOnly ?? this.#role === "watches";
  }

  /** Namespaces and fields of the objects to watch, and what is kept. */
  get selection(): Pick<
    WatchSourceOptions<never, never>,
    "fieldSelector" | "metadataOnly" | "namespaces"
  > {
    return this.#options;
  }

  /** Field managers whose fields in these objects become the controller's. */
  get takeOver(): readonly string[] {
    const { takeOver = [] } = this.#options;
    return [...this.#context?.takeOver ?? [], ...takeOver];
  }

  /** Whether the source watches another cluster than that of the operator. */
  get isRemote(): boolean {
    return this.#options.client !== undefined;
  }

  /** Whether the source watches objects that the controller owns. */
  get isOwned(): boolean {
    return this.#role === "owns";
  }

  /** Whether the source maps by owner references, as it does by default. */
  get mapsByOwner(): boolean {
    const { mapper, references } = this.#options;
    return mapper === undefined && references === undefined;
  }

  /** Whether its objects are those of others, which applying them does not own. */
  get isOfOthers(): boolean {
    const { index } = this.#options.mapper ?? {};
    return this.#role === "watches" && !this.isRemote && !this.mapsByOwner &&
      !(index && "byOwner" in index);
  }

  /**
   * Sets the use of the source, before it starts.
   *
   * @param role Option that has the source.
   * @param taken Names of the other sources, to which the name is added: a
   * default name that is taken gets a number, a name set by the user is kept.
   * @returns The source; a copy if another controller uses it.
   */
  usedAs(role: Role, taken: Set<string> = new Set()): WatchingSource<P, S> {
    if (this.#role !== undefined) {
      return this.#copy().usedAs(role, taken);
    }
    this.#role = role;
    if (this.#options.name === undefined) {
      const name = this.name = kindText(this.kind);
      for (let number = 2; taken.has(this.name); number++) {
        this.name = `${name} (${number})`;
      }
    }
    taken.add(this.name);
    if (role === "owns" && this.mapsByOwner) this.#mappers = byOwnership();
    return this;
  }

  #copy(): WatchingSource<P, S> {
    return new WatchingSource(this.kind, this.#given, this.origin);
  }

  /** Sets the only primary, which each change triggers, before the start. */
  usedBy(primary: string): WatchingSource<P, S> {
    if (this.#sole !== undefined || this.#role !== undefined) {
      return this.#copy().usedBy(primary);
    }
    this.#sole = primary;
    return this;
  }

  /**
   * Takes over the selection of another source of the kind, before the start, so
   * that both share one informer.
   */
  selectAs(other: WatchingSource<P>): void {
    this.#options = { ...this.#options, ...selectionOf(other.#options) };
  }

  /**
   * Whether its informer is also that of primaries with this selection, once both
   * keep the managed fields of the operator.
   */
  sharesWith(selection: InformerSelection): boolean {
    const { prune, shared = true, bounded, takeOver = [] } = this.#options;
    const ofPrimaries = selectionText({ ...selection, prune });
    return shared && !bounded && prune === undefined && !this.isRemote &&
      takeOver.length === 0 && selectionText(this.#options) === ofPrimaries;
  }

  /** Whether no option restricts the objects, fields or namespaces to watch. */
  get watchesAll(): boolean {
    const { name: _name, takeOver: _takeOver, ...others } = this.#options;
    return Object.values(others).every((value) => value === undefined);
  }

  /**
   * Reason why the source would not show an object with this metadata;
   * undefined if it would, or if only the server can decide.
   */
  whyHidden(metadata: Partial<ObjectMeta>): string | undefined {
    const { labelSelector, fieldSelector } = this.#options;
    const names = this.#watching?.informer.namespaces;
    const { namespace, labels } = metadata;
    if (names && namespace !== undefined && !names.includes(namespace)) {
      return `it watches the namespaces ${names.join(", ")}`;
    }
    if (
      labelSelector !== undefined &&
      !matchesLabels(labelRequirements(labelSelector), labels)
    ) {
      return `it watches the labels ${labelSelectorText(labelSelector)}`;
    }
    if (fieldSelector === undefined) return undefined;
    const known: Readonly<Record<string, string | undefined>> = {
      "metadata.name": metadata.name,
      "metadata.namespace": namespace,
    };
    const requirements = fieldRequirements(fieldSelector).filter(({ field }) =>
      known[field] !== undefined
    );
    return matchesFields(requirements, (field) => known[field] ?? "")
      ? undefined
      : `it watches the fields ${fieldSelectorText(fieldSelector)}`;
  }

  async start(context: SourceContext<P>): Promise<void> {
    this.#context = context;
    const { references, bounded } = this.#options;
    if (references !== undefined) {
      const heard = this.#heard = new Set<string>();
      const primaries = await context.primaries.readList();
      if (this.#context !== context) return;
      for (const primary of primaries) {
        if (!heard.has(keyText(keyOf(primary)))) this.#refer(primary);
      }
      this.#heard = undefined;
    }
    const wanted = this.#wanted;
    const names = await this.#namespacesOf(
      wanted === "inherited" ? context.namespaces : wanted,
      context,
    );
    if (this.#context !== context) return;
    const isMapped = references === undefined && this.#sole === undefined;
    this.#remembered = bounded && isMapped
      ? new RememberedMapping()
      : undefined;
    const {
      prune = [foreignManagedFields([
        ...context.fieldManagers,
        ...this.#options.takeOver ?? [],
      ])],
    } = this.#options;
    const lease = context.informers.acquire(this.kind, {
      ...selectionOf(this.#options),
      namespaces: names,
      prune,
    });
    const { informer } = lease;
    let registration: HandlerRegistration<S>;
    try {
      if (isMapped) {
        for (const [number, { index }] of this.#mappers.entries()) {
          informer.addIndex(indexName(number), index);
        }
      }
      registration = informer.addHandler(
        (event) => this.#onEvent(event, context, informer),
        { name: `${context.controller}/${this.name}` },
      );
    } catch (error) {
      // A stop would not know of it: each attempt to start would leave a watch.
      await lease.release();
      throw error;
    }
    this.#watching = { context, informer, lease, registration };
    await registration.synced;
  }

  async stop(): Promise<void> {
    const lease = this.#watching?.lease;
    this.#context = undefined;
    this.#watching = undefined;
    this.#references.clear();
    this.#remembered?.clear();
    for (const listener of this.#onGone) listener(undefined);
    await lease?.release();
  }

  get #wanted(): "inherited" | NamespaceSet {
    return this.#options.namespaces ?? "inherited";
  }

  async changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    const watching = this.#watching;
    if (this.#wanted !== "inherited" || watching === undefined) return;
    const { informer, context } = watching;
    const names = await this.#namespacesOf(namespaces, context);
    try {
      // Runs go on reading the caches that are complete.
      await informer.open(names);
      await informer.attach(names);
    } catch (error) {
      if (this.#watching === watching) throw error;
    }
    if (this.#watching !== watching) return;
    await informer.keep(names, {
      onLeft: (key) => this.#remembered?.set(key, []),
    });
  }

  /** Converts namespaces for the informer, where undefined means all. */
  async #namespacesOf(
    namespaces: NamespaceSet,
    context: SourceContext<P>,
  ): Promise<readonly string[] | undefined> {
    if (namespaces === "all") return undefined;
    const { client = context.client } = this.#options;
    const { scope } = this.kind.scope === undefined
      ? await client.resolve(this.kind)
      : this.kind;
    return scope === "Cluster" ? undefined : namespaces;
  }

  health(): SourceHealth {
    const health = this.#watching?.informer.health();
    if (health === undefined) return { status: "unknown" };
    if (health.healthy) return { status: "healthy" };
    const message = health.watches
      .map(({ lastError }) => lastError?.message)
      .find((text) => text !== undefined) ?? "not synced yet";
    return { status: "unhealthy", message };
  }

  get(key: ObjectKey): S | undefined | Promise<S | undefined> {
    const informer = this.#watching?.informer;
    return this.#options.bounded ? informer?.read(key) : informer?.get(key);
  }

  list(namespace?: string): readonly S[] | Promise<readonly S[]> {
    const informer = this.#watching?.informer;
    if (informer === undefined) return [];
    return this.#options.bounded
      ? informer.readList(namespace)
      : informer.list(namespace);
  }

  secondaries(primary: P): readonly S[] | Promise<readonly S[]> {
    if (this.#watching === undefined) return [];
    const { informer, context } = this.#watching;
    const { references, bounded } = this.#options;
    if (references !== undefined) {
      const keys = keyTexts(references(primary));
      return bounded
        ? Promise.all(keys.map((key) => informer.read(key))).then(present)
        : present(keys.map((key) => informer.get(key)));
    }
    const indexed = this.#mappers.map((mapper, number) =>
      [indexName(number), mapper.indexValue(primary)] as const
    );
    const wanted = keyText(keyOf(primary));
    // An index may contain too many.
    const belonging = (lists: readonly (readonly S[])[]) =>
      this.#mappers.flatMap((mapper, number) =>
        (lists[number] ?? []).filter((object) =>
          this.#guarded(
            keyText(keyOf(object)),
            () =>
              keyTexts(mapper.primariesOf(mapped(object), context.primaryKind)),
          ).includes(wanted)
        )
      );
    // Objects with only their key in a bounded cache are fetched.
    return bounded
      ? Promise.all(indexed.map((value) => informer.readByIndex(...value)))
        .then(belonging)
      : belonging(indexed.map((value) => informer.byIndex(...value)));
  }

  /** See `ResumableSource`. */
  wasIdle(key: string): boolean {
    const { informer, registration, context } = this.#watching ?? {};
    return informer?.isResumed(registration as HandlerRegistration<S>) ===
        true && informer.wasIdle(context?.controller ?? "", key);
  }

  /** See `ResumableSource`. */
  notePending(keys: () => Iterable<string>): void {
    const { informer, context } = this.#watching ?? {};
    if (context) informer?.notePending(context.controller, keys);
  }

  onGone(listener: (key: string | undefined) => void): void {
    this.#onGone.push(listener);
  }

  /** Bytes of a cached object in a version, borrowed; undefined if absent. */
  bodyOf(key: ObjectKey, version?: string): ByteRange | undefined {
    return this.#watching?.informer.bodyOf(key, version);
  }

  beginWrite(key: ObjectKey): OwnWrite<S> {
    return this.#watching?.registration.beginWrite(key) ?? NO_OWN_WRITE;
  }

  #refer(primary: P): void {
    const key = keyText(keyOf(primary));
    const references = () =>
      keyTexts(this.#options.references?.(primary) ?? []);
    this.#references.set(key, this.#guarded(key, references));
  }

  /** Result of a user's function; empty if it throws, which is logged. */
  #guarded(object: string, map: () => readonly string[]): readonly string[] {
    try {
      return map();
    } catch (error) {
      this.#context?.log.error("Cannot map an object", {
        source: this.name,
        object,
        error,
      });
      return [];
    }
  }

  #onEvent(
    event: CacheEvent<S>,
    context: SourceContext<P>,
    informer: Watching<P, S>["informer"],
  ): void {
    const isRestored = event instanceof CurrentEvent &&
      event.snapshot !== undefined;
    const { ignoresRestored } = context as Partial<ResumableContext>;
    // Its object is not read then: there may be a million of them.
    if (isRestored && ignoresRestored?.()) return;
    if (event.type === "deleted" || wentBack(event)) {
      for (const listener of this.#onGone) listener(event.key);
    }
    // The remembered mapping must follow every event, accepted or not.
    const followed = this.#remembered?.follow(
      event,
      () => this.#primaries(new MappedEvent(event, "object"), context),
    );
    if (!this.#accepts(event, context)) return;
    const cause = {
      kind: this.kind.kind,
      object: keyOfHeader(event.header),
      initial: event.initial,
      ...(isRestored && RESTORED),
    };
    if (this.#sole !== undefined) {
      context.trigger(this.#sole, cause);
      return;
    }
    const primaries = this.#options.references === undefined
      ? followed ?? this.#affected(event, context)
      : this.#references.primariesOf(event.key);
    for (const primary of primaries) context.trigger(primary, cause);
    if (event.header.isPartial && event.type !== "deleted") {
      // Only its key is cached: the object is read, and then mapped.
      informer.read(event.key).then((object) => {
        if (object === undefined) return;
        const primaries = [...this.#primaries(mapped(object), context)];
        this.#remembered?.set(event.key, primaries);
        for (const primary of primaries) context.trigger(primary, cause);
      }).catch((error: unknown) =>
        context.log.error("Cannot map an object", { source: this.name, error })
      );
    }
  }

  /** Whether the filters accept an event; a filter that throws accepts it. */
  #accepts(event: CacheEvent<S>, { log }: SourceContext<P>): boolean {
    try {
      return accepts(this.#options.filters ?? {}, event);
    } catch (error) {
      log.error("Cannot filter an event", { source: this.name, error });
      return true;
    }
  }

  /** Primaries of the previous and of the new state of a secondary. */
  #affected(event: CacheEvent<S>, context: SourceContext<P>): Set<string> {
    const after = new MappedEvent(event, "object");
    const affected = this.#primaries(after, context);
    // A mapper that has read only the metadata would give the same primaries.
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
    return new Set(
      this.#guarded(
        keyText(secondary),
        () =>
          this.#mappers.flatMap((mapper) =>
            keyTexts(mapper.primariesOf(secondary, context.primaryKind))
          ),
      ),
    );
  }
}

function present<S>(objects: readonly (S | undefined)[]): S[] {
  return objects.filter((object) => object !== undefined);
}

/**
 * Path of the managed fields of others than these managers. A controller that
 * is added later has another path, and therefore a separate informer that keeps
 * its own entries.
 */
export function foreignManagedFields(managers: readonly string[]): string {
  const own = managers.map((name) => JSON.stringify(name));
  return `metadata.managedFields[manager!=${own.join()}]`;
}

/** Whether a relist showed a version that is not newer than the previous one. */
function wentBack(
  { relist, header, previousHeader }: CacheEvent<KubernetesObject>,
): boolean {
  return relist && previousHeader !== undefined &&
    compareResourceVersions(
        header.resourceVersion,
        previousHeader.resourceVersion,
      ) <= 0;
}
