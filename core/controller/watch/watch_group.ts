import type { KubernetesObject } from "../../api/object.ts";
import { type Clock, deadline } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { NamespaceSet } from "../event_source.ts";
import type { Primaries, PrimaryHandler } from "./primary_source.ts";
import type { SourceGroup, TriggerHandler } from "./source_group.ts";

/** Handler of all events that can cause a run. */
export interface EventHandler<P extends KubernetesObject>
  extends PrimaryHandler<P>, TriggerHandler {}

export interface WatchGroupDeps<P extends KubernetesObject> {
  readonly primaries: Primaries<P>;
  readonly sources: SourceGroup<P>;
  /** Handler of the events of primaries and sources. */
  readonly handler: EventHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Time limit for other namespaces to sync after the first one. */
const SYNC_GRACE_MS = 1_000;

/**
 * Watches of a controller, on its primaries and sources. Events of the
 * primaries of a namespace are delivered when their cache, and the caches of
 * the sources in that namespace, are complete.
 */
export class WatchGroup<P extends KubernetesObject> {
  readonly #deps: WatchGroupDeps<P>;
  #sourcesStarted = false;
  /** Promise of the last group of namespaces to attach, one after another. */
  #attaching: Promise<void> = Promise.resolve();
  /** Number of the latest call of {@linkcode watch}. */
  #latest = 0;
  /** Promise of the latest call of {@linkcode watch}. */
  #watching: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: WatchGroupDeps<P>) {
    this.#deps = deps;
    deps.primaries.handle(deps.handler);
  }

  /**
   * Watches the given namespaces and no others. The watches of namespaces that
   * stay continue. A call during another one replaces it: both then wait for
   * the namespaces of the later call.
   *
   * @param partly Whether to start with the namespaces that can be watched, and
   * to add the others when they can be.
   * @returns Fulfilled when all can run; if `partly`, when the first can.
   * @throws {Error} If the controller was stopped before.
   */
  async watch(namespaces: NamespaceSet, partly: boolean): Promise<void> {
    this.#checkNotStopped();
    const call = ++this.#latest;
    let watching = this.#watching = this.#watch(namespaces, partly, call);
    for (;;) {
      try {
        await watching;
        if (watching === this.#watching) break;
      } catch (error) {
        if (watching === this.#watching) throw error;
      }
      watching = this.#watching;
    }
    this.#checkNotStopped();
  }

  #checkNotStopped(): void {
    if (!this.#stopped) return;
    throw new Error("Cannot watch namespaces: the controller was stopped");
  }

  async #watch(
    namespaces: NamespaceSet,
    partly: boolean,
    call: number,
  ): Promise<void> {
    const { primaries } = this.#deps;
    const names = primaries.namespacesOf(namespaces);
    // The watch of all namespaces replaces those of single ones when it has
    // synced; namespaces that are not wanted are left immediately.
    if (names !== undefined) await this.#keep(names);
    // Nothing would close what a replaced or stopped call opens from here on.
    if (call !== this.#latest) return;
    if (partly && names !== undefined && names.length > 1) {
      await this.#attachPartly(names, call);
      return;
    }
    await primaries.cache.open(names);
    await this.#attach(names, call);
    if (call === this.#latest) await this.#keep(names);
  }

  async stop(): Promise<void> {
    this.#latest++;
    this.#stopped = true;
    this.#sourcesStarted = false;
    const { primaries, sources } = this.#deps;
    await sources.stop();
    await this.#keep([]);
    await primaries.release();
  }

  #keep(names: readonly string[] | undefined): Promise<void> {
    const { primaries, handler } = this.#deps;
    return primaries.cache.keep(names, {
      onLeft: (key, place) => handler.onPrimaryLeft(key, place),
      onMoved: (from, to) => handler.onPrimaryMoved(from, to),
    });
  }

  async #attachPartly(names: readonly string[], call: number): Promise<void> {
    const { primaries, clock, log } = this.#deps;
    const synced = new Set<string>();
    const opened = new Map(
      names.map((name) => [
        name,
        primaries.cache.open([name]).then(() => void synced.add(name)),
      ]),
    );
    await Promise.any(opened.values());
    await deadline(Promise.allSettled(opened.values()), SYNC_GRACE_MS, {
      clock,
    }).catch(() => {});
    const first = [...synced];
    await this.#attach(first, call);
    const late = names.filter((name) => !first.includes(name));
    if (late.length === 0) return;
    log.warn("Some namespaces cannot be watched; the others run", {
      namespaces: late,
    });
    for (const name of late) {
      // A watch that is closed before it has synced is not a failure.
      opened.get(name)?.then(() => this.#attach([name], call)).catch(
        (error: unknown) => {
          if (call === this.#latest) {
            log.error("Cannot watch a namespace", { namespace: name, error });
          }
        },
      );
    }
  }

  /** Starts the sources of namespaces, and then attaches the primaries. */
  #attach(names: readonly string[] | undefined, call: number): Promise<void> {
    const attached = this.#attaching.then(async () => {
      if (call !== this.#latest) return;
      const { primaries: { cache }, sources, handler } = this.#deps;
      const before = cache.namespaces;
      const now = before === undefined || names === undefined
        ? "all"
        : [...new Set([...before, ...names])].sort();
      if (this.#sourcesStarted) await sources.changeNamespaces(now);
      else {
        this.#sourcesStarted = true;
        await sources.start(now, handler);
      }
      await cache.attach(names);
    });
    this.#attaching = attached.catch(() => {});
    return attached;
  }
}
