import { immediate, isPromise } from "../../callback.ts";
import {
  isResolved,
  type Kind,
  kindText,
  sameKind,
  whyNoKeyOf,
} from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  keyOf,
  keyText,
  type ObjectKey,
  parseKey,
} from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import type { CacheEvent } from "../../cache/informer/cache_event.ts";
import { eachOf } from "../../cache/informer/own_write_window.ts";
import type {
  OwnWrite,
  OwnWriteResult,
} from "../../cache/informer/shared_informer.ts";
import type {
  EventSource,
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceEvent,
  SourceHealth,
} from "../event_source.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { deadline, type Timer } from "../../clock.ts";
import { pauseAfter } from "../../pace.ts";

/** Dependencies of event sources: the constant members of their context. */
export interface SourceDeps<P extends KubernetesObject> extends
  Omit<
    SourceContext<P>,
    "get" | "list" | "trigger" | "retryFailed" | "namespaces"
  > {
  /** Key of the only primary, which every event is one of; undefined if there are others. */
  readonly soleKey?: string | undefined;
}

/** Handler of the triggers of event sources. */
export interface TriggerHandler {
  /**
   * Handles a trigger: a resource that the primary depends on changed.
   *
   * @returns Whether this replica runs the primary.
   */
  onTrigger(key: string, source: string, event: SourceEvent): boolean;
  /** Repeats the failed runs of one or all primaries: a source works again. */
  retryFailed(key?: string): void;
  /** See {@linkcode ResumableContext}. */
  readonly ignoresRestored?: boolean | undefined;
}

/** What the context of a source that can begin with a snapshot has as well. */
export interface ResumableContext {
  /**
   * Whether objects that are as they were in a snapshot trigger nothing now: which
   * primaries run is decided when those are delivered.
   */
  ignoresRestored(): boolean;
}

/** Source that can begin with a snapshot. */
export interface ResumableSource {
  /**
   * Whether a primary had nothing to do at the time of the source's snapshot, and
   * the source has heard of every change since.
   */
  wasIdle(key: string): boolean;
  /** Notes in its snapshot which primaries wait for a run. */
  notePending(keys: () => Iterable<string>): void;
}

/** Source whose cache has objects as bytes. */
interface BodySource {
  bodyOf?(key: ObjectKey, version?: string): ByteRange | undefined;
}

/** Source that may be a copy of one of another controller. */
interface CopiedSource {
  readonly origin?: unknown;
}

const NO_DETAIL: SourceEvent = Object.freeze({});

/** Informers of the operators that have started sources. */
const STARTED: WeakMap<object, unknown> = new WeakMap();

/** Time limit for the stop of a source. */
const STOP_LIMIT_MS = 10_000;

/** Pauses between attempts to start a source of the leader. */
const PAUSE = { initial: 1_000, max: 60_000 } as const;

/**
 * Event sources of a controller: started in order, read together, stopped in
 * reverse order.
 */
export class SourceGroup<P extends KubernetesObject> {
  readonly #deps: SourceDeps<P>;
  readonly #sources: EventSource<P>[];
  /**
   * Whether any source follows the events of primaries; precomputed, since it
   * is read for each event.
   */
  followsPrimaries: boolean;
  /** Started sources, with promises that are fulfilled when they have synced. */
  readonly #started: Map<EventSource<P>, Promise<void>> = new Map();
  /**
   * Promise that is fulfilled when the sources are started, with the first
   * namespaces.
   */
  readonly #begun: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Handler of triggers; undefined before the start. */
  #handler: TriggerHandler | undefined;
  #namespaces: NamespaceSet = [];
  #stopped = false;
  /** Whether this replica runs primaries, and the sources of the leader. */
  #isLeading = false;
  /** Starts and stops of the sources of the leader, one after another. */
  #turns: Promise<void> | undefined;
  /** Numbers of attempts to start them that have failed in a row. */
  readonly #failures: Map<EventSource<P>, number> = new Map();
  #nextTurn: Timer | undefined;

  /** Creates a group of sources; others can be added later. */
  constructor(sources: readonly EventSource<P>[], deps: SourceDeps<P>) {
    this.#sources = [...sources];
    this.followsPrimaries = sources.some(followsPrimaries);
    this.#deps = deps;
  }

