import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import type { Context } from "../core/controller/context.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceEvent,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  CachingSource,
  type ExternalCacheOptions,
  resourcesOf,
} from "./external_cache.ts";
import { BaseSource, fetchContext, type SourceRun } from "./source_run.ts";

/** Event source that the program triggers. */
export interface InboundSource<P extends KubernetesObject>
  extends EventSource<P, never> {
  /**
   * Requests a run of a primary. Ignored for an unknown primary, and while the
   * source is stopped.
   *
   * @param key The primary.
   * @param event The event, which becomes `ctx.cause`.
   */
  trigger(key: ObjectKey | string, event?: SourceEvent): void;
}

/**
 * Creates an event source that any code of the program can trigger: the
 * consumer of a message queue, a file watcher, a test.
 *
 * @param name The name of the source, unique within the controller.
 * @throws {TypeError | RangeError} If the name is not a string, or empty.
 *
 * @example Trigger runs from a queue
 * ```ts
 * import { inboundSource } from "@coracle/operator/sources";
 *
 * const orders = inboundSource("orders");
 * orders.trigger("default/shop"); // does nothing before the operator starts
 * ```
 */
export function inboundSource<P extends KubernetesObject>(
  name: string,
): InboundSource<P> {
  checkOption(name, "name", { name: "name", subject: "inboundSource()" });
  return new Inbound(name);
}

class Inbound<P extends KubernetesObject> extends BaseSource<P>
  implements InboundSource<P> {
  trigger(key: ObjectKey | string, event?: SourceEvent): void {
    this.run?.context.trigger(key, event);
  }
}

/** Options of {@linkcode cachingInboundSource}. */
export interface CachingInboundOptions<P extends KubernetesObject, R>
  extends ExternalCacheOptions<R> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /**
   * Fetches the resources of a primary that is read before any were pushed. By
   * default such a primary has no resources. The context has the client and the
   * caches of the controller.
   */
  readonly fetch?:
    | ((
      primary: P,
      ctx: Pick<Context<P>, "signal" | "client" | "log" | "get" | "list">,
    ) => Promise<Iterable<R>> | Iterable<R>)
    | undefined;
}

const RULES: OptionRules<CachingInboundOptions<never, never>> = {
  ...CACHE_RULES,
  name: "name",
  fetch: "function?",
};

/** Event source that caches the external resources which the program pushes. */
export interface CachingInboundSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /**
   * Adds or updates a resource of a primary. Of primaries that do not exist yet,
   * the resources of the last 1,000 are kept.
   */
  push(key: ObjectKey | string, resource: R): void;
  /** Replaces all resources of a primary. */
  pushAll(key: ObjectKey | string, resources: Iterable<R>): void;
  /** Removes a resource of a primary; all its resources without an id. */
  remove(key: ObjectKey | string, id?: string): void;
}

/**
 * Creates an event source into which the program pushes external resources. It
 * caches the last state of each, and triggers the primaries whose resources
 * have changed.
 *
 * @param options The name, and the function that identifies resources.
 * @throws {TypeError | RangeError} If an option is unknown, missing or invalid.
 *
 * @example The last order of each shop
 * ```ts
 * import { cachingInboundSource } from "@coracle/operator/sources";
 *
 * const orders = cachingInboundSource<never, { id: string; total: number }>({
 *   name: "orders",
 *   id: ({ id }) => id,
 * });
 * // Once the operator has started, for each message of a queue:
 * const receive = (shop: string, order: { id: string; total: number }) =>
 *   orders.push(`default/${shop}`, order);
 * ```
 */
export function cachingInboundSource<P extends KubernetesObject, R>(
  options: CachingInboundOptions<P, R>,
): CachingInboundSource<P, R> {
  return new CachingInbound(options);
}

/** Maximum number of unknown primaries whose resources are kept. */
const MAX_UNKNOWN = 1_000;

/** First fetch of the resources of a primary, while it is in progress. */
interface FirstFetch<R> {
  found: Promise<R[]>;
  /** Ids of the resources that were removed since it began; "all" if all were. */
  removed: Set<string> | "all";
}

