import type { Clock, Timer } from "../../clock.ts";
import type { ApiRequest } from "../../client/request.ts";
import type { HttpResponse } from "../../client/transport/transport.ts";
import type { InformerClient } from "./watch_requests.ts";
import { ConnectionFault } from "./watch_failure.ts";

/** Time limits of a {@linkcode ResponseReader}, in milliseconds. */
export interface ResponseLimits {
  readonly head: number;
  /** Limit for the next bytes of the body; can be changed during the response. */
  readonly silence: number;
  /** Limit for the whole response; no limit if absent. */
  readonly total?: number | undefined;
}

export interface ResponseReaderDeps {
  readonly client: Pick<InformerClient, "request">;
  readonly clock: Clock;
  readonly limits: ResponseLimits;
}

/**
 * Reader of one streamed response. It ends in bounded time whatever the peer
 * does: when the head or the next bytes are late, when the whole response takes
 * too long, and immediately when it is closed, even if the transport does not
 * react.
 */
export class ResponseReader {
  readonly #deps: ResponseReaderDeps;
  readonly #request: ApiRequest;
  readonly #controller: AbortController = new AbortController();
  readonly #opened: number;
  #progressed: number;
  #body: AsyncIterator<Uint8Array> | undefined;
  /**
   * Functions that settle the pending read, if there is one. With `Promise.race`,
   * one long-lived promise would keep every chunk of a watch that lasts for hours.
   */
  #resolve: (bytes: Uint8Array | undefined) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  /** Promise executor, created once instead of for each chunk. */
  readonly #await = (
    resolve: (bytes: Uint8Array | undefined) => void,
    reject: (reason: unknown) => void,
  ): void => {
    this.#resolve = resolve;
    this.#reject = reject;
  };
  readonly #take = ({ done, value }: IteratorResult<Uint8Array>): void => {
    this.#isWaiting = false;
    this.#resolve(done ? undefined : value);
  };
  readonly #interrupt = (reason: unknown): void => this.#reject(reason);
  #timer: Timer | undefined;
  #silence: number;
  /** Whether silence ends the body, instead of being a failure. */
  #endsBody = false;
  /** Time on the clock at which the silence exceeds its limit. */
  #silentAt: number;
  /** Whether bytes are awaited; while nobody reads, the peer may be silent. */
  #isWaiting = true;

  constructor(request: ApiRequest, deps: ResponseReaderDeps) {
    this.#deps = deps;
    this.#request = { ...request, signal: this.#controller.signal };
    this.#opened = deps.clock.now();
    this.#progressed = this.#opened;
    this.#silence = deps.limits.head;
    this.#silentAt = this.#opened + this.#silence;
    this.#watch();
  }

  /** Purpose of the request, worded to follow "Cannot". */
  get action(): string {
    return this.#request.action;
  }

  /** Time since the request was sent, in milliseconds. */
  get age(): number {
    return this.#deps.clock.now() - this.#opened;
  }

  /** Time since the last call of {@linkcode progress}, in milliseconds. */
  get sinceProgress(): number {
    return this.#deps.clock.now() - this.#progressed;
  }

  /** Records progress, as defined by the caller. */
  progress(): void {
    this.#progressed = this.#deps.clock.now();
  }

  /** Sets the limit for the next bytes, in milliseconds; silence is a failure. */
  expectWithin(silence: number): void {
    this.#limitSilence(silence, false);
  }

  /** Sets the limit for the next bytes, in milliseconds; silence ends the body. */
  endAfter(silence: number): void {
    this.#limitSilence(silence, true);
  }

  #limitSilence(silence: number, endsBody: boolean): void {
    this.#silence = silence;
    this.#endsBody = endsBody;
    this.#silentAt = this.#deps.clock.now() + silence;
    this.#watch();
  }

  /**
   * Sends the request and waits for the head of the response.
   *
   * @throws {ApiError} If the server rejects the request.
   * @throws {ConnectionFault} If the server does not respond in time.
   */
  async open(): Promise<void> {
    const response = await this.#head();
    const { signal } = this.#controller;
    if (signal.aborted) {
      // It was closed between the head and this turn.
      response.cancel().catch(() => {});
      throw signal.reason;
    }
    this.#body = response.body[Symbol.asyncIterator]();
    this.expectWithin(this.#deps.limits.silence);
  }

  /**
   * Next bytes of the response; `undefined` at its end.
   *
   * @throws {ConnectionFault} If nothing arrives in time.
   */
  next(): Promise<Uint8Array | undefined> {
    const body = this.#body;
    if (body === undefined) return Promise.resolve(undefined);
    this.#isWaiting = true;
    this.#silentAt = this.#deps.clock.now() + this.#silence;
    const read = body.next();
    const next = new Promise(this.#await);
    read.then(this.#take, this.#interrupt);
    return next;
  }

  /** Ends the response, its timer and its connection; safe to repeat. */
  close(reason?: unknown): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#controller.abort(reason);
    this.#reject(this.#controller.signal.reason);
    this.#body?.return?.()?.catch(() => {});
    this.#body = undefined;
  }

  /** Head of the response; a late response is cancelled. */
  #head(): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#controller;
      if (signal.aborted) reject(signal.reason);
      this.#reject = reject;
      this.#deps.client.request(this.#request).then(
        (response) => {
          if (signal.aborted) response.cancel().catch(() => {});
          else resolve(response);
        },
        (error) => reject(signal.aborted ? signal.reason : error),
      );
    });
  }

  /** Sets the timer for the limits, and again if bytes arrived before it fired. */
  #watch(): void {
    if (this.#controller.signal.aborted) return;
    const { clock, limits } = this.#deps;
    const overdueAt = limits.total === undefined
      ? Infinity
      : this.#opened + limits.total;
    const silentAt = this.#isWaiting
      ? this.#silentAt
      : clock.now() + this.#silence;
    const due = Math.min(silentAt, overdueAt);
    this.#timer?.cancel();
    this.#timer = clock.setTimer(() => {
      const now = clock.now();
      if (now >= overdueAt) this.#fail("overdue", limits.total ?? 0);
      else if (this.#isWaiting && now >= this.#silentAt) {
        if (this.#endsBody) this.#resolve(undefined);
        else this.#fail("silent", this.#silence);
      } else this.#watch();
    }, due - clock.now());
  }

  #fail(reason: "overdue" | "silent", limit: number): void {
    const { action } = this.#request;
    const { silence, total } = this.#deps.limits;
    // Only the initial events of a watch have both limits.
    const isInitial = total !== undefined && this.#silence === silence;
    const why = reason === "silent"
      ? `nothing arrived for ${limit} ms${
        isInitial ? ", not even the bookmark that ends the initial events" : ""
      }`
      : `the server did not end the stream within ${limit} ms`;
    this.close(new ConnectionFault(reason, `Cannot ${action}: ${why}`));
  }
}
