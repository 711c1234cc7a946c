/**
 * Requests of a simulated operator outside of the cluster.
 *
 * @module
 */
import type { Clock } from "@coracle/operator/client";
import { sleep } from "@coracle/operator/internal";
import type { Perturbations } from "./perturbations.ts";
import type { TraceSink } from "./trace.ts";
import { unanswered } from "./world_globals.ts";

/** Time until a slow request outside of the cluster is answered, in milliseconds. */
const SLOW_CALL_MS = 120_000;

type Fetch = (request: Request) => Promise<Response>;

/** Parts of a simulation that concern requests outside of the cluster. */
interface CallingWorld {
  /** Clock whose timers continue when the operator is killed. */
  readonly clock: Clock;
  readonly perturbations: Perturbations;
  readonly trace: TraceSink;
  readonly now: () => number;
  /** Returns the number of the last simulated process. */
  readonly incarnation: () => number;
  /** Called at each activity. */
  readonly active: () => void;
  /** Called with 1 when a request begins to be answered, and with -1 at its end. */
  readonly holds: (change: number) => void;
  /** Kills the operator. */
  readonly crash: (why: string) => void;
}

/**
 * Creates the `fetch` of a simulated operator, which counts, records and disturbs
 * requests.
 *
 * @param fetch Answers the requests. By default they fail.
 */
export function answersCalls(
  fetch: Fetch | undefined,
  world: CallingWorld,
): Fetch {
  let calls = 0;
  return async (request) => {
    const { method, url } = request;
    const at = world.now();
    const incarnation = world.incarnation();
    const entry = { type: "external", at, incarnation, method, url } as const;
    const body = await request.clone().text() || undefined;
    world.active();
    const n = ++calls;
    if (fetch === undefined) {
      world.trace.push({ ...entry, body, status: 0, n });
      // deno-lint-ignore coracle/error-message -- as the runtimes word it
      throw new TypeError("fetch failed", { cause: unanswered(request) });
    }
    const fault = world.perturbations.onCall(n, `${method} ${url}`);
    if (fault === "refused") {
      world.trace.push({ ...entry, body, status: 0, n, fault });
      throw broken("ECONNREFUSED");
    }
    if (fault === "twice") await fetch(request.clone());
    world.holds(1);
    const response = await fetch(request).finally(() => {
      world.holds(-1);
      world.active();
    });
    const { status } = response;
    world.trace.push({ ...entry, body, status, n, fault });
    if (fault === "lost") throw broken("ECONNRESET");
    if (fault === "killed") {
      world.crash(`request ${n} outside of the cluster, unanswered`);
      return await new Promise(() => {});
    }
    if (fault === "slow") {
      const { clock } = world;
      await sleep(SLOW_CALL_MS, { clock, signal: request.signal });
      world.active();
    }
    return response;
  };
}

/** Error of `fetch` for a connection that has failed. */
function broken(code: string): TypeError {
  // deno-lint-ignore coracle/error-message -- as the runtimes word it
  const cause = Object.assign(new Error(`connection failed: ${code}`), {
    code,
  });
  // deno-lint-ignore coracle/error-message -- as the runtimes word it
  return new TypeError("fetch failed", { cause });
}