  /** Returns the source with a name; undefined if absent. */
  named(name: string): EventSource<P> | undefined {
    return this.#sources.find((source) => source.name === name);
  }

  /**
   * Starts all sources: loaders first, the others together, and last those of the
   * leader if this replica leads.
   *
   * @returns Fulfilled when all have synced.
   */
  async start(
    namespaces: NamespaceSet,
    handler: TriggerHandler,
  ): Promise<void> {
    this.#handler = handler;
    this.#namespaces = namespaces;
    this.#begun.resolve();
    const all = this.#sources.filter(({ leaderOnly }) => !leaderOnly);
    const loaders = all.filter(({ startPriority }) =>
      startPriority === "loader"
    );
    for (const group of [loaders, all]) {
      await Promise.all(group.map((source) => this.#startOne(source)));
    }
    await this.#takeTurn();
  }

  /**
   * Stops all sources, in reverse order of their start. A source that throws or
   * takes too long is logged and abandoned: it must not keep the others, or the
   * process, from stopping.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#nextTurn?.cancel();
    this.#begun.resolve();
    for (const source of [...this.#started.keys()].reverse()) {
      await this.#stopOne(source);
    }
    this.#started.clear();
  }

  /**
   * Adds a source while the controller runs. A source that cannot start is
   * removed.
   *
   * @returns The source of this name, which may have existed before; fulfilled
   * when it has synced.
   */
  async add(source: EventSource<P>): Promise<EventSource<P>> {
    const present = this.named(source.name);
    const added = present ?? source;
    if (present === undefined) {
      this.#sources.push(source);
      this.followsPrimaries ||= followsPrimaries(source);
    }
    try {
      // Its namespaces are not known before the others are started.
      await this.#begun.promise;
      await (added.leaderOnly ? this.#takeTurn() : this.#startOne(added));
    } catch (error) {
      if (added === source) await this.remove(source.name).catch(() => {});
      throw error;
    }
    return added;
  }

  /**
   * Tells the started sources that this replica takes over primaries, and starts
   * those of the leader.
   */
  lead(): void {
    this.#isLeading = true;
    for (const source of this.#started.keys()) {
      this.#call(source, () => source.onLead?.());
    }
    void this.#takeTurn();
  }

  /** Stops the sources of the leader. */
  unlead(): void {
    this.#isLeading = false;
    void this.#takeTurn();
  }

  /**
   * Promise that is fulfilled when the sources of the leader run or have stopped;
   * undefined if none starts or stops. One that cannot start does so later.
   */
  get turning(): Promise<void> | undefined {
    return this.#turns;
  }

  /** Starts or stops the sources of the leader, after earlier starts and stops. */
  #takeTurn(): Promise<void> | undefined {
    this.#nextTurn?.cancel();
    const isNeeded = this.#handler !== undefined && !this.#stopped &&
      this.#sources.some((source) =>
        source.leaderOnly && this.#started.has(source) !== this.#isLeading
      );
    if (!isNeeded && this.#turns === undefined) return undefined;
    const turn = Promise.resolve(this.#turns).then(() => this.#followLeader())
      .then(() => {
        if (this.#turns === turn) this.#turns = undefined;
      });
    return this.#turns = turn;
  }

  async #followLeader(): Promise<void> {
    const { clock, log } = this.#deps;
    let pause = Infinity;
    await Promise.all(this.#sources.map(async (source) => {
      if (!source.leaderOnly || this.#stopped) return;
      if (!this.#isLeading) {
        this.#failures.delete(source);
        if (this.#started.delete(source)) await this.#stopOne(source);
        return;
      }
      try {
        await this.#startOne(source);
        this.#failures.delete(source);
      } catch (error) {
        this.#started.delete(source);
        await this.#stopOne(source);
        const failures = (this.#failures.get(source) ?? 0) + 1;
        this.#failures.set(source, failures);
        const retryIn = pauseAfter(failures, PAUSE);
        pause = Math.min(pause, retryIn);
        if (this.#stopped) return;
        const fields = { source: source.name, retryIn, error };
        log.error("Cannot start an event source of the leader", fields);
      }
    }));
    if (pause === Infinity || this.#stopped) return;
    this.#nextTurn = clock.setTimer(() => void this.#takeTurn(), pause);
  }

  /** Removes a source and stops it. */
  async remove(name: string): Promise<void> {
    const source = this.named(name);
    if (source === undefined) return;
    this.#sources.splice(this.#sources.indexOf(source), 1);
    this.followsPrimaries = this.#sources.some(followsPrimaries);
    if (!this.#started.delete(source)) return;
    STARTED.delete(source);
    await source.stop();
  }

  /** Changes the namespaces of all sources that can follow a change. */
  async changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    this.#namespaces = namespaces;
    await Promise.all(
      Array.from(
        this.#started.keys(),
        (source) => source.changeNamespaces?.(namespaces),
      ),
    );
  }

  /**
   * Whether no source can have anything to do for a primary since the snapshots: all
   * began with one.
   */
  wasIdle(key: string): boolean {
    return this.#sources.every((source) =>
      (source as Partial<ResumableSource>).wasIdle?.(key) === true
    );
  }

  /** Notes in the snapshots of the sources which primaries wait for a run. */
  notePending(keys: () => Iterable<string>): void {
    for (const source of this.#sources) {
      (source as Partial<ResumableSource>).notePending?.(keys);
    }
  }

  /** Delivers an event to sources that follow primaries; exceptions are logged. */
  primaryEvent(event: PrimaryEvent<P>): void {
    for (const source of this.#started.keys()) {
      this.#call(source, () => source.onPrimary?.(event), event);
    }
  }

  /** Passes a change of a primary on to them. */
  primaryChanged(event: CacheEvent<P>): void {
    const key = parseKey(event.key);
    const type = event.type === "updated" ? "modified" : event.type;
    if (event.header.isPartial && type !== "deleted") {
      // Only its key is cached: they get the object once it is read.
      void this.primaryWritten(key, type);
      return;
    }
    this.primaryEvent({
      type,
      key,
      get object() {
        return event.object;
      },
    });
  }

  /** Reads a primary and passes it on; an own write of it has no event. */
  async primaryWritten(
    key: ObjectKey,
    type: PrimaryEvent<P>["type"] = "modified",
  ): Promise<void> {
    const { primaries, log } = this.#deps;
    try {
      const object = await primaries.read(key);
      if (object === undefined || !primaries.has(key)) return;
      this.primaryEvent({ type, key, object });
    } catch (error) {
      log.error("Cannot read a primary", { object: keyText(key), error });
    }
  }

  /** Calls a method of a source, which may be async; its errors are logged. */
  #call(
    source: EventSource<P>,
    method: () => unknown,
    event?: PrimaryEvent<P>,
  ): void {
    const failed = (error: unknown) =>
      this.#deps.log.error("An event source failed", {
        source: source.name,
        ...(event && { object: keyText(event.key) }),
        error,
      });
    try {
      const result = method();
      if (isPromise(result)) result.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Health of each source, by name. */
  health(): ReadonlyMap<string, SourceHealth> {
    return new Map(
      this.#sources.map((source) => [
        source.name,
        this.#failures.has(source)
          ? { status: "unhealthy", message: "it cannot start" }
          : source.leaderOnly && !this.#started.has(source)
          ? { status: "unknown", message: "it runs on the leader" }
          : healthOf(source),
      ]),
    );
  }

  ofKind(kind: Kind): readonly EventSource<P>[] {
    return this.#sources.filter((source) =>
      source.kind !== undefined && sameKind(source.kind, kind)
    );
  }

  /**
   * Reads an object from a cache if a source or the controller watches its
   * kind, and from the API server otherwise.
   */
  async read<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const { client, primaryKind, primaries } = this.#deps;
    const scoped = await this.#isClusterScoped(kind) ? { name: key.name } : key;
    if (sameKind(kind, primaryKind)) {
      return await primaries.read(keyText(scoped)) as KubernetesObject as T;
    }
    return this.ofKind(kind).some((source) => source.get !== undefined)
      ? await this.get(kind, scoped)
      : await client.find(kind, scoped, { signal });
  }

