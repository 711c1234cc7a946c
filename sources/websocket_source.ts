import type { KubernetesObject } from "../core/api/object.ts";
import type { ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import { BackOff } from "../core/cache/watch/back_off.ts";
import type { TransportOptions } from "../core/client/transport/transport_options.ts";
import type { StreamConnection } from "../core/client/transport/transport.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { keyTexts } from "./mappers.ts";
import { SourceRun } from "./source_run.ts";

/** Options of {@linkcode websocketSource}. */
export interface WebsocketOptions<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Unique within the controller. */
  readonly name: string;
  /** Where to connect: a URL with `ws:` or `wss:`. */
  readonly url: string;
  /**
   * The primaries that a message is about, as keys or `namespace/name`; those
   * that the controller does not know are ignored. It may look them up among
   * those that are known. A message for which it throws is logged and dropped.
   */
  readonly primaries: (
    message: Uint8Array,
    known: PrimaryCache<P>,
  ) => Iterable<ObjectKey | string>;
  /**
   * Called when a connection is open, for example to subscribe.
   *
   * @default {nothing}
   */
  readonly onOpen?:
    | ((connection: Pick<StreamConnection, "send">) => Promise<void> | void)
    | undefined;
  /**
   * The headers of the upgrade request; a function is asked for each.
   *
   * @default {none}
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() =>
      | Readonly<Record<string, string>>
      | Promise<Readonly<Record<string, string>>>)
    | undefined;
  /**
   * The subprotocols to offer.
   *
   * @default {[]}
   */
  readonly protocols?: readonly string[] | undefined;
  /**
   * Certificates and proxy.
   *
   * @default {the runtime's own}
   */
  readonly tls?: Omit<TransportOptions, "server"> | undefined;
  /**
   * Gives a number from 0 to below 1, for jitter.
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
  tls: "object?",
  random: "function?",
};

/** The first pause before a broken connection is made again, in milliseconds. */
const FIRST_PAUSE = 500;
/** The longest pause, in milliseconds. */
const LONGEST_PAUSE = 30_000;
/** After how many milliseconds without a failure the pauses begin small again. */
const GOOD_TIME = 60_000;

/**
 * Listens to the messages of a WebSocket server and triggers the primaries that
 * they are about.
 *
 * A connection that breaks, is closed or falls silent (the peer is pinged every
 * 30 seconds) is made again after pauses from half a second to half a minute,
 * with jitter; meanwhile the source is unhealthy. After each reconnection all
 * primaries are triggered, since messages may have been missed.
 *
 * The operator does not wait for the first connection.
 *
 * @param options Where to connect and what to trigger.
 * @throws {TypeError} If an option is unknown, missing or of another type, or
 * the URL is none with `ws:` or `wss:`.
 *
 * @example Subscribe, and run for each message
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
 * if (orders.name !== "orders") throw new Error("Unexpected name");
 * ```
 */
export function websocketSource<P extends KubernetesObject>(
  options: WebsocketOptions<P>,
): EventSource<P, never> {
  return new WebsocketSource(options);
}

class WebsocketSource<P extends KubernetesObject>
  implements EventSource<P, never> {
  readonly name: string;
  readonly #options: WebsocketOptions<P>;
  readonly #url: URL;
  #run: SourceRun<P> | undefined;
  #listening: Promise<void> = Promise.resolve();

  constructor(options: WebsocketOptions<P>) {
    checkOptions(options, RULES, "websocketSource()");
    if (typeof options.headers !== "function") {
      checkOption(options.headers, "object?", {
        name: "headers",
        subject: "websocketSource()",
      });
    }
    this.name = options.name;
    this.#options = options;
    this.#url = socketUrl(options);
  }

  start(context: SourceContext<P>): Promise<void> {
    const run = new SourceRun(context, "not connected yet");
    this.#run = run;
    this.#listening = this.#listen(run);
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    await this.#listening;
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  async #listen(run: SourceRun<P>): Promise<void> {
    const { clock } = run.context;
    const backOff = new BackOff({
      initial: FIRST_PAUSE,
      max: LONGEST_PAUSE,
      resetAfter: GOOD_TIME,
      clock,
      random: this.#options.random ?? Math.random,
    });
    let connections = 0;
    while (!run.ended) {
      try {
        const connection = await this.#connect(run);
        run.worked();
        if (connections++ > 0) run.triggerAll();
        await this.#options.onOpen?.(connection);
        for await (const message of connection.messages) {
          this.#onMessage(run, message);
        }
        run.failed("Lost a WebSocket", "the server closed the connection");
      } catch (error) {
        run.failed("Cannot listen to a WebSocket", error);
      }
      if (!run.ended) await run.pause(backOff.next());
    }
  }

  async #connect(run: SourceRun<P>): Promise<StreamConnection> {
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
      run.context.log.warn("Cannot map a message to primaries", {
        source: this.name,
        error,
      });
    }
  }
}

/** The URL with the scheme of HTTP, which transports speak. */
function socketUrl(
  { name, url }: Pick<WebsocketOptions, "name" | "url">,
): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "ws:" && parsed?.protocol !== "wss:") {
    throw new TypeError(
      `Cannot make the WebSocket source "${name}": "url" must begin with ws: or wss:: received ${
        JSON.stringify(parsed?.protocol ?? "no URL")
      }`,
    );
  }
  return new URL(url.replace(/^ws/, "http"));
}
