import type { Kind, Reconciler } from "@coracle/operator/core";
import type {
  PhasedDefinition,
  PhasedObject,
} from "@coracle/operator/workflows";
import { changeMap } from "../../../workflows/phases/change_map.ts";
import { phased } from "../../../workflows/phases/phased.ts";
import { PhasedStore } from "./phased_store.ts";

/** What an engine is asked to be. */
export interface EngineSpec {
  readonly image: string;
  readonly replicas?: number;
  readonly suspend?: boolean;
  readonly note?: string;
  readonly path?: string;
}

/** An object of the tests. */
export type Engine = PhasedObject<EngineSpec>;

/** What an observation of an engine finds. */
export interface EngineSeen {
  readonly running: string | undefined;
  readonly healthy: boolean;
}

/** What a test may say differently of engines. */
export type EngineDefinition = Partial<PhasedDefinition<Engine, EngineSeen>>;

/** Refuses specs without an image, and the image `forbidden` after `a`. */
export const imageNeeded: EngineDefinition = {
  validate: (
    _run: unknown,
    next: { image: string },
    last?: { image: string },
  ) =>
    next.image === "" || (last?.image === "a" && next.image === "forbidden")
      ? "image is not allowed"
      : undefined,
};

/** The kind of engines. */
export const Engine: Kind<Engine> = {
  group: "example.com",
  version: "v1",
  kind: "Engine",
  plural: "engines",
  scope: "Namespaced",
};

/** An API server with one object, and the engine that it stands for. */
export class PhasedWorld extends PhasedStore<Engine> {
  /** Every action on the engine, with the attempt that it was for. */
  readonly actions: string[] = [];
  /** What runs. */
  engine: { spec: EngineSpec; attempt: string; savepoint: unknown } | undefined;
  /** Images that never become healthy. */
  readonly broken: Set<string> = new Set();
  readonly #definition: EngineDefinition;

  constructor(spec: EngineSpec, definition: EngineDefinition = {}) {
    super({ spec }, () => this.#makeReconciler(definition));
    this.#definition = definition;
  }

  /** A world in which an engine runs well, and all lists are empty. */
  static async stable(definition: EngineDefinition = {}): Promise<PhasedWorld> {
    const world = new PhasedWorld({ image: "a", replicas: 1 }, definition);
    await world.settle();
    if (world.stored.status?.lifecycle !== "Stable") {
      throw new Error(`Not stable: ${JSON.stringify(world.stored.status)}`);
    }
    world.actions.length = 0;
    world.events.length = 0;
    return world;
  }

  /** Somebody writes the status by hand. */
  tamper(): void {
    const rollout = { phase: "Upgrading", running: false } as const;
    this.write({ ...this.stored.status, lifecycle: "Failed", rollout });
  }

  /** The same world, as another replica of the operator finds it. */
  replica(): PhasedWorld {
    const other = new PhasedWorld(this.stored.spec, this.#definition);
    other.stored = structuredClone(this.stored);
    other.engine = structuredClone(this.engine);
    return other;
  }

  /** Passes until neither status nor engine changes any more. */
  override async settle(): Promise<void> {
    await super.settle(() => this.engine);
  }

  #makeReconciler(definition: EngineDefinition): Reconciler<Engine> {
    return phased<Engine, EngineSeen>(Engine, {
      clock: this.clock,
      diff: changeMap({ replicas: "scale", note: "none", path: "redeploy" }),
      suspended: ({ suspend }) => suspend === true,
      observe: () => ({
        running: this.engine?.attempt,
        healthy: this.engine !== undefined &&
          !this.broken.has(this.engine.spec.image),
      }),
      stable: ({ healthy }) => healthy,
      isDeployed: (_, attempt) => this.engine?.attempt === attempt,
      suspend: () => {
        this.effect(() => {
          this.actions.push(`stop ${this.engine?.attempt}`);
          this.engine = undefined;
        });
        return { state: "done", savepoint: "savepoint", again: true };
      },
      deploy: (_, { spec, attempt, savepoint }) =>
        this.effect(() => {
          this.actions.push(`start ${attempt} ${spec.image}`);
          this.engine = { spec, attempt, savepoint };
        }),
      cleanup: () =>
        this.effect(() => {
          if (this.engine) this.actions.push(`stop ${this.engine.attempt}`);
          this.engine = undefined;
        }),
      ...definition,
    });
  }
}