  async #isClusterScoped(kind: Kind): Promise<boolean> {
    const { client } = this.#deps;
    const { scope } = isResolved(kind) ? kind : await client.resolve(kind);
    return scope === "Cluster";
  }

  /** Reads objects of a kind from the caches or the server, like `read`. */
  async readList<T extends KubernetesObject>(
    kind: Kind<T>,
    within: string | undefined,
    signal?: AbortSignal,
  ): Promise<readonly T[]> {
    const { client, primaryKind, primaries } = this.#deps;
    // The namespace of a run says nothing of what is in none.
    const isAll = within === undefined || await this.#isClusterScoped(kind);
    const namespace = isAll ? undefined : within;
    if (sameKind(kind, primaryKind)) {
      const all: readonly unknown[] = await primaries.readList(namespace);
      return all as readonly T[];
    }
    if (this.ofKind(kind).some((source) => source.list !== undefined)) {
      return await this.list(kind, namespace);
    }
    const found: T[] = [];
    const all = client.listAll(kind, { namespace, signal });
    for await (const object of all) found.push(object);
    return found;
  }

  /** Waits until the other started sources of a kind have synced. */
  async #othersOf(kind: Kind, source: EventSource<P>): Promise<void> {
    await Promise.all(
      this.ofKind(kind).map((other) =>
        other === source ? undefined : this.#started.get(other)
      ),
    );
  }

  /** Reads an object from the caches of its kind; undefined if absent. */
  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<T | undefined> {
    const found: T[] = [];
    for (const source of this.ofKind(kind)) {
      const object = await source.get?.(key);
      if (object !== undefined) found.push(object as T);
    }
    return newestOfEach(found)[0];
  }

  /** Reads the objects of a kind from the caches, each once. */
  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace: string | undefined,
  ): Promise<readonly T[]> {
    return await merged(
      this.ofKind(kind),
      (source) => source.list?.(namespace) as Listing<T>,
    );
  }

  /**
   * Secondaries of a primary, of one kind, each once and in its newest state.
   *
   * @throws {TypeError} If there is no source of the kind.
   */
  async secondaries<T extends KubernetesObject>(
    kind: Kind<T>,
    primary: P,
  ): Promise<readonly T[]> {
    const sources = this.ofKind(kind).filter((source) => source.secondaries);
    if (sources.length === 0) {
      throw new TypeError(
        `Cannot find secondaries of ${
          kindText(kind)
        }: the controller does not watch the kind, so add it to owns or watches`,
      );
    }
    return await merged(
      sources,
      (source) => source.secondaries?.(primary) as Listing<T>,
    );
  }

  /** Number of a source within the group, in its order. */
  numberOf(source: EventSource<P>): number {
    return this.#sources.indexOf(this.#ownOf(source));
  }

  /** Secondary that one source has. */
  getFrom(
    source: EventSource<P>,
    key: ObjectKey,
  ): unknown {
    return this.#ownOf(source).get?.(key);
  }

  /** The source of this group that was made of one that several controllers use. */
  #ownOf(source: EventSource<P>): EventSource<P> {
    return this.#sources.includes(source)
      ? source
      : this.#sources.find((own) => (own as CopiedSource).origin === source) ??
        source;
  }

  /** Secondaries of a primary that one source has. */
  async secondariesOf(
    source: EventSource<P>,
    primary: P,
  ): Promise<readonly unknown[]> {
    return await this.#ownOf(source).secondaries?.(primary) ?? [];
  }

  /** Bytes of a cached object, borrowed; undefined if no cache has its version. */
  bodyOf(
    kind: Kind,
    { resourceVersion, ...key }: ObjectKey & {
      readonly resourceVersion?: string | undefined;
    },
  ): ByteRange | undefined {
    for (const source of this.ofKind(kind)) {
      const body = (source as BodySource).bodyOf?.(key, resourceVersion);
      if (body !== undefined) return body;
    }
    return undefined;
  }

  /** Begins a write of the controller in the caches of a kind. */
  beginWrites(kind: Kind, key: ObjectKey): OwnWrite[] {
    return this.ofKind(kind).flatMap((source) =>
      source.beginWrite === undefined ? [] : source.beginWrite(key)
    );
  }

  /** Starts a source once; rejected after a stop of the group. */
  #startOne(source: EventSource<P>): Promise<void> {
    let started = this.#started.get(source);
    const refusal = this.#stopped
      ? "the controller was stopped"
      : !started && STARTED.get(source) === this.#deps.informers
      ? "another controller has started it, so create one for each"
      : undefined;
    if (refusal !== undefined) {
      const error = `Cannot start event source "${source.name}": ${refusal}`;
      return Promise.reject(new Error(error));
    }
    if (started === undefined) {
      STARTED.set(source, this.#deps.informers);
      // Noted before the call, as the source may trigger within it.
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#started.set(source, started = promise);
      resolve(this.#begin(source));
    }
    return started;
  }

  async #begin(source: EventSource<P>): Promise<void> {
    const { soleKey, ...common } = this.#deps;
    const { log, primaryKind } = common;
    const namespaces = this.#namespaces;
    let isMisled = false;
    const context: SourceContext<P> & ResumableContext = {
      ...common,
      namespaces,
      get: async (kind, key) => {
        await this.#othersOf(kind, source);
        return await this.read(kind, key);
      },
      list: async (kind, namespace) => {
        await this.#othersOf(kind, source);
        return await this.readList(kind, namespace);
      },
      trigger: (key, event = NO_DETAIL) => {
        const text = soleKey ?? (typeof key === "string" ? key : keyText(key));
        const error = whyNoKeyOf(primaryKind, text);
        if (error !== undefined) {
          const fields = { source: source.name, error };
          if (!isMisled) {
            log.warn("An event source triggers what cannot exist", fields);
          }
          isMisled = true; // Once is enough.
          return false;
        }
        return this.#started.has(source) &&
          this.#handler?.onTrigger(text, source.name, event) === true;
      },
      retryFailed: (key) => {
        if (!this.#started.has(source)) return;
        this.#handler?.retryFailed(key && (soleKey ?? key));
      },
      ignoresRestored: () => this.#handler?.ignoresRestored === true,
    };
    await source.start(context);
    // A change during the start may have found nothing to change.
    const latest = this.#namespaces;
    if (latest !== namespaces) await source.changeNamespaces?.(latest);
  }

  async #stopOne(source: EventSource<P>): Promise<void> {
    const { clock, log } = this.#deps;
    const onTimeout = () =>
      new Error(
        `Cannot wait any longer: "stop" was not fulfilled within ${STOP_LIMIT_MS} ms`,
      );
    STARTED.delete(source);
    try {
      await deadline(() => source.stop(), STOP_LIMIT_MS, { clock, onTimeout });
    } catch (error) {
      log.error("Cannot stop an event source, it is left behind", {
        source: source.name,
        error,
      });
    }
  }
}

