import type { KubernetesObject } from "../../api/object.ts";
import { InformerPool } from "../../cache/informer/informer_pool.ts";
import { Client } from "../../client/client.ts";
import type { ClientTarget } from "../../client/client_options.ts";
import type {
  Controller,
  ControllerDeps,
} from "../../controller/controller.ts";
import type { ControllerHealth } from "../../controller/controller_health.ts";
import { messageWithCause } from "../../error_text.ts";
import type { ConcurrencyLimit } from "../../pace.ts";
import {
  type ManagedController,
  startWithRetries,
} from "../controller_start.ts";
import type { OperatorSettings } from "../operator_options.ts";
import { drain, isInTime } from "../shutdown.ts";
import { FollowedTarget } from "./cluster_target.ts";

/** Time that a leave waits for writes under way before the client is closed. */
const SETTLE_LIMIT_MS = 10_000;

/** What the operator gives to the clusters of its controllers. */
export interface ClustersHost
  extends Pick<OperatorSettings, "reconnect" | "shutdownGrace"> {
  /** Derives a client that only writes while this replica may. */
  readonly around: (client: Client) => Client;
  /** Derives a client whose requests are traced, if they are. */
  readonly traced: (client: Client) => Client;
  /** Resolves when the writes that are pending now have ended. */
  readonly settled: () => Promise<void>;
}

/** Dependencies of a {@linkcode ClusterMember}. */
export interface ClusterMemberDeps<P extends KubernetesObject> {
  readonly name: string;
  readonly host: ClustersHost;
  /** Dependencies of the controllers of the operator's own cluster. */
  readonly deps: ControllerDeps;
  /** Limit of the bytes of first states that all clusters read at the same time. */
  readonly starts: ConcurrencyLimit;
  /** Creates the controller of the cluster. */
  readonly create: () => Controller<P>;
  /** Whether the controller runs objects at the time. */
  readonly isLeading: () => boolean;
  /** Called when a membership has ended, with all of its runs. */
  readonly onEnded: () => void;
}

/** What a cluster has while it is followed. */
interface Joined<P extends KubernetesObject> {
  readonly followed: FollowedTarget;
  readonly client: Client;
  readonly pool: InformerPool;
  readonly controller: Controller<P>;
  /** Abort controller that ends the attempts to start. */
  readonly ending: AbortController;
  /** Why the last attempt to start has failed. */
  error: string | undefined;
  /** Whether the server serves the kind in another way than at the start. */
  isMoved: boolean;
}

/**
 * Cluster of a set, by its name: it joins, leaves, and joins again as the set says.
 *
 * Guarantees: it has one controller at a time, and the next one starts when no run of
 * the former is in progress, so that no object runs twice.
 */
export class ClusterMember<P extends KubernetesObject> {
  readonly name: string;
  readonly #deps: ClusterMemberDeps<P>;
  readonly #attempted: PromiseWithResolvers<void> = Promise.withResolvers();
  #wanted: ClientTarget | undefined;
  #joined: Joined<P> | undefined;
  /** Controllers that have left, with runs that may be in progress. */
  readonly #left: Set<Controller<P>> = new Set();
  #turn: Promise<void> | undefined;
  /** Abort controller that ends the grace period of runs. */
  readonly #hurry: AbortController = new AbortController();
  /** Why its target cannot be used. */
  #fault: string | undefined;

  constructor(deps: ClusterMemberDeps<P>) {
    this.name = deps.name;
    this.#deps = deps;
  }

  /** Controller of the cluster; undefined while it has not joined. */
  get controller(): Controller<P> | undefined {
    return this.#joined?.controller;
  }

