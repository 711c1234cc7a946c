/**
 * What a simulation replaces of the runtime of its operator: the host that the
 * library sees, and globals and modules.
 *
 * @module
 */
import type { Clock, Logger } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import { type NamedWebhookHost, replaceHost } from "@coracle/operator/internal";
import type { Random } from "../../apiserver/random.ts";
import type { LeaseClock } from "./lease_clock.ts";
import type { Perturbations } from "./perturbations.ts";
import type { TraceSink } from "./trace.ts";
import { answersCalls } from "./world_calls.ts";
import type { WorldClock } from "./world_clock.ts";
import { replaceGlobals, unconnected } from "./world_globals.ts";
import { replaceHttp } from "./world_http.ts";
import type { WorldOptions } from "./world_options.ts";
import { replaceProcess } from "./world_process.ts";
import { replaceServers } from "./world_servers.ts";
import { replaceSockets } from "./world_sockets.ts";
import type { WorldTransport } from "./world_transport.ts";

/** Minimum time after which a watch ends: longer than any run, in milliseconds. */
const WATCH_TIMEOUT_MS = 30 * 24 * 3_600_000;

/** Simulated process of the operator. */
export interface Incarnation {
  readonly number: number;
  readonly clock: ReturnType<WorldClock["view"]>;
  readonly leaseClock: LeaseClock;
  readonly transport: WorldTransport;
  readonly random: Random;
  readonly made: OperatorHandle[];
  alive: boolean;
}

/** Parts of a simulation that concern the runtime of its operator. */
interface ReplacingWorld {
  readonly options: Pick<WorldOptions, "fetch" | "fetchesReally" | "refuse">;
  /** Returns the current simulated process; undefined while none is alive. */
  readonly current: () => Incarnation | undefined;
  /** Clock and random numbers outside of a simulated process. */
  readonly outside: Clock;
  readonly random: Random;
  readonly perturbations: Perturbations;
  readonly webhooks: NamedWebhookHost;
  readonly trace: TraceSink;
  readonly logger: Logger;
  /** Fulfilled when the simulation ends. */
  readonly ended: Promise<void>;
  readonly now: () => number;
  /** Returns the number of the last simulated process. */
  readonly incarnation: () => number;
  /** Called at each activity. */
  readonly active: () => void;
  /** Called with 1 when work outside the simulation begins, and with -1 at its end. */
  readonly working: (change: number) => void;
  /** Ends the current simulated process. */
  readonly exit: (why: string) => never;
  readonly rejected: (error: unknown) => void;
  /** Kills all simulated processes. */
  readonly crash: (why: string) => void;
}

/**
 * Replaces what an operator reaches without its cluster: time, random numbers,
 * requests, servers and the end of the process.
 *
 * @returns Function that restores it.
 */
export function replaceRuntime(world: ReplacingWorld): () => void {
  const { current, outside, perturbations, trace, active } = world;
  const clock = () => current()?.clock ?? outside;
  const random = () => current()?.random ?? world.random;
  const restoreHost = replaceHost({
    openTransport: () => {
      const { transport } = current() ?? {};
      if (transport !== undefined) return transport;
      throw new Error("Cannot connect: no operator runs in this world");
    },
    clock,
    random: () => random().next(),
    hostname: () => "operator-0",
    servesProbes: false,
    webhooks: world.webhooks,
    minWatchTimeout: WATCH_TIMEOUT_MS,
    leaderClock: () => current()?.leaseClock,
    ended: world.ended,
    operators: {
      runs: true,
      logger: world.logger,
      made: (operator) => void current()?.made.push(operator),
    },
  });
  const restore = [
    replaceProcess({
      exit: (code) => world.exit(`process.exit(${code ?? ""})`),
      rejected: world.rejected,
    }),
    restoreHost,
    replaceHttp(),
    replaceServers(),
    replaceSockets({
      refuse: (address) => {
        active();
        const why = (world.options.refuse ?? unconnected)(address);
        if (why === undefined) return undefined;
        trace.push({
          type: "external",
          at: world.now(),
          incarnation: world.incarnation(),
          method: "CONNECT",
          url: address,
          status: 0,
          n: 0,
        });
        return why;
      },
      waiting: (change) => {
        world.working(change);
        active();
      },
    }),
    replaceGlobals({
      clock,
      random: () => random().next(),
      uuid: () => random().uid(),
      fetch: answersCalls(world.options.fetch, {
        clock: outside,
        perturbations,
        trace,
        now: world.now,
        incarnation: world.incarnation,
        active,
        holds: (change) => {
          if (world.options.fetchesReally) world.working(change);
        },
        crash: world.crash,
      }),
      working: (change) => {
        world.working(change);
        active();
      },
    }),
  ];
  return () => {
    for (const undo of restore) undo();
  };
}
