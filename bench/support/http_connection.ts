import { Buffer } from "node:buffer";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ServerProcess } from "./api_server.ts";
import { verify } from "./bench.ts";

/** End of the headers of an answer. */
const HEAD_END = Buffer.from("\r\n\r\n");
/** End of a watch event; JSON text has no line feed. */
const EVENT_END = Buffer.from("}\n");

/**
 * Keep-alive connection with minimal cost, so that the server is measured:
 * sequential requests, or one watch.
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #server: ServerProcess;
  #received: (chunk: Buffer) => void = () => {};

  private constructor(socket: Socket, server: ServerProcess) {
    this.#socket = socket;
    this.#server = server;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#received(chunk));
  }

  static async open(server: ServerProcess): Promise<HttpConnection> {
    const { url: { protocol, hostname: host, port }, authority } = server;
    const address = { host, port: Number(port) };
    const tls = protocol === "https:";
    const socket = tls
      ? connectTls({ ...address, ca: authority })
      : connect(address);
    await once(socket, tls ? "secureConnect" : "connect");
    return new HttpConnection(socket, server);
  }

  #send(method: string, path: string, body = ""): void {
    const { url, token } = this.#server;
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: ${url.host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${
        Buffer.byteLength(body)
      }\r\n\r\n${body}`,
    );
  }

  /** Creates an object and waits for the answer. */
  post(path: string, body: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let answer: Buffer = Buffer.alloc(0);
      this.#received = (chunk) => {
        answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk]);
        const head = answer.indexOf(HEAD_END);
        if (head < 0) return;
        const text = answer.toString("latin1", 0, head);
        const [, length] = /content-length: (\d+)/i.exec(text) ?? [];
        if (answer.length < head + 4 + Number(length)) return;
        if (text.startsWith("HTTP/1.1 201")) resolve();
        else reject(new Error(`Cannot create: received ${answer}`));
      };
      this.#send("POST", path, body);
    });
  }

  /**
   * Starts a watch and counts events.
   *
   * @returns Resolves when the watch is open, with a promise for the last
   * event.
   */
  watch(path: string, count: number): Promise<{ ended: Promise<void> }> {
    return new Promise((opened) => {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      let open = false;
      let seen = 0;
      let last = 0;
      this.#received = (chunk) => {
        if (!open) opened({ ended });
        open = true;
        if (last === EVENT_END[0] && chunk[0] === EVENT_END[1]) seen++;
        last = chunk.at(-1) ?? 0;
        for (
          let at = chunk.indexOf(EVENT_END);
          at >= 0;
          at = chunk.indexOf(EVENT_END, at + 2)
        ) seen++;
        verify(seen <= count, "a watch must see each create once");
        if (seen === count) resolve();
      };
      this.#send("GET", path);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