  /** Controllers with runs that may be in progress. */
  get controllers(): readonly Controller<P>[] {
    const { controller } = this;
    return controller === undefined
      ? [...this.#left]
      : [controller, ...this.#left];
  }

  /** Caches of the cluster; undefined while it has not joined. */
  get informers(): InformerPool | undefined {
    return this.#joined?.pool;
  }

  /** Whether nothing of it is left. */
  get isGone(): boolean {
    return this.#wanted === undefined && this.#fault === undefined &&
      this.#turn === undefined && this.controllers.length === 0;
  }

  /** Fulfilled when its caches were complete, or could not be. */
  get attempted(): Promise<void> {
    return this.#attempted.promise;
  }

  /** Makes the cluster join, follow new credentials, or move to another place. */
  join(target: ClientTarget): void {
    this.#fault = undefined;
    this.#wanted = target;
    void this.#follow();
  }

  /** Notes why there is no target; one that was known stays. */
  fail(error: Error): void {
    this.#fault = messageWithCause(error);
    this.#attempted.resolve();
  }

  /** Makes the cluster leave. Its runs may end within the grace period. */
  async leave(): Promise<void> {
    this.#wanted = this.#fault = undefined;
    this.#attempted.resolve();
    await this.#follow();
  }

  /** Makes the cluster leave when its runs have ended or were left behind. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await this.leave();
  }

  /** Health of the cluster. */
  health(): NonNullable<ControllerHealth["clusters"]>[number] {
    const { name } = this;
    const { controller, error } = this.#joined ?? {};
    const health = controller?.health();
    const watches = health?.informers.flatMap(({ watches }) => watches) ?? [];
    const broken = watches.find(({ consecutiveFailures }) =>
      consecutiveFailures > 0
    )?.lastError?.message;
    const fault = this.#fault ?? error ?? broken;
    return {
      name,
      ready: health?.ready ?? false,
      healthy: health?.healthy === true && this.#fault === undefined &&
        error === undefined,
      primaries: health?.primaries ?? 0,
      waiting: health?.waiting ?? 0,
      running: health?.running ?? 0,
      failing: health?.failing ?? 0,
      error: fault,
    };
  }

  /** Comes to what is wanted; one turn at a time. */
  #follow(): Promise<void> {
    return this.#turn ??= this.#takeTurn();
  }

  async #takeTurn(): Promise<void> {
    await Promise.resolve(); // So that the turn is known before it ends.
    try {
      while (true) {
        const wanted = this.#wanted;
        const joined = this.#joined;
        if (joined === undefined) {
          if (wanted !== undefined && this.#left.size === 0) {
            this.#begin(wanted);
          }
          return;
        }
        const stays = wanted !== undefined && !joined.isMoved &&
          joined.followed.follow(wanted);
        if (stays) return;
        this.#joined = undefined;
        await this.#end(joined);
      }
    } catch (error) {
      this.fail(error as Error);
      this.#deps.deps.log.error("Cannot follow a cluster", {
        cluster: this.name,
        error,
      });
    } finally {
      this.#turn = undefined;
    }
  }

  #begin(target: ClientTarget): void {
    const { name, deps, host, starts, create, isLeading } = this.#deps;
    const { clock, metrics, random } = deps;
    const log = deps.log.with({ cluster: name });
    const common = { clock, logger: log, metrics, random };
    const followed = new FollowedTarget(target);
    const client = new Client(followed.target, common);
    const controller = create();
    const pool = new InformerPool(client, {
      ...common,
      starts,
      reconnect: host.reconnect,
      budget: deps.informers.budget,
      onMoved: () => {
        log.warn(
          "The server serves a kind under another plural or scope: its controller starts again",
          { controller: controller.name },
        );
        joined.isMoved = true;
        void this.#follow();
      },
    });
    const ending = new AbortController();
    const joined: Joined<P> = this.#joined = {
      followed,
      client,
      pool,
      controller,
      ending,
      error: undefined,
      isMoved: false,
    };
    if (isLeading()) controller.startLeading();
    const { shard } = deps;
    const unfenced = host.traced(client);
    const started = startWithRetries(controller, {
      client,
      controllers: new Map([[
        controller.name,
        controller as ManagedController,
      ]]),
      signal: ending.signal,
      deps: {
        ...deps,
        cluster: name,
        client: host.traced(host.around(client)),
        unfenced,
        informers: pool,
        log,
        // All objects of a cluster run in one replica.
        shard: shard && { owns: () => shard.owns(name) },
        // Those of the operator are of its own cluster.
        skipsRuns: false,
        recording: undefined,
      },
    }, (error) => {
      joined.error = messageWithCause(error);
      this.#attempted.resolve();
    });
    started.then(() => {
      joined.error = undefined;
      this.#attempted.resolve();
      log.info("A cluster has joined", { controller: controller.name });
    }, (error: unknown) => {
      if (ending.signal.aborted) return;
      joined.error = messageWithCause(error);
      log.error("Cannot start the controller of a cluster", {
        controller: controller.name,
        error,
      });
    });
  }

  /** Ends the watches and runs of a cluster that leaves. */
  async #end({ controller, pool, client, ending }: Joined<P>): Promise<void> {
    const { deps: { clock, log: common }, host, name } = this.#deps;
    const log = common.with({ cluster: name });
    ending.abort(new Error(`Cannot follow cluster "${name}": it has left`));
    this.#left.add(controller);
    const grace = host.shutdownGrace;
    const hurry = this.#hurry.signal;
    await drain([controller as ManagedController], {
      clock,
      log,
      grace,
      hurry,
    });
    await controller.stop();
    await isInTime(host.settled(), SETTLE_LIMIT_MS, { clock });
    await pool.stop();
    await client.close();
    log.info("A cluster has left", { controller: controller.name });
    // The next controller waits for runs that were left behind.
    void controller.whenIdle().then(async () => {
      this.#left.delete(controller);
      await this.#follow();
      this.#deps.onEnded();
    });
  }
}
