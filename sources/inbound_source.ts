import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
  SourceEvent,
  SourceHealth,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  ExternalCache,
  type ExternalCacheOptions,
} from "./external_cache.ts";
import { SourceRun, started } from "./source_run.ts";

/** A source that your own code triggers. */
export interface InboundSource<P extends KubernetesObject>
  extends EventSource<P, never> {
  /**
   * Asks for a run of a primary; ignored for one that is not known, and while
   * the source is not started.
   *
   * @param key The primary.
   * @param event Why, for `ctx.cause`.
   */
  trigger(key: ObjectKey | string, event?: SourceEvent): void;
}

/**
 * Lets any code of the program trigger runs: a message queue's consumer, a
 * file watcher, a test.
 *
 * @param name Unique within the controller.
 * @throws {TypeError | RangeError} If the name is no text, or empty.
 *
 * @example From a queue
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
  let context: SourceContext<P> | undefined;
  return {
    name,
    start(given) {
      context = given;
      return Promise.resolve();
    },
    stop() {
      context = undefined;
      return Promise.resolve();
    },
    health: () => ({ status: context === undefined ? "unknown" : "healthy" }),
    trigger: (key, event) => context?.trigger(key, event),
  };
}

/** Options of {@linkcode cachingInboundSource}. */
export interface CachingInboundOptions<P extends KubernetesObject, R>
  extends ExternalCacheOptions<R> {
  /** Unique within the controller. */
  readonly name: string;
  /**
   * Asks for the resources of a primary that is read before anything was pushed
   * for it.
   *
   * @default {it has none}
   */
  readonly fetch?:
    | ((primary: P) => Promise<Iterable<R>> | Iterable<R>)
    | undefined;
}

const RULES: OptionRules<CachingInboundOptions<never, never>> = {
  ...CACHE_RULES,
  name: "name",
  fetch: "function?",
};

/** A source that your own code pushes outside resources into. */
export interface CachingInboundSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** A resource of a primary is new or has changed. */
  push(key: ObjectKey | string, resource: R): void;
  /** These are all resources of a primary. */
  pushAll(key: ObjectKey | string, resources: Iterable<R>): void;
  /** A resource of a primary is gone; all of them by default. */
  remove(key: ObjectKey | string, id?: string): void;
}

/**
 * Takes outside resources that are pushed to the program, keeps the last state
 * of each, and triggers the primaries whose resources changed.
 *
 * @param options How resources are told apart.
 * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
 * sense.
 *
 * @example The last order of each shop
 * ```ts
 * import { cachingInboundSource } from "@coracle/operator/sources";
 *
 * const orders = cachingInboundSource<never, { id: string; total: number }>({
 *   name: "orders",
 *   id: ({ id }) => id,
 * });
 * // Once the operator has started, where a message of a queue comes in:
 * const receive = (shop: string, order: { id: string; total: number }) =>
 *   orders.push(`default/${shop}`, order);
 * if (typeof receive !== "function") throw new Error("Unexpected type");
 * ```
 */
export function cachingInboundSource<P extends KubernetesObject, R>(
  options: CachingInboundOptions<P, R>,
): CachingInboundSource<P, R> {
  return new CachingInbound(options);
}

class CachingInbound<P extends KubernetesObject, R>
  implements CachingInboundSource<P, R> {
  readonly name: string;
  readonly #fetch: CachingInboundOptions<P, R>["fetch"];
  readonly #cache: ExternalCache<R>;
  #run: SourceRun<P> | undefined;

  constructor(options: CachingInboundOptions<P, R>) {
    checkOptions(options, RULES, "cachingInboundSource()");
    this.name = options.name;
    this.#fetch = options.fetch;
    this.#cache = new ExternalCache(options);
  }

  start(context: SourceContext<P>): Promise<void> {
    this.#run = new SourceRun(context);
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    this.#cache.clear();
    return Promise.resolve();
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  onPrimary({ type, key }: PrimaryEvent<P>): void {
    if (type === "deleted") this.#cache.forget(keyText(key));
  }

  async secondaries(primary: P): Promise<R[]> {
    started(this.#run, this.name);
    const key = keyText(keyOf(primary));
    if (!this.#cache.has(key) && this.#fetch !== undefined) {
      const found = await this.#fetch(primary);
      // What was pushed meanwhile is newer than what was asked for.
      if (!this.#cache.has(key)) this.#cache.replace(key, found);
    }
    return this.#cache.of(key);
  }

  push(key: ObjectKey | string, resource: R): void {
    this.#changed(key, (text) => this.#cache.put(text, resource));
  }

  pushAll(key: ObjectKey | string, resources: Iterable<R>): void {
    this.#changed(key, (text) => this.#cache.replace(text, resources));
  }

  remove(key: ObjectKey | string, id?: string): void {
    this.#changed(key, (text) => this.#cache.delete(text, id));
  }

  #changed(key: ObjectKey | string, change: (text: string) => boolean): void {
    const run = this.#run;
    if (run === undefined) return;
    const text = typeof key === "string" ? key : keyText(key);
    if (change(text)) run.context.trigger(text);
  }
}
