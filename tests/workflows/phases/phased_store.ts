import type { Client, Context, Kind, Reconciler } from "@coracle/operator/core";
import type {
  PhasedObject,
  StatesObject,
  TaskObject,
} from "@coracle/operator/workflows";
import { ApiError } from "../../../core/api/api_error.ts";
import { silentLogger } from "../../../core/logger.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";

/** What kills the operator in a crash test. */
export class Killed extends Error {}

/** After how many effects the operator is killed, and on which side of one. */
export interface Kill {
  readonly after: number;
  readonly side: "before" | "after";
}

/**
 * An API server with one object, and an operator that looks after it, in memory.
 * Every write, and whatever a test declares to be an effect, is counted, so that
 * the operator can be killed right before or after each of them.
 */
export class PhasedStore<
  P extends PhasedObject | TaskObject | StatesObject,
> {
  readonly clock: VirtualClock = new VirtualClock();
  readonly events: string[] = [];
  /** Ends the runs. */
  readonly abort: AbortController = new AbortController();
  stored: P;
  /** How many status writes there were. */
  writes = 0;
  /** Whether the last pass let the object go. */
  gone = false;
  kill: Kill | undefined;
  effects = 0;
  readonly #makeReconciler: () => Reconciler<P>;
  #reconciler: Reconciler<P> | undefined;
  #version = 1;
  #dead = false;

  constructor(object: Omit<P, "metadata">, make: () => Reconciler<P>) {
    this.stored = {
      ...object,
      metadata: {
        namespace: "default",
        name: "one",
        uid: "uid-1",
        generation: 1,
        resourceVersion: "1",
        creationTimestamp: "2026-01-01T00:00:00Z",
      },
    } as P;
    this.#makeReconciler = make;
  }

  /** The operator's process ends, with all that it has in memory. */
  restart(): void {
    this.#dead = false;
    this.#reconciler = undefined;
  }

  /** Somebody changes the spec. */
  edit(spec: object): void {
    const stored = structuredClone(this.stored) as P & { spec: object };
    stored.spec = { ...stored.spec, ...spec };
    stored.metadata.generation = stored.metadata.generation! + 1;
    this.#store(stored);
  }

  /** Somebody deletes the object, which has a finalizer. */
  remove(): void {
    const stored = structuredClone(this.stored);
    stored.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    this.#store(stored);
  }

  /** The status is replaced by somebody else. */
  write(status: P["status"]): void {
    const stored = { ...this.stored, status };
    this.#store(JSON.parse(JSON.stringify(stored)));
  }

  /** Another copy of the object takes its place, with a later version. */
  put(object: P): void {
    this.#store(structuredClone(object));
  }

  /** The Ready condition as kubectl shows it. */
  ready(): { status: string; reason: string; message: string } {
    const { status = "", reason = "", message = "" } =
      this.stored.status?.conditions?.find(({ type }) => type === "Ready") ??
        {};
    return { status, reason, message };
  }

  /** One run; gives the milliseconds until the next one, if it asks for one. */
  async pass(): Promise<number | undefined> {
    const object = structuredClone(this.stored);
    const ctx = this.#context();
    const reconciler = this.#reconciler ??= this.#makeReconciler();
    const deleting = object.metadata.deletionTimestamp !== undefined;
    const result = deleting
      ? await reconciler.cleanup!(object, ctx)
      : await reconciler.reconcile(object, ctx);
    const { delay, finalizerRemoved = false } = result as unknown as {
      delay: number | undefined;
      finalizerRemoved?: boolean;
    };
    this.gone = finalizerRemoved;
    return delay;
  }

  /**
   * Passes until nothing changes any more or the object is gone, restarting
   * after each kill.
   *
   * @param world What else must not change.
   */
  async settle(world: () => unknown = () => undefined): Promise<void> {
    const state = () => JSON.stringify([this.stored.status, world()]);
    for (let pass = 0; pass < 60; pass++) {
      const before = state();
      let after: number | undefined;
      try {
        after = await this.pass();
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        this.restart();
        continue;
      }
      if (this.gone || before === state() && after !== 0) return;
      await this.between();
    }
    throw new Error(`Still not settled: ${state()}`);
  }

  /** What happens between two passes. */
  async between(): Promise<void> {
    await this.clock.advance(1_000);
  }

  /** Something that changes the world; the operator may die around it. */
  effect<T>(what: () => T): T {
    if (this.#dead) throw new Killed("The operator is dead");
    const due = this.kill !== undefined && this.effects++ === this.kill.after;
    if (due && this.kill?.side === "before") throw this.#die();
    const result = what();
    if (due) throw this.#die();
    return result;
  }

  #die(): Killed {
    this.kill = undefined;
    this.#dead = true;
    return new Killed("The operator was killed");
  }

  #store(object: P): void {
    this.stored = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: `${++this.#version}` },
    };
  }

  #context(): Context<P> {
    const record =
      (type: string) => (reason: string, message: string, options?: object) => {
        const more = options ? ` ${JSON.stringify(options)}` : "";
        this.events.push(`${type} ${reason}: ${message}${more}`);
      };
    const status = {
      replace: (
        _kind: Kind,
        object: P,
        { signal }: { signal?: AbortSignal | undefined } = {},
      ) => {
        if (signal !== this.abort.signal) {
          throw new Error("A write must end with its run");
        }
        if (this.#isNewerThan(object)) {
          throw new ApiError("Cannot replace: conflict", {
            status: 409,
            reason: "Conflict",
          });
        }
        this.effect(() => {
          this.writes++;
          this.write(object.status);
        });
        return Promise.resolve(structuredClone(this.stored));
      },
    };
    const client = {
      status,
      get: () => Promise.resolve(structuredClone(this.stored)),
    };
    return {
      client: client as unknown as Client,
      log: silentLogger,
      signal: this.abort.signal,
      events: { normal: record("Normal"), warning: record("Warning") },
    } as unknown as Context<P>;
  }

  #isNewerThan({ metadata }: P): boolean {
    return metadata.resourceVersion !== this.stored.metadata.resourceVersion;
  }
}
