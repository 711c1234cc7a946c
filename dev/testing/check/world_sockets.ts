import net from "node:net";
import { setImmediate } from "node:timers";

/** Real time that an answer may take, in milliseconds. */
const MAX_ANSWER_MS = 5_000;
// As they were when the module was loaded: simulations replace the global ones.
const { setTimeout: realSetTimeout, clearTimeout: realClearTimeout } =
  globalThis;

/** Decides about connections that an operator opens without `fetch`. */
export interface ConnectionRules {
  /**
   * Returns why a connection is held back; undefined lets it go.
   *
   * @param address Host and port, or a path of this machine.
   */
  readonly refuse: (address: string) => Error | undefined;
  /**
   * Called with 1 when a connection that may go begins to wait for the other
   * side, and with -1 when it no longer does.
   */
  readonly waiting?: ((change: 1 | -1) => void) | undefined;
}

/** Where a connection goes, in the options of the runtimes. */
interface Destination {
  readonly host?: string | undefined;
  readonly hostname?: string | undefined;
  readonly port?: number | string | undefined;
  readonly path?: string | undefined;
  readonly unix?: string | undefined;
}

type Connect = (this: net.Socket, ...given: readonly unknown[]) => net.Socket;
type Opens = (given: Destination) => Promise<unknown>;

/**
 * Replaces what opens connections beside `fetch` and `node:http`: sockets of
 * `node:net`, and so those of `node:tls`, `node:http2` and the drivers that use
 * them, `WebSocket`, and `connect` of Deno and Bun. Those that are held back fail
 * like a connection that nobody accepts.
 *
 * @returns A function that restores them.
 */
export function replaceSockets(
  { refuse, waiting }: ConnectionRules,
): () => void {
  const held = (address: string): Error | undefined => {
    const cause = refuse(address);
    return cause && refused(address, cause);
  };
  const prototype = net.Socket.prototype as unknown as { connect: Connect };
  const { connect } = prototype;
  prototype.connect = function (...given) {
    const error = held(addressOf(destinationOf(given)));
    if (error !== undefined) {
      // Sessions of HTTP/2 wait for a socket that says so.
      Reflect.set(this, "connecting", true);
      setImmediate(() => this.destroy(error));
      return this;
    }
    connect.apply(this, [...given]);
    if (waiting !== undefined) follow(this, waiting);
    return this;
  };
  const restore = [() => void (prototype.connect = connect)];
  const runtimes = globalThis as unknown as Record<
    "Deno" | "Bun",
    Record<string, Opens> | undefined
  >;
  for (
    const [runtime, name] of [
      [runtimes.Deno, "connect"],
      [runtimes.Deno, "connectTls"],
      [runtimes.Bun, "connect"],
    ] as const
  ) {
    const opens = runtime?.[name];
    if (runtime === undefined || opens === undefined) continue;
    runtime[name] = async (given) => {
      const error = held(addressOf(given));
      if (error !== undefined) throw error;
      waiting?.(1);
      try {
        return await opens.call(runtime, given);
      } finally {
        waiting?.(-1);
      }
    };
    restore.push(() => void (runtime[name] = opens));
  }
  const { WebSocket } = globalThis;
  globalThis.WebSocket = new Proxy(WebSocket, {
    construct(real, given, target) {
      const url = new URL(String(given[0]));
      const { hostname, port, protocol } = url;
      const isSecure = /^(wss|https):$/.test(protocol);
      const error = held(`${hostname}:${port || (isSecure ? 443 : 80)}`);
      return error === undefined
        ? Reflect.construct(real, given, target)
        : new RefusedWebSocket(url.href, error);
    },
  });
  restore.push(() => void (globalThis.WebSocket = WebSocket));
  return () => {
    for (const undo of restore) undo();
  };
}

/** Reports when a socket waits: to be connected, and for answers. */
function follow(socket: net.Socket, waiting: (change: 1 | -1) => void): void {
  let limit: ReturnType<typeof realSetTimeout> | undefined;
  const end = () => {
    if (limit === undefined) return;
    realClearTimeout(limit);
    limit = undefined;
    waiting(-1);
  };
  const begin = () => {
    if (limit === undefined) waiting(1);
    else realClearTimeout(limit);
    limit = realSetTimeout(end, MAX_ANSWER_MS);
  };
  begin();
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  socket.write = (...given: unknown[]) => {
    begin();
    return write(...given);
  };
  // A listener of "data" that is added by `on` would begin to read.
  for (const event of ["connect", "data", "finish", "close"]) {
    socket.prependListener(event, end);
  }
}

/** WebSocket whose connection nobody accepts. */
class RefusedWebSocket extends EventTarget {
  readonly url: string;
  readyState = 0;
  readonly bufferedAmount = 0;
  readonly protocol = "";
  readonly extensions = "";
  binaryType = "blob";
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: Event) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  onclose: ((event: Event) => void) | null = null;

  constructor(url: string, error: Error) {
    super();
    this.url = url;
    setImmediate(() => {
      this.readyState = 3;
      const { message } = error;
      this.#send(Object.assign(new Event("error"), { error, message }));
      const closed = { code: 1006, reason: "", wasClean: false };
      this.#send(Object.assign(new Event("close"), closed));
    });
  }

  #send(event: Event): void {
    this[`on${event.type as "error" | "close"}`]?.(event);
    this.dispatchEvent(event);
  }

  send(): void {
    if (this.readyState !== 0) return;
    throw new DOMException(
      "Cannot send: the WebSocket is not open",
      "InvalidStateError",
    );
  }

  close(): void {}
}

/** Where a call of `connect` of a socket goes. */
function destinationOf(given: readonly unknown[]): Destination {
  // The functions of the module pass their arguments as one list.
  const [first, second] = Array.isArray(given[0]) ? given[0] : given;
  if (typeof first === "object" && first !== null) return first as Destination;
  if (typeof first === "string" && !/^\d+$/.test(first)) return { path: first };
  return {
    port: Number(first),
    ...(typeof second === "string" && { host: second }),
  };
}

function addressOf(
  { host, hostname, port, path, unix }: Destination,
): string {
  const name = host ?? hostname ?? "localhost";
  return path ?? unix ?? `${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Error of a connection that nobody accepts. */
function refused(address: string, cause: Error): Error {
  const code = "ECONNREFUSED";
  const at = address.lastIndexOf(":");
  // deno-lint-ignore coracle/error-message -- as the runtimes word it
  return Object.assign(new Error(`connect ${code} ${address}`, { cause }), {
    code,
    syscall: "connect",
    address: address.slice(0, at),
    port: Number(address.slice(at + 1)) || undefined,
  });
}
