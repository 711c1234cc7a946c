import type { Client } from "../client/client.ts";
import type { ApiRequest, ApiVerb } from "../client/request.ts";
import type { RequestHandler } from "../client/middleware.ts";
import type { HttpResponse } from "../client/transport/transport.ts";
import { type Clock, deadline } from "../clock.ts";
import { abortable, linkedSignal } from "../signals.ts";

/** Verbs of requests that change something. */
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

/** Lease of this replica, without which it must not write. */
export interface ReplicaLease {
  /** Whether the lease is certainly held at this moment. */
  readonly isHeld: boolean;
  /** Signal that aborts when the lease is lost; the next term has a new one. */
  readonly signal: AbortSignal;
  /** Role of the replica that holds the lease, such as `the leader`. */
  readonly role: string;
}

export interface FenceDeps {
  /** Client whose writes do not depend on the lease. */
  readonly client: Client;
  readonly lease: ReplicaLease;
  readonly clock: Clock;
}

/**
 * Fence around the writes of a replica: they are only sent while its lease is
 * held, and pending ones are aborted when the lease is lost. The lease is checked
 * again when the connection is open and the request is about to be written to it:
 * a process that is suspended while it connects sends nothing afterwards.
 *
 * A write whose run is aborted still waits for its response: if it were cut off,
 * it could reach the server after another replica has taken over. The lease is
 * therefore only released when all writes have {@linkcode Fence.settled}.
 */
export class Fence {
  readonly #deps: FenceDeps;
  readonly #pending: Set<Promise<unknown>> = new Set();
  /** Client whose writes fail when the lease is not held. */
  readonly client: Client;

  constructor(deps: FenceDeps) {
    this.#deps = deps;
    this.client = this.around(deps.client);
  }

  /** Derives a client, of any cluster, whose writes fail when the lease is not held. */
  around(client: Client): Client {
    const { lease } = this.#deps;
    return client.with([(next) => async (request) => {
      if (!WRITES.has(request.verb)) return await next(request);
      const beforeSend = () => {
        if (lease.isHeld) return;
        throw new Error(
          `Cannot ${request.action}: this replica is not ${lease.role}, or cannot be sure of it`,
        );
      };
      beforeSend();
      request.signal?.throwIfAborted();
      return await this.#write(next, { ...request, beforeSend });
    }]);
  }

  /** Resolves when all writes that are pending now have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async #write(
    next: RequestHandler,
    request: ApiRequest,
  ): Promise<HttpResponse> {
    const { lease, clock } = this.#deps;
    const { signal } = request;
    const limit = new AbortController();
    const link = linkedSignal(lease.signal, limit.signal);
    const sent = next({ ...request, signal: link.signal });
    const ended = sent.then((response) =>
      signal?.aborted ? response.cancel() : undefined
    ).catch(() => {}).finally(() => {
      link.unlink();
      this.#pending.delete(ended);
    });
    this.#pending.add(ended);
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
