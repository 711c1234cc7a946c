import type { KubernetesObject } from "../core/api/object.ts";
import type { ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import { guardedRandom } from "../core/callback.ts";
import { sleep } from "../core/clock.ts";
import { BackOff } from "../core/pace.ts";
import type { TransportOptions } from "../core/client/transport/transport_options.ts";
import type { StreamConnection } from "../core/client/transport/transport.ts";
import type { OpenStream } from "../core/client/transport/web_socket.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceContext,
} from "../core/controller/event_source.ts";
import { keyTexts } from "../core/controller/watch/mappers.ts";
import { BaseSource, SourceRun } from "./source_run.ts";

/** Options of {@linkcode websocketSource}. */
export interface WebsocketOptions<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /** URL of the server, with `ws:` or `wss:`. */
  readonly url: string;
  /**
   * Maps a message to primaries, as keys or `namespace/name`; unknown primaries
   * are ignored. `known` looks up the known primaries. If the function throws,
   * the message is logged and dropped.
   */
  readonly primaries: (
    message: Uint8Array,
    known: PrimaryCache<P>,
  ) => Iterable<ObjectKey | string>;
  /** Callback for each new connection, for example to subscribe. */
  readonly onOpen?:
    | ((connection: Pick<StreamConnection, "send">) => Promise<void> | void)
    | undefined;
  /**
   * Headers of the upgrade request; a function is called for each request.
   * Empty by default.
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() =>
      | Readonly<Record<string, string>>
      | Promise<Readonly<Record<string, string>>>)
    | undefined;
  /**
   * Subprotocols to offer.
   *
   * @default {[]}
   */
  readonly protocols?: readonly string[] | undefined;
  /** Certificates and proxy. Defaults to those of the runtime. */
  readonly tls?: Omit<TransportOptions, "server"> | undefined;
  /**
   * Whether only the replica that leads connects, which then connects again when
   * another replica takes over. With sharding each replica does.
   *
   * @default {false}
   */
  readonly leaderOnly?: boolean | undefined;
  /**
   * Random numbers from 0 to below 1, for jitter.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

const RULES: OptionRules<WebsocketOptions<never>> = {
  name: "name",
  url: "string",
  primaries: "function",
  onOpen: "function?",
  headers: "any?",
  protocols: "strings?",
  tls: {
    type: "object?",
    options: {
      certificateAuthority: "string?",
      serverName: "string?",
      insecureSkipTlsVerify: "boolean?",
      certificate: "string?",
      key: "string?",
      proxyUrl: "string?",
      connectTimeout: "number?",
    },
  },
  random: "function?",
  leaderOnly: "boolean?",
};

/** Pauses before a reconnection, in milliseconds. */
const PAUSES = {
  initialDelay: 500,
  maxDelay: 30_000,
  resetAfter: 60_000,
};

/**
 * Creates an event source that receives the messages of a WebSocket server and
 * triggers the primaries that `primaries` returns.
 *
 * A connection that breaks, is closed or becomes silent (the peer is pinged
 * every 30 seconds) is opened again after delays from 0.5 to 30 seconds, with
 * jitter; until then the source is unhealthy. After each reconnection, and a first
 * connection that needed several attempts, all primaries are triggered when `onOpen`
 * has ended, because messages may have been missed.
 *
 * The operator does not wait for the first connection.
 *
 * @param options The server, and the mapping to primaries.
 * @throws {TypeError} If an option is unknown, missing or of another type, or
 * the URL has another scheme than `ws:` or `wss:`.
 *
 * @example Subscribe to orders
 * ```ts
 * import { websocketSource } from "@coracle/operator/sources";
 *
 * const orders = websocketSource({
 *   name: "orders",
 *   url: "wss://orders.example.com/live",
 *   headers: () => ({ authorization: "Bearer …" }),
 *   onOpen: ({ send }) => send(new TextEncoder().encode("subscribe")),
 *   primaries(message) {
 *     const { shop } = JSON.parse(new TextDecoder().decode(message));
 *     return [`default/${shop}`];
 *   },
 * });
 * ```
 */
export function websocketSource<P extends KubernetesObject>(
  options: WebsocketOptions<P>,
): EventSource<P, never> {
  return new WebsocketSource(options);
}

class WebsocketSource<P extends KubernetesObject> extends BaseSource<P>
  implements EventSource<P, never> {
  readonly #options: WebsocketOptions<P>;
  readonly #url: URL;
  #listening: Promise<void> = Promise.resolve();

  constructor(options: WebsocketOptions<P>) {
    checkOptions(options, RULES, "websocketSource()");
    super(options.name, options.leaderOnly);
    if (typeof options.headers !== "function") {
      checkOption(options.headers, "object?", {
        name: "headers",
        subject: "websocketSource()",
      });
    }
    this.#options = options;
    this.#url = socketUrl(options);
  }

  override start(context: SourceContext<P>): Promise<void> {
    const run = new SourceRun(context, "not connected yet");
    this.run = run;
    this.#listening = this.#listen(run);
    return Promise.resolve();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#listening;
  }

  async #listen(run: SourceRun<P>): Promise<void> {
    const { signal, context: { clock, log } } = run;
    const random = guardedRandom(
      this.#options.random ?? Math.random,
      (error) =>
        log.warn("Math.random is used instead of the option random", { error }),
    );
    const backOff = new BackOff(PAUSES, clock, random);
    for (let attempt = 1; !run.ended; attempt++) {
      try {
        const connection = await this.#connect(run);
        try {
          run.worked();
          await this.#options.onOpen?.({
            // Callbacks take it apart, so it must work without its object.
            send: (message) => connection.send(message),
          });
          // Not before: what happens until the subscription has no message.
          if (attempt > 1) run.triggerAll();
          for await (const message of connection.messages) {
            this.#onMessage(run, message);
          }
        } finally {
          await connection.abort(undefined);
        }
        run.failed("Lost a WebSocket", "the server closed the connection");
      } catch (error) {
        run.failed("Cannot listen to a WebSocket", error);
      }
      // Rejects when the source is stopped.
      await sleep(backOff.next(), { clock, signal }).catch(() => {});
    }
  }

  async #connect(run: SourceRun<P>): Promise<OpenStream> {
    const { headers = {}, protocols = [], tls = {} } = this.#options;
    const { openWebSocket } = await import(
      "../core/client/transport/web_socket.ts"
    );
    const { origin, pathname, search } = this.#url;
    return await openWebSocket(
      {
        path: `${pathname}${search}`,
        headers: typeof headers === "function" ? await headers() : headers,
        protocols,
        signal: run.signal,
      },
      { ...tls, server: origin },
    );
  }

  #onMessage(run: SourceRun<P>, message: Uint8Array): void {
    try {
      const { primaries } = run.context;
      const keys = keyTexts(this.#options.primaries(message, primaries));
      for (const key of keys) run.context.trigger(key);
    } catch (error) {
      run.warn("Cannot map a message to primaries", {
        source: this.name,
        error,
      });
    }
  }
}

/** Converts a WebSocket URL to an HTTP URL, as transports require. */
function socketUrl(
  { name, url }: Pick<WebsocketOptions, "name" | "url">,
): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "ws:" && parsed?.protocol !== "wss:") {
    throw new TypeError(
      `Cannot create the WebSocket source "${name}": "url" must begin with ws: or wss:: received ${
        JSON.stringify(parsed?.protocol ?? "no URL")
      }`,
    );
  }
  // As parsed: a scheme may have capitals, and spaces around it.
  return new URL(parsed.href.replace(/^ws/, "http"));
}
