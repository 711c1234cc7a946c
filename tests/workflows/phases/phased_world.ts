import { ApiError } from "../../../core/api/api_error.ts";
import type { Kind } from "../../../core/api/kind.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Context } from "../../../core/controller/reconciler.ts";
import type { Reconciler } from "../../../core/controller/reconciler.ts";
import { silentLogger } from "../../../core/logger.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { changeMap } from "../../../workflows/phases/change_map.ts";
import { phased } from "../../../workflows/phases/phased.ts";
import type { PhasedDefinition } from "../../../workflows/phases/phased_definition.ts";
import type { PhasedObject } from "../../../workflows/phases/rollout.ts";

/** What an engine is asked to be. */
export interface EngineSpec {
  readonly image: string;
  readonly replicas?: number;
  readonly suspend?: boolean;
  readonly note?: string;
}

/** An object of the tests. */
export type Engine = PhasedObject<EngineSpec>;

/** What an observation of an engine finds. */
export interface EngineSeen {
  readonly running: string | undefined;
  readonly healthy: boolean;
}

const Engine: Kind<Engine> = {
  group: "example.com",
  version: "v1",
  kind: "Engine",
  plural: "engines",
  scope: "Namespaced",
};

/** What kills the operator in a crash test. */
export class Killed extends Error {}

/**
 * An API server with one object and an engine that it runs, in memory. Every
 * write and every action is counted, so that a test can kill the operator right
 * before or after each of them.
 */
export class PhasedWorld {
  readonly clock: VirtualClock = new VirtualClock();
  readonly events: string[] = [];
  /** Every action on the engine, with the attempt that it was for. */
  readonly actions: string[] = [];
  /** Whether the last pass let the object go. */
  gone = false;
  /** What runs. */
  engine: { spec: EngineSpec; attempt: string; carry: unknown } | undefined;
  /** Images that never become healthy. */
  readonly broken: Set<string> = new Set();
  stored: Engine;
  /** How many status writes there were. */
  writes = 0;
  /** How many effects happen before the operator is killed, and on which side. */
  kill: { after: number; side: "before" | "after" } | undefined;
  effects = 0;
  #definition: Partial<PhasedDefinition<Engine, EngineSeen>>;
  #reconciler: Reconciler<Engine>;
  #version = 1;
  #dead = false;

  constructor(
    spec: EngineSpec,
    definition: Partial<PhasedDefinition<Engine, EngineSeen>> = {},
  ) {
    this.stored = {
      metadata: {
        namespace: "default",
        name: "engine",
        uid: "uid-1",
        generation: 1,
        resourceVersion: "1",
      },
      spec,
    };
    this.#definition = definition;
    this.#reconciler = this.#newReconciler();
  }

  /** The operator's process ends, with all that it has in memory. */
  restart(): void {
    this.#dead = false;
    this.#reconciler = this.#newReconciler();
  }

  /** Somebody changes the spec. */
  edit(spec: Partial<EngineSpec>): void {
    this.stored = structuredClone(this.stored);
    this.stored.spec = { ...this.stored.spec, ...spec };
    this.stored.metadata.generation = this.stored.metadata.generation! + 1;
    this.#touch();
  }

  /** Somebody writes the status by hand. */
  tamper(): void {
    const rollout = { phase: "Upgrading", running: false } as const;
    this.write({ ...this.stored.status, lifecycle: "Failed", rollout });
  }

  /** The status is replaced by somebody else. */
  write(status: Engine["status"]): void {
    this.stored = structuredClone(this.stored);
    this.stored.status = structuredClone(status);
    this.#touch();
  }

  /** The same world, as another replica of the operator finds it. */
  replica(): PhasedWorld {
    const other = new PhasedWorld(this.stored.spec, this.#definition);
    other.stored = structuredClone(this.stored);
    other.engine = structuredClone(this.engine);
    other.#version = this.#version;
    return other;
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
    const deleting = object.metadata.deletionTimestamp !== undefined;
    const result = deleting
      ? await this.#reconciler.cleanup!(object, ctx)
      : await this.#reconciler.reconcile(object, ctx);
    const { delay, finalizerRemoved = false } = result as unknown as {
      delay: number | undefined;
      finalizerRemoved?: boolean;
    };
    this.gone = finalizerRemoved;
    return delay;
  }

  /** Passes until nothing changes any more, restarting after each kill. */
  async settle(passes = 60): Promise<void> {
    for (let pass = 0; pass < passes; pass++) {
      const before = JSON.stringify([this.stored.status, this.engine]);
      let after: number | undefined;
      try {
        after = await this.pass();
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        this.restart();
        continue;
      }
      const same = before === JSON.stringify([this.stored.status, this.engine]);
      if (same && after !== 0) return;
      await this.clock.advance(1_000);
    }
    throw new Error(`Still not settled: ${JSON.stringify(this.stored.status)}`);
  }

  /** Something that changes the world; the operator may die around it. */
  effect(what: () => void): void {
    if (this.#dead) throw new Killed("The operator is dead");
    const due = this.kill !== undefined && this.effects++ === this.kill.after;
    if (due && this.kill?.side === "before") throw this.#die();
    what();
    if (due) throw this.#die();
  }

  #die(): Killed {
    this.kill = undefined;
    this.#dead = true;
    return new Killed("The operator was killed");
  }

  #touch(): void {
    this.stored.metadata.resourceVersion = String(++this.#version);
  }

  #newReconciler(): Reconciler<Engine> {
    return phased<Engine, EngineSeen>(Engine, {
      clock: this.clock,
      diff: changeMap({ replicas: "scale", note: "none" }),
      parked: ({ suspend }) => suspend === true,
      observe: () => ({
        running: this.engine?.attempt,
        healthy: this.engine !== undefined &&
          !this.broken.has(this.engine.spec.image),
      }),
      stable: ({ healthy }) => healthy,
      landed: (_, attempt) => this.engine?.attempt === attempt,
      suspend: () => {
        this.effect(() => {
          this.actions.push(`stop ${this.engine?.attempt}`);
          this.engine = undefined;
        });
        return { state: "done", carry: "savepoint", again: true };
      },
      deploy: (_, { spec, attempt, carry }) =>
        this.effect(() => {
          this.actions.push(`start ${attempt} ${spec.image}`);
          this.engine = { spec, attempt, carry };
        }),
      cleanup: () =>
        this.effect(() => {
          if (this.engine) this.actions.push(`stop ${this.engine.attempt}`);
          this.engine = undefined;
        }),
      ...this.#definition,
    });
  }

  #context(): Context<Engine> {
    const record = (type: string) => (reason: string, message: string) => {
      this.events.push(`${type} ${reason}: ${message}`);
    };
    const status = {
      replace: (_kind: Kind, object: Engine) => {
        if (
          object.metadata.resourceVersion !==
            this.stored.metadata.resourceVersion
        ) {
          throw new ApiError("Cannot replace: conflict", {
            status: 409,
            reason: "Conflict",
          });
        }
        this.effect(() => {
          this.writes++;
          this.stored = {
            ...structuredClone(this.stored),
            ...(object.status && { status: structuredClone(object.status) }),
          };
          this.#touch();
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
      signal: new AbortController().signal,
      events: { normal: record("Normal"), warning: record("Warning") },
    } as unknown as Context<Engine>;
  }
}
