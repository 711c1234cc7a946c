import { once } from "node:events";
import {
  type AddressInfo,
  connect,
  createServer,
  type Server,
  type Socket,
} from "node:net";
import { clearInterval, setInterval, setTimeout } from "node:timers";
import type { Random } from "./random.ts";

/** Options of {@linkcode RoughProxy.start}. */
export interface RoughProxyOptions {
  /** URL of the server behind it. */
  readonly target: string;
  readonly random: Random;
  /** Time between two faults, in milliseconds. */
  readonly period: number;
  /**
   * Time after which a connection without a byte is closed, in milliseconds.
   *
   * @default {20_000}
   */
  readonly idleLimit?: number | undefined;
}

/** Longest delay of a chunk, in milliseconds. */
const MAX_DELAY_MS = 300;

/** Connection through the proxy. */
interface Tunnel {
  readonly ends: readonly [Socket, Socket];
  /** Time until which its chunks are late. */
  slowUntil: number;
  /** Whether nothing passes any more, as when a host has vanished. */
  isFrozen: boolean;
}

/**
 * TCP proxy as clusters have them in front of an API server, on a bad day: it
 * closes idle connections, and in turn cuts one, resets one, freezes one for good,
 * delays all, or closes one without a word to the server.
 */
export class RoughProxy {
  /** Number of faults so far, without closed idle connections. */
  faults = 0;
  readonly #server: Server;
  readonly #options: RoughProxyOptions;
  readonly #tunnels = new Set<Tunnel>();
  #timer: ReturnType<typeof setInterval> | undefined;

  private constructor(options: RoughProxyOptions) {
    this.#options = options;
    this.#server = createServer((client) => this.#serve(client));
  }

  /** Starts a proxy on a free port. */
  static async start(options: RoughProxyOptions): Promise<RoughProxy> {
    const proxy = new RoughProxy(options);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    proxy.#timer = setInterval(() => proxy.#strike(), options.period);
    return proxy;
  }

  /** URL of the server through the proxy. */
  get url(): string {
    const url = new URL(this.#options.target);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.origin;
  }

  /** Ends the faults: connections are as good as without the proxy. */
  calm(): void {
    clearInterval(this.#timer);
    for (const tunnel of this.#tunnels) {
      if (tunnel.isFrozen) this.#close(tunnel);
    }
  }

  /** Closes the port and all connections. */
  async stop(): Promise<void> {
    this.calm();
    for (const tunnel of this.#tunnels) this.#close(tunnel);
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(client: Socket): void {
    const { target, idleLimit = 20_000 } = this.#options;
    const server = connect(Number(new URL(target).port), "127.0.0.1");
    const tunnel: Tunnel = {
      ends: [client, server],
      slowUntil: 0,
      isFrozen: false,
    };
    this.#tunnels.add(tunnel);
    for (const [from, to] of [[client, server], [server, client]] as const) {
      // One after the other, also when some are late.
      let last: Promise<void> = Promise.resolve();
      from.setNoDelay(true).setTimeout(idleLimit);
      from.on("data", (chunk) => {
        from.pause();
        last = last.then(() => this.#pass(tunnel, chunk, from, to));
      });
      from.on("timeout", () => tunnel.isFrozen || this.#close(tunnel));
      from.on("error", () => this.#close(tunnel));
      from.on("close", () => tunnel.isFrozen || this.#close(tunnel));
    }
  }

  async #pass(
    tunnel: Tunnel,
    chunk: Uint8Array,
    from: Socket,
    to: Socket,
  ): Promise<void> {
    if (performance.now() < tunnel.slowUntil) {
      const delay = this.#options.random.below(MAX_DELAY_MS);
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
    if (tunnel.isFrozen || to.destroyed) return;
    if (!to.write(chunk)) await Promise.race([once(to, "drain"), gone(to)]);
    from.resume();
  }

  #close(tunnel: Tunnel): void {
    this.#tunnels.delete(tunnel);
    for (const end of tunnel.ends) end.destroy();
  }

  #strike(): void {
    const { random } = this.#options;
    const open = [...this.#tunnels].filter(({ isFrozen }) => !isFrozen);
    if (open.length === 0) return;
    this.faults++;
    const tunnel = random.pick(open);
    const [client, server] = tunnel.ends;
    random.pick([
      () => this.#close(tunnel),
      () => {
        client.resetAndDestroy();
        server.resetAndDestroy();
      },
      () => {
        tunnel.isFrozen = true;
      },
      () => {
        client.end();
      },
      () => {
        const until = performance.now() + 2 * this.#options.period;
        for (const each of open) each.slowUntil = until;
      },
    ])();
  }
}

function gone(socket: Socket): Promise<unknown> {
  return socket.closed
    ? Promise.resolve()
    : new Promise((resolve) => socket.once("close", resolve));
}
