import type { Client } from "../client/client.ts";
import type { Verb } from "../client/request.ts";
import { linkedSignal } from "../linked_signal.ts";

/** The verbs that change something. */
const WRITES: ReadonlySet<Verb> = new Set<Verb>([
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
  "connect",
]);

/** Whether this replica may act, as long as it may. */
export interface Mandate {
  /** Whether it may act at this moment, for certain. */
  readonly holds: boolean;
  /** Fires when it may no more. */
  readonly signal: AbortSignal;
  /** Whose mandate it is not, for the error: `does not lead`. */
  readonly lack: string;
}

/**
 * A client whose writes only get through while this replica may act; those that
 * are under way when it may no more are ended.
 */
export function fenced(client: Client, mandate: Mandate): Client {
  return client.with([(next) => async (request) => {
    if (!WRITES.has(request.verb)) return await next(request);
    if (!mandate.holds) {
      throw new Error(
        `Cannot ${request.action}: this replica ${mandate.lack}, or not for certain: received a write`,
      );
    }
    const link = linkedSignal(request.signal, mandate.signal);
    try {
      return await next({ ...request, signal: link.signal });
    } finally {
      link.unlink();
    }
  }]);
}
