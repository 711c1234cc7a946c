import { fc } from "./property.ts";
import { ApiServer } from "../../apiserver/server.ts";
import { Client } from "../../core/client/client.ts";
import type {
  HttpRequest,
  HttpResponse,
  Transport,
} from "../../core/client/transport/transport.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { VirtualClock } from "../../testing/virtual_clock.ts";

/** How long a request takes, in milliseconds; undefined when it gets lost. */
export interface Way {
  readonly there: number | undefined;
  readonly back: number | undefined;
}

/** A way on which all is well. */
export const GOOD_WAY: Way = { there: 3, back: 2 };

/** Ways on which things go wrong. */
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

/** What a {@linkcode DistantProcess} lives in. */
export interface Surroundings {
  readonly clock: VirtualClock;
  /** The server at the end of the way. */
  readonly server: Transport;
}

/** Plays processes around a server without a socket, on a clock of their own. */
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
 * A process as others see it: behind a network that is slow or loses requests
 * and answers, on a machine that may stop it for a while, and perhaps killed.
 *
 * A request that was sent arrives even if its sender has given it up.
 */
export class DistantProcess {
  readonly #surroundings: Surroundings;
  #killed = false;
  /** The way of requests that are sent from now on. */
  way: Way = GOOD_WAY;
  /** Until when it stands still, as by SIGSTOP. */
  stoppedUntil = 0;
  /** Time as the process has it: timers wait while it stands still. */
  readonly clock: Clock;
  /** Its way to the server. */
  readonly client: Client;

  constructor(surroundings: Surroundings) {
    const { clock } = surroundings;
    this.#surroundings = surroundings;
    this.clock = {
      now: () => clock.now(),
      wallTime: () => clock.wallTime(),
      setTimer: (callback, delay) => this.#timer(callback, delay),
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
    return !this.#killed && this.stoppedUntil <= this.clock.now();
  }

  /** Ends it: nothing that it waits for comes any more. */
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