/** Health of a source; unhealthy if its `health` throws. */
function healthOf(source: EventSource): SourceHealth {
  try {
    return immediate(source.health?.(), "health()") ?? { status: "unknown" };
  } catch (error) {
    return { status: "unhealthy", message: `health() threw ${error}` };
  }
}

/** Combines the handles of several writes into one. */
export function allWrites(writes: readonly OwnWrite[]): OwnWrite {
  const [only] = writes;
  if (only !== undefined && writes.length === 1) return only;
  return {
    succeed(object: KubernetesObject | Uint8Array, result?: OwnWriteResult) {
      eachOf(writes, (write) => write.succeed(object, result));
    },
    fail() {
      eachOf(writes, (write) => write.fail());
    },
  };
}

type Listing<T> = readonly T[] | Promise<readonly T[]> | undefined;

/** Objects of several sources, each once and in its newest state. */
async function merged<S, T extends KubernetesObject>(
  sources: readonly S[],
  read: (source: S) => Listing<T>,
): Promise<readonly T[]> {
  const lists: (readonly T[])[] = [];
  for (const source of sources) lists.push([...await read(source) ?? []]);
  return lists.length === 1 ? lists[0]! : newestOfEach(lists.flat());
}

/** Removes duplicates; the newest state of an object is kept. */
function newestOfEach<T extends KubernetesObject>(objects: readonly T[]): T[] {
  const newest = new Map<string, T>();
  for (const object of objects) {
    const key = keyText(keyOf(object));
    const other = newest.get(key);
    const version = object.metadata.resourceVersion ?? "";
    const known = other?.metadata.resourceVersion ?? "";
    if (other === undefined || compareResourceVersions(version, known) > 0) {
      newest.set(key, object);
    }
  }
  return [...newest.values()];
}

function followsPrimaries<P extends KubernetesObject>(
  source: EventSource<P>,
): boolean {
  return source.onPrimary !== undefined;
}
