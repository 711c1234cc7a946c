import type {
  Clock,
  HttpRequest,
  HttpResponse,
  Timer,
  Transport,
} from "@coracle/operator/client";
import { fc } from "./property.ts";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { Client } from "../../core/client/client.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";

/** Latency of a request in milliseconds; undefined when it is lost. */
export interface Way {
  readonly there: number | undefined;
  readonly back: number | undefined;
}

/** Way without delay or loss. */
export const GOOD_WAY: Way = { there: 3, back: 2 };

/** Ways with delays and losses. */
export const anyWay: fc.Arbitrary<Way> = fc.oneof(
  fc.constant(GOOD_WAY),
  fc.record({ there: latency(), back: latency() }),
);

function latency(): fc.Arbitrary<number | undefined> {
  return fc.option(
    fc.oneof(
      fc.integer({ min: 1, max: 2_000 }),
      fc.constantFrom(5_000, 12_000, 20_000),
    ),
    { nil: undefined },
  );
}

/** Dependencies of a {@linkcode DistantProcess}. */
export interface Surroundings {
  readonly clock: VirtualClock;
  /** The server at the end of the way. */
  readonly server: Transport;
}

/** Runs processes around an in-process server on a virtual clock. */
export async function atDistance(
  play: (surroundings: Surroundings) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ port: false });
  const clock = new VirtualClock({ quietTurns: 1 });
  try {
    await play({ clock, server: server.transport });
  } finally {
    await server.stop();
  }
}

/**
 * Simulated process behind a network that is slow or loses requests and answers,
 * on a machine that may freeze or kill it.
 *
 * A request that was sent arrives even if its sender has given it up.
 */
export class DistantProcess {
  readonly #surroundings: Surroundings;
  #killed = false;
  /** Way of later requests. */
  way: Way = GOOD_WAY;
  /** Time until which it is frozen, as by SIGSTOP. */
  stoppedUntil = 0;
  /** Milliseconds by which its wall clock is wrong. */
  skew = 0;
  /** Clock of the process: its timers wait while it is frozen. */
  readonly clock: Clock;
  /** Client of the process. */
  readonly client: Client;

  /** @param rate Seconds that its clock counts in one second. */
  constructor(surroundings: Surroundings, rate = 1) {
    const { clock } = surroundings;
    this.#surroundings = surroundings;
    this.clock = {
      now: () => clock.now() * rate,
      wallTime: () => clock.wallTime() + this.skew,
      setTimer: (callback, delay) => this.#timer(callback, delay / rate),
    };
    this.client = new Client({
      transport: {
        send: (request) => this.#send(request),
        close: () => Promise.resolve(),
      },
      namespace: "default",
    }, { clock: this.clock });
  }

  /** Whether it does anything at this moment. */
  get isAwake(): boolean {
    return !this.#killed && this.stoppedUntil <= this.#surroundings.clock.now();
  }

  /** Kills it: nothing that it waits for arrives. */
  kill(): void {
    this.#killed = true;
  }

  #timer(callback: () => void, delay: number): Timer {
    const { clock } = this.#surroundings;
    const fire = () => {
      if (this.#killed) return;
      const rest = this.stoppedUntil - clock.now();
      if (rest > 0) timer = clock.setTimer(fire, rest);
      else callback();
    };
    let timer = clock.setTimer(fire, delay);
    return { cancel: () => timer.cancel() };
  }

  #send(request: HttpRequest): Promise<HttpResponse> {
    const { clock, server } = this.#surroundings;
    const { signal, ...sent } = request;
    const { there, back } = this.way;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener("abort", () => reject(signal.reason));
      if (there === undefined) return;
      clock.setTimer(() =>
        void server.send(sent).then((response) => {
          if (back !== undefined) this.#timer(() => resolve(response), back);
        }), there);
    });
  }
}
