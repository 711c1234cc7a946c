import type { Client } from "../client/client.ts";
import type { ApiRequest, ApiVerb } from "../client/request.ts";
import type { RequestHandler } from "../client/middleware.ts";
import type { HttpResponse } from "../client/transport/transport.ts";
import { type Clock, deadline } from "../clock.ts";
import { abortable, linkedSignal } from "../signals.ts";

/** The verbs that change something. */
const WRITES: ReadonlySet<ApiVerb> = new Set<ApiVerb>([
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
  "connect",
]);

/** Time limit of a write whose run was aborted. */
const ABANDONED_WRITE_MS = 5_000;

/** Whether this replica may act, as long as it may. */
export interface Mandate {
  /** Whether it may act at this moment, for certain. */
  readonly holds: boolean;
  /** Fires when it may no more. */
  readonly signal: AbortSignal;
  /** Whose mandate it is not, for the error: `does not lead`. */
  readonly lack: string;
}

/** What a {@linkcode Fence} works with. */
export interface FenceOptions {
  /** Reaches the cluster whether or not this replica may act. */
  readonly client: Client;
  readonly mandate: Mandate;
  readonly clock: Clock;
}

/**
 * Lets writes through only while this replica may act, and ends those that are
 * under way when it may no more.
 *
 * A write whose run is aborted is left to its answer all the same: what was cut
 * off may still reach the server, and do so after another replica has taken
 * over. That one waits until it has {@linkcode Fence.settled}.
 */
export class Fence {
  readonly #options: FenceOptions;
  readonly #underWay: Set<Promise<unknown>> = new Set();
  /** Writes within the mandate only. */
  readonly client: Client;

  /** @param options What it works with. */
  constructor(options: FenceOptions) {
    this.#options = options;
    this.client = options.client.with([(next) => async (request) => {
      if (!WRITES.has(request.verb)) return await next(request);
      const beforeSend = () => this.#check(request);
      beforeSend();
      request.signal?.throwIfAborted();
      return await this.#write(next, { ...request, beforeSend });
    }]);
  }

  /** Fulfilled when every write that is under way now has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #check({ action }: ApiRequest): void {
    const { mandate } = this.#options;
    if (mandate.holds) return;
    throw new Error(
      `Cannot ${action}: this replica ${mandate.lack}, or not for certain: received a write`,
    );
  }

  async #write(
    next: RequestHandler,
    request: ApiRequest,
  ): Promise<HttpResponse> {
    const { mandate, clock } = this.#options;
    const { signal } = request;
    const limit = new AbortController();
    const link = linkedSignal(mandate.signal, limit.signal);
    const sent = next({ ...request, signal: link.signal });
    const ended = sent.then((response) =>
      signal?.aborted ? response.cancel() : undefined
    ).catch(() => {}).finally(() => {
      link.unlink();
      this.#underWay.delete(ended);
    });
    this.#underWay.add(ended);
    if (signal === undefined) return await sent;
    try {
      return await abortable(sent, signal);
    } catch (error) {
      if (signal.aborted) {
        deadline(ended, ABANDONED_WRITE_MS, { clock })
          .catch(() => limit.abort(signal.reason));
      }
      throw error;
    }
  }
}
