import type { KubernetesObject } from "../api/object.ts";
import { type Clock, deadline } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { NamespaceSet } from "./event_source.ts";
import type {
  PrimaryHandler,
  PrimarySource,
  WatchName,
} from "./primary_source.ts";
import type { SourceGroup, TriggerHandler } from "./source_group.ts";

/** Receiver of everything that can cause a run. */
export interface EventHandler<P extends KubernetesObject>
  extends PrimaryHandler<P>, TriggerHandler {}

/** What a {@linkcode WatchGroup} works with. */
export interface WatchGroupOptions<P extends KubernetesObject> {
  readonly primaries: PrimarySource<P>;
  readonly sources: SourceGroup<P>;
  /** Receives the events of primaries and sources. */
  readonly handler: EventHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How namespaces are begun with. */
export interface WatchOptions {
  /**
   * Whether to begin with those that can be watched, and to go on waiting for the
   * others.
   */
  readonly partly: boolean;
  /** Called when the first of them can run. */
  readonly onReady?: (() => void) | undefined;
}

/** How many milliseconds others may take once the first of several has synced. */
const PATIENCE = 1_000;

/**
 * The primaries and the sources of a controller, watched in step: no primary of a
 * namespace is told of before its own cache, and what the sources have in that
 * namespace, are complete.
 *
 * @typeParam P The type of the primaries.
 */
export class WatchGroup<P extends KubernetesObject> {
  readonly #options: WatchGroupOptions<P>;
  #sourcesStarted = false;
  /** Namespaces are begun with one group after the other. */
  #entering: Promise<void> = Promise.resolve();
  /** Which call of {@linkcode WatchGroup.watch} is the latest. */
  #latest = 0;
  /** What the latest call waits for. */
  #watching: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @param options What it works with. */
  constructor(options: WatchGroupOptions<P>) {
    this.#options = options;
  }

  /**
   * Watches these namespaces and no others. What was watched before and still is,
   * is not disturbed. A call during another one takes its place: both then wait
   * for the same.
   *
   * @returns Fulfilled when they can run; with `partly` when the first can.
   * @throws {Error} If everything was stopped meanwhile.
   */
  async watch(namespaces: NamespaceSet, options: WatchOptions): Promise<void> {
    const call = ++this.#latest;
    let watching = this.#watching = this.#watch(namespaces, options, call);
    for (;;) {
      try {
        await watching;
        if (watching === this.#watching) break;
      } catch (error) {
        if (watching === this.#watching) throw error;
      }
      watching = this.#watching;
    }
    if (this.#stopped) {
      throw new Error(
        "Cannot watch namespaces: the controller was stopped",
      );
    }
    options.onReady?.();
  }

  async #watch(
    namespaces: NamespaceSet,
    options: WatchOptions,
    call: number,
  ): Promise<void> {
    const { primaries, handler } = this.#options;
    const names = primaries.namesOf(namespaces);
    // A single watch of all covers what is watched by namespace until it has
    // synced; what it does not cover is left at once.
    if (namespaces !== "all") await primaries.keep(names, handler);
    const opened = names.map((name) => primaries.open(name));
    if (options.partly && names.length > 1) {
      await this.#enterPartly(names, opened, call);
      return;
    }
    await Promise.all(opened);
    await this.#enter(names, call);
    if (call === this.#latest) await primaries.keep(names, handler);
  }

  /** Watches nothing any more. */
  async stop(): Promise<void> {
    this.#latest++;
    this.#stopped = true;
    this.#sourcesStarted = false;
    const { primaries, sources, handler } = this.#options;
    await sources.stop();
    await primaries.keep([], handler);
  }

  async #enterPartly(
    names: readonly WatchName[],
    opened: readonly Promise<void>[],
    call: number,
  ): Promise<void> {
    const synced = new Set<WatchName>();
    const marked = opened.map((promise, index) =>
      promise.then(() => {
        synced.add(names[index] as WatchName);
      })
    );
    await Promise.any(marked);
    await deadline(Promise.allSettled(marked), PATIENCE, {
      clock: this.#options.clock,
    }).catch(() => {});
    const first = [...synced];
    await this.#enter(first, call);
    const late = names.filter((name) => !first.includes(name));
    if (late.length === 0) return;
    const { log } = this.#options;
    log.warn("Some namespaces cannot be watched yet, the others run", {
      namespaces: late,
    });
    for (const name of late) {
      // A watch that is closed before it has synced is no failure.
      marked[names.indexOf(name)]?.then(() => this.#enter([name], call)).catch(
        (error: unknown) => {
          if (call === this.#latest) {
            log.error("Cannot watch a namespace", { namespace: name, error });
          }
        },
      );
    }
  }

  /** Lets the sources and then the events of namespaces in. */
  #enter(names: readonly WatchName[], call: number): Promise<void> {
    const entered = this.#entering.then(async () => {
      if (call !== this.#latest) return;
      const { primaries, sources, handler } = this.#options;
      const before = primaries.attached;
      const now = before === "all" || names.includes("")
        ? "all"
        : [...new Set([...before, ...names])].sort();
      if (this.#sourcesStarted) await sources.changeNamespaces(now);
      else {
        this.#sourcesStarted = true;
        await sources.start(now, handler);
      }
      await Promise.all(names.map((name) => primaries.attach(name, handler)));
    });
    this.#entering = entered.catch(() => {});
    return entered;
  }
}
