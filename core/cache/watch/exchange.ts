import type { Clock, Timer } from "../../clock.ts";
import type { ApiRequest } from "../../client/request.ts";
import type { HttpResponse } from "../../client/transport/transport.ts";
import { ConnectionFault } from "./connection_fault.ts";

/** How long an {@linkcode Exchange} waits, in milliseconds. */
export interface ExchangeLimits {
  /** For the head of the answer. */
  readonly answer: number;
  /** For the next bytes of the body; may be changed while it arrives. */
  readonly silence: number;
  /** For everything; no limit when absent. */
  readonly total?: number | undefined;
}

/** What an {@linkcode Exchange} needs. */
export interface ExchangeParts {
  send(request: ApiRequest): Promise<HttpResponse>;
  readonly clock: Clock;
  readonly limits: ExchangeLimits;
}

/**
 * One request and its streamed answer, which ends in bounded time whatever the
 * peer does: when the head or the next bytes do not come, when it takes too long
 * in all, and at once when it is closed, also if the transport does not react.
 */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #request: ApiRequest;
  readonly #controller: AbortController = new AbortController();
  readonly #opened: number;
  #progressed: number;
  #body: AsyncIterator<Uint8Array> | undefined;
  /**
   * Settle what is awaited at the moment; without effect when that is over. Not
   * `Promise.race` with one long-lived promise, which would remember every chunk
   * of a watch that lasts for hours.
   */
  #resolve: (bytes: Uint8Array | undefined) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  /** Made once, not for each chunk. */
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
  /** When the silence lasts too long, on the clock. */
  #silentAt: number;
  /** Whether it is the peer's turn: while nobody reads, nothing has to come. */
  #isWaiting = true;

  constructor(request: ApiRequest, parts: ExchangeParts) {
    this.#parts = parts;
    this.#request = { ...request, signal: this.#controller.signal };
    this.#opened = parts.clock.now();
    this.#progressed = this.#opened;
    this.#silence = parts.limits.answer;
    this.#silentAt = this.#opened + this.#silence;
    this.#watch();
  }

  /** What the request is for, to read after "Cannot". */
  get action(): string {
    return this.#request.action;
  }

  /** How long ago the request was sent, in milliseconds. */
  get age(): number {
    return this.#parts.clock.now() - this.#opened;
  }

  /** How long ago {@linkcode progress} was called, in milliseconds. */
  get sinceProgress(): number {
    return this.#parts.clock.now() - this.#progressed;
  }

  /** Notes that the answer gets on, as its reader sees it. */
  progress(): void {
    this.#progressed = this.#parts.clock.now();
  }

  /** From now on, bytes must come at least this often, in milliseconds. */
  expectWithin(silence: number): void {
    this.#silence = silence;
    this.#silentAt = this.#parts.clock.now() + silence;
    this.#watch();
  }

  /**
   * Sends the request and waits for the head of the answer.
   *
   * @throws {ApiError} If the server says no.
   * @throws {ConnectionFault} If it says nothing.
   */
  async open(): Promise<void> {
    const response = await this.#answer();
    this.#body = response.body[Symbol.asyncIterator]();
    this.expectWithin(this.#parts.limits.silence);
  }

  /**
   * The next bytes of the answer; `undefined` at its end.
   *
   * @throws {ConnectionFault} If nothing comes in time.
   */
  next(): Promise<Uint8Array | undefined> {
    const body = this.#body;
    if (body === undefined) return Promise.resolve(undefined);
    this.#isWaiting = true;
    this.#silentAt = this.#parts.clock.now() + this.#silence;
    const read = body.next();
    const next = new Promise(this.#await);
    read.then(this.#take, this.#interrupt);
    return next;
  }

  /** Ends the exchange and frees its timer and connection; safe to repeat. */
  close(reason?: unknown): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#controller.abort(reason);
    this.#reject(this.#controller.signal.reason);
    this.#body?.return?.()?.catch(() => {});
    this.#body = undefined;
  }

  /** The head of the answer; one that comes too late is cancelled. */
  #answer(): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#controller;
      if (signal.aborted) reject(signal.reason);
      this.#reject = reject;
      this.#parts.send(this.#request).then(
        (answer) => {
          if (signal.aborted) answer.cancel().catch(() => {});
          else resolve(answer);
        },
        (error) => reject(signal.aborted ? signal.reason : error),
      );
    });
  }

  /** One timer, which moves on when it finds that bytes came meanwhile. */
  #watch(): void {
    if (this.#controller.signal.aborted) return;
    const { clock, limits } = this.#parts;
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
        this.#fail("silent", this.#silence);
      } else this.#watch();
    }, due - clock.now());
  }

  #fail(reason: "overdue" | "silent", limit: number): void {
    const { action } = this.#request;
    const why = reason === "silent"
      ? `nothing came for ${limit} ms`
      : `the server must end the stream within ${limit} ms`;
    this.close(
      new ConnectionFault(
        reason,
        `Cannot ${action}: ${why}: received ${
          this.#body === undefined ? "no answer" : "a stream that stays open"
        }`,
      ),
    );
  }
}
