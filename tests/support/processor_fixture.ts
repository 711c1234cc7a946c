import type {
  CacheEvent,
  ControllerOptions,
  KubernetesObject,
  ObjectKey,
} from "@coracle/operator/core";
import { keyText } from "../../core/api/object_key.ts";
import type { ConcurrencyCap } from "../../core/controller/run/concurrency_cap.ts";
import { controllerSettings } from "../../core/controller/controller_settings.ts";
import {
  EventProcessor,
  type EventProcessorDeps,
} from "../../core/controller/run/event_processor.ts";
import type { Run, RunResult } from "../../core/controller/run/run.ts";
import type { RunObserver } from "../../core/controller/run/run_observers.ts";
import { FRESH, type RunPlan } from "../../core/controller/run/run_state.ts";
import type { ShardAssignment } from "../../core/controller/shard.ts";
import { silentLogger } from "../../core/logger.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";

/** Primary of the tests. */
export interface Gadget extends KubernetesObject {
  spec: { color: string };
}

/** How a {@linkcode ProcessorFixture} starts. */
export interface ProcessorCaseOptions {
  readonly settings?: ControllerOptions<Gadget> | undefined;
  readonly cap?: ConcurrencyCap | undefined;
  readonly clock?: VirtualClock | undefined;
  readonly shard?: ShardAssignment | undefined;
  readonly mayRun?: (() => boolean) | undefined;
  readonly random?: (() => number) | undefined;
  readonly sources?: EventProcessorDeps<Gadget>["sources"] | undefined;
  /** Observers that are called before the fixture. */
  readonly observers?: readonly RunObserver<Gadget>[] | undefined;
}

/** A run that waits until the test says how it ends. */
export interface OpenRun {
  readonly run: Run<Gadget>;
  end(result?: RunResult): void;
}

/** An end without anything to add. */
export const DONE: RunResult = { end: { type: "done" } };
/** A failure that is retried. */
export const FAILED: RunResult = {
  end: { type: "failed", final: false },
  error: new Error("As asked"),
};

/**
 * Event processor on a virtual clock with primaries in a map; the test ends its
 * runs.
 */
export class ProcessorFixture {
  readonly clock: VirtualClock;
  readonly primaries: Map<string, Gadget> = new Map();
  /** Keys by place; the place of a deleted primary is used again. */
  readonly #places: string[] = [];
  readonly processor: EventProcessor<Gadget>;
  /** The runs that have not ended, by key. */
  readonly open: Map<string, OpenRun> = new Map();
  /** All runs, in the order in which they began. */
  readonly begun: Run<Gadget>[] = [];
  readonly plans: (RunPlan | undefined)[] = [];
  /** Logged errors. */
  readonly faults: string[] = [];
  /**
   * Result of a run that ends immediately; undefined leaves the run to the test.
   */
  script: ((run: Run<Gadget>) => RunResult | undefined) | undefined;
  #lastUid = 0;
  #lastVersion = 0;

