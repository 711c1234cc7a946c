import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

/**
 * HTTP proxy whose tunnels only open when the test allows it. It responds to all
 * requests through them by itself.
 */
export class SlowProxy {
  /** Bytes that were received through tunnels. */
  received = "";
  readonly #waiting: (() => void)[] = [];
  readonly #sockets = new Set<Socket>();
  #onWaiting: (() => void) | undefined;
  readonly #server = createServer((socket) => void this.#serve(socket));

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Resolves when a client waits for its tunnel. */
  async waiting(): Promise<void> {
    if (this.#waiting.length > 0) return;
    await new Promise<void>((resolve) => this.#onWaiting = resolve);
  }

  /** Opens the tunnels that clients wait for. */
  open(): void {
    for (const open of this.#waiting.splice(0)) open();
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    await once(socket, "data");
    this.#waiting.push(() => {
      socket.on("data", (data) => {
        this.received += data;
        if (!isComplete(this.received)) return;
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
      });
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    });
    this.#onWaiting?.();
  }
}

/** Whether a request was received with its whole body. */
function isComplete(received: string): boolean {
  const [head = "", body] = received.split("\r\n\r\n", 2);
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return body !== undefined && body.length >= length;
}

/** Runs a test with a proxy, given its URL. */
export async function withSlowProxy(
  run: (proxy: SlowProxy, proxyUrl: string) => Promise<void>,
): Promise<void> {
  const proxy = new SlowProxy();
  try {
    await run(proxy, await proxy.start());
  } finally {
    proxy.stop();
  }
}