class CachingInbound<P extends KubernetesObject, R> extends CachingSource<P, R>
  implements CachingInboundSource<P, R> {
  /** Primaries that do not exist, or not yet, the last pushed at the end. */
  readonly #unknown: Set<string> = new Set();
  readonly #fetch: CachingInboundOptions<P, R>["fetch"];
  /** First fetches in progress, by primary. */
  readonly #fetches: Map<string, FirstFetch<R>> = new Map();

  constructor(options: CachingInboundOptions<P, R>) {
    checkOptions(options, RULES, "cachingInboundSource()");
    super(options);
    this.#fetch = options.fetch;
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#unknown.clear();
    this.#fetches.clear();
  }

  onPrimary({ type, key }: PrimaryEvent<P>): void {
    const text = keyText(key);
    this.#unknown.delete(text);
    if (type !== "deleted") return;
    this.cache.forget(text);
    this.#fetches.delete(text);
  }

  async secondaries(primary: P): Promise<R[]> {
    const run = this.started;
    const key = keyText(keyOf(primary));
    const fetching = this.#fetches.get(key)?.found ??
      (this.#fetch === undefined || this.cache.has(key)
        ? undefined
        : this.#fetchFirst(primary, run, this.#fetch));
    return await fetching ?? this.cache.of(key);
  }

  /** Fetches the resources of a primary that has no pushed ones. */
  #fetchFirst(
    primary: P,
    run: SourceRun<P>,
    fetch: NonNullable<CachingInboundOptions<P, R>["fetch"]>,
  ): Promise<R[]> {
    const key = keyText(keyOf(primary));
    const first: FirstFetch<R> = {
      found: Promise.resolve([]),
      removed: new Set(),
    };
    const read = async () => {
      const ctx = fetchContext(run, run.signal, primary);
      const found = resourcesOf(await fetch(primary, ctx), this.name, key);
      const isNewest = this.#fetches.get(key) === first;
      if (run.ended || !isNewest) return [...found];
      const pushed = this.cache.of(key);
      if (run.context.primaries.has(key)) {
        const { removed } = first;
        // What was pushed or removed since may be newer than what was fetched.
        this.cache.replace(key, removed === "all" ? [] : found);
        if (removed !== "all") {
          for (const id of removed) this.cache.delete(key, id);
        }
        for (const resource of pushed) this.cache.put(key, resource);
        // It was deleted: nothing would forget its resources.
      } else if (pushed.length === 0) return [...found];
      return this.cache.of(key);
    };
    this.#fetches.set(key, first);
    return first.found = read().finally(() => {
      if (this.#fetches.get(key) === first) this.#fetches.delete(key);
    });
  }

  push(key: ObjectKey | string, resource: R): void {
    this.#change(key, (text) => this.cache.put(text, resource));
  }

  pushAll(key: ObjectKey | string, resources: Iterable<R>): void {
    this.#change(
      key,
      (text) =>
        this.cache.replace(text, resourcesOf(resources, this.name, text)),
      (first) => first.removed = "all",
    );
  }

  remove(key: ObjectKey | string, id?: string): void {
    this.#change(key, (text) => this.cache.delete(text, id), (first) => {
      if (id === undefined) first.removed = "all";
      else if (first.removed !== "all") first.removed.add(id);
    });
  }

  #change(
    key: ObjectKey | string,
    change: (text: string) => boolean,
    note: (first: FirstFetch<R>) => void = () => {},
  ): void {
    const { run } = this;
    if (run === undefined) return;
    const text = typeof key === "string" ? key : keyText(key);
    const changed = change(text);
    const first = this.#fetches.get(text);
    if (first !== undefined) note(first);
    if (!run.context.primaries.has(text)) this.#limitUnknown(text);
    if (changed) run.context.trigger(text);
  }

  /** Nothing forgets the resources of a primary that never comes. */
  #limitUnknown(key: string): void {
    this.#unknown.delete(key);
    this.#unknown.add(key);
    if (this.#unknown.size <= MAX_UNKNOWN) return;
    const [oldest = ""] = this.#unknown;
    this.#unknown.delete(oldest);
    this.cache.forget(oldest);
  }
}