  constructor(options: ProcessorCaseOptions = {}) {
    const { clock = new VirtualClock(), cap } = options;
    this.clock = clock;
    const { primaries } = this;
    const text = (key: ObjectKey | string) =>
      typeof key === "string" ? key : keyText(key);
    this.processor = new EventProcessor<Gadget>({
      settings: controllerSettings(
        { kind: "Gadget" },
        { reconcile() {} },
        { retry: { jitter: 0 }, ...options.settings },
      ),
      primaries: {
        keyAt: (place) => this.#keyAt(place),
        placeOf: (key) => this.#placeOf(text(key)),
        getAt: (place) => primaries.get(this.#keyAt(place) ?? ""),
        get: (key) => primaries.get(text(key)),
        has: (key) => primaries.has(text(key)),
        keys: () => primaries.keys(),
        list: () => [...primaries.values()],
        byIndex: () => [],
        read: (key) => Promise.resolve(primaries.get(text(key))),
        readList: () => Promise.resolve([...primaries.values()]),
      },
      finalizer: undefined,
      sources: options.sources ??
        { followsPrimaries: false, primaryChanged() {}, primaryEvent() {} },
      shard: options.shard,
      mayRun: options.mayRun ?? (() => true),
      dispatcher: { dispatch: (run) => this.#dispatch(run) },
      cap,
      clock,
      random: options.random ?? (() => 0.5),
      log: {
        ...silentLogger,
        error: (message, fields) =>
          this.faults.push(`${message}: ${fields?.["error"]}`),
      },
      observers: [...options.observers ?? [], {
        ended: (_run, _result, plan) => this.plans.push(plan),
      }],
    });
  }

  /** The keys of all runs, in the order in which they began. */
  get keys(): string[] {
    return this.begun.map((run) => run.key);
  }

  /** Whether the processor has no state of a key, so that no source can trigger it. */
  isForgotten(key: string): boolean {
    const { waiting } = this.processor;
    this.processor.onTrigger(key, "probe", {});
    return this.processor.waiting === waiting &&
      this.processor.stateOf(key) === FRESH;
  }

  /** Adds a primary with the event of a watch. */
  add(key: string, changes: Partial<CacheEvent<Gadget>> = {}): Gadget {
    const object = this.#make(key, `uid-${++this.#lastUid}`);
    const free = this.#places.findIndex((_, place) =>
      this.#keyAt(place) === undefined
    );
    this.#places[free < 0 ? this.#places.length : free] = key;
    this.primaries.set(key, object);
    this.#deliver("added", key, object, changes);
    return object;
  }

  /** Changes a primary with the event of a watch. */
  update(key: string, changes: Partial<CacheEvent<Gadget>> = {}): Gadget {
    const old = this.primaries.get(key) as Gadget;
    const object = this.#make(key, old.metadata.uid as string);
    if (old.metadata.deletionTimestamp !== undefined) {
      object.metadata.deletionTimestamp = old.metadata.deletionTimestamp;
    }
    this.primaries.set(key, object);
    this.#deliver("updated", key, object, changes);
    return object;
  }

  /** Marks a primary for deletion with the event of a watch. */
  mark(key: string): void {
    const object = this.primaries.get(key) as Gadget;
    object.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    this.update(key);
  }

  /** Deletes a primary with the event of a watch. */
  delete(key: string): void {
    const object = this.primaries.get(key) as Gadget;
    const place = this.#placeOf(key);
    this.primaries.delete(key);
    this.processor.onPrimary(event("deleted", key, object, {}), place);
  }

  /** Ends the watch of the namespace of a primary. */
  leave(key: string): void {
    const place = this.#placeOf(key);
    this.primaries.delete(key);
    this.processor.onPrimaryLeft(key, place);
  }

  /** Replaces the watch of all primaries by another one. */
  handOver(): void {
    const from = this.#places.length;
    for (const key of this.primaries.keys()) {
      const place = this.#placeOf(key);
      this.#places[place] = "";
      this.#places.push(key);
      this.processor.onPrimaryMoved(place, this.#placeOf(key));
    }
    if (this.#places.length === from) throw new Error("Nothing is watched");
  }

  #keyAt(place: number): string | undefined {
    const key = this.#places[place];
    return key !== undefined && this.primaries.has(key) &&
        this.#places.indexOf(key) === place
      ? key
      : undefined;
  }

  #placeOf(key: string): number {
    return this.primaries.has(key) ? this.#places.indexOf(key) : -1;
  }

  #deliver(
    type: "added" | "updated",
    key: string,
    object: Gadget,
    changes: Partial<CacheEvent<Gadget>>,
  ): void {
    const place = this.#placeOf(key);
    this.processor.onPrimary(event(type, key, object, changes), place);
  }

  /** Lets everything happen that happens without time passing. */
  settle(): Promise<void> {
    return this.clock.settle();
  }

  /** Ends the run of a key and settles. */
  async end(key: string, result: RunResult = DONE): Promise<void> {
    const open = this.open.get(key);
    if (open === undefined) throw new Error(`No run of ${key}`);
    open.end(result);
    await this.settle();
  }

  #make(key: string, uid: string): Gadget {
    const [namespace = "", name = ""] = key.split("/");
    const resourceVersion = String(++this.#lastVersion);
    return {
      metadata: { namespace, name, uid, resourceVersion },
      spec: { color: "blue" },
    };
  }

  #dispatch(run: Run<Gadget>): Promise<RunResult> {
    this.begun.push(run);
    run.step = run.primary.metadata.deletionTimestamp === undefined
      ? "reconcile"
      : "cleanup";
    if (this.open.has(run.key)) throw new Error(`Two runs of ${run.key}`);
    const scripted = this.script?.(run);
    if (scripted !== undefined) return Promise.resolve(scripted);
    return new Promise((resolve) => {
      this.open.set(run.key, {
        run,
        end: (result = DONE) => {
          this.open.delete(run.key);
          resolve(result);
        },
      });
    });
  }
}

function event(
  type: "added" | "updated" | "deleted",
  key: string,
  object: Gadget,
  changes: Partial<CacheEvent<Gadget>>,
): CacheEvent<Gadget> {
  const { deletionTimestamp } = object.metadata;
  const made: CacheEvent<Gadget> = {
    type,
    key,
    header: { deletionTimestamp } as CacheEvent<Gadget>["header"],
    previousHeader: undefined,
    hasSameMetadata: false,
    object,
    previous: undefined,
    initial: false,
    relist: false,
    finalStateUnknown: false,
    detach: () => made,
    ...changes,
  };
  return made;
}

/** A case whose processor has been resumed. */
export async function running(
  options: ProcessorCaseOptions = {},
): Promise<ProcessorFixture> {
  const made = new ProcessorFixture(options);
  made.processor.resume();
  await made.settle();
  return made;
}
