import type { Duration } from "@coracle/operator/client";
import type { ActiveFault, FaultRule } from "../apiserver/faults/fault_rule.ts";
import type { Faults, RestartOptions } from "../apiserver/faults/faults.ts";
import type { RunningClock } from "../testing/running_clock.ts";
import { writeSecretFile } from "./serving.ts";
import {
  jsonAnswer,
  type LocalServer,
  refusal,
  serveLocally,
  TOKEN_HEADER,
} from "./window/local_server.ts";

/** What requests control. */
export interface Controlled {
  readonly faults: Faults;
  readonly clock: RunningClock;
}

type Action = (body: Readonly<Record<string, unknown>>) => unknown;

/**
 * Control API: with its requests, programs in any language inject faults and move
 * the clock. It has a port of its own, since faults of the API server must not break
 * them.
 *
 * @param file File for the URL and the header with the token, which only its
 * owner may read.
 */
export async function serveControl(
  controlled: Controlled,
  file: string,
): Promise<LocalServer> {
  const actions = actionsOf(controlled);
  const server = await serveLocally({
    port: 0,
    async answer({ method, path, body }) {
      const action = actions.get(path);
      if (action === undefined) {
        const known = [...actions.keys()].join(" ");
        return refusal(404, `Cannot answer: the path must be one of ${known}`);
      }
      if (method !== "POST") {
        return refusal(405, "Cannot answer: the method must be POST");
      }
      if (typeof body !== "object" || body === null || Array.isArray(body)) {
        return refusal(400, "Cannot answer: the body must be a JSON object");
      }
      try {
        return jsonAnswer(await action({ ...body }) ?? {});
      } catch (error) {
        return refusal(400, (error as Error).message);
      }
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const headers = { [TOKEN_HEADER]: server.token };
  try {
    await writeSecretFile(file, `${JSON.stringify({ url, headers })}\n`);
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/** Actions by path: the methods of faults and clock, with their arguments as body. */
function actionsOf(
  { faults, clock }: Controlled,
): ReadonlyMap<string, Action> {
  const added = new Map<number, ActiveFault>();
  let ids = 0;
  const withId = (id: unknown): ActiveFault => {
    const fault = added.get(Number(id));
    if (fault !== undefined) return fault;
    throw new RangeError(
      `Cannot find a fault: "id" must be one that /add has returned: received ${
        JSON.stringify(id)
      }`,
    );
  };
  const time = () => ({ now: new Date(clock.wallTime()).toISOString() });
  return new Map<string, Action>([
    ["/add", (rule) => {
      // The server checks it.
      added.set(++ids, faults.add(rule as unknown as FaultRule));
      return { id: ids };
    }],
    ["/hits", ({ id }) => ({ hits: withId(id).hits })],
    ["/remove", ({ id }) => withId(id).remove()],
    ["/clear", () => {
      faults.clear();
      added.clear();
    }],
    ["/cutWatches", (match) => ({ watches: faults.cutWatches(match) })],
    ["/endWatches", (match) => ({ watches: faults.endWatches(match) })],
    ["/stallWatches", (match) => ({ watches: faults.stallWatches(match) })],
    ["/expireWatches", (match) => ({ watches: faults.expireWatches(match) })],
    ["/compact", () => faults.compact()],
    ["/goAway", () => faults.goAway()],
    ["/dropConnections", () => faults.dropConnections()],
    ["/restart", (options) => faults.restart(options as RestartOptions)],
    ["/advance", async ({ by }) => {
      await clock.advance(by as Duration);
      return time();
    }],
    ["/jump", async ({ by }) => {
      await clock.jump(by as Duration);
      return time();
    }],
  ]);
}
