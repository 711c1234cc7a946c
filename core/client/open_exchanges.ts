/** A request that was sent and whose answer is not read to its end. */
export interface OpenExchange {
  /** Ends it; its reader gets the reason. */
  abort(reason: unknown): void;
}

/** What a transport has under way, so that it can wait for it or end it. */
export class OpenExchanges {
  readonly #exchanges = new Set<OpenExchange>();
  #onIdle: (() => void) | undefined;

  /** Takes note of an exchange. */
  add(exchange: OpenExchange): void {
    this.#exchanges.add(exchange);
  }

  /** Forgets an exchange that has ended; safe to call twice. */
  delete(exchange: OpenExchange): void {
    this.#exchanges.delete(exchange);
    if (this.#exchanges.size === 0) this.#onIdle?.();
  }

  /** Resolves as soon as nothing is under way. */
  idle(): Promise<void> {
    return this.#exchanges.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#onIdle = resolve);
  }

  /** Ends everything that is under way. */
  abortAll(reason: unknown): void {
    for (const exchange of this.#exchanges) exchange.abort(reason);
  }
}
