import type { Clock, HttpRequest, Transport } from "@coracle/operator/client";
import { LineSplitter, readBody } from "@coracle/operator/internal";
import type {
  ResponseStream,
  ServerRequest,
  ServerResponse,
  StreamWriter,
} from "../http/exchange.ts";
import { InProcessTransport } from "../http/in_process_transport.ts";
import { seededRandom } from "../random.ts";
import { errorFrame } from "../read/watch_frame.ts";
import type { ResourcePath } from "../request/request_info.ts";
import { readTarget } from "../request/request_info.ts";
import type { StatusError } from "../status.ts";
import type { JournalContent } from "../storage/file_journal.ts";
import {
  FaultInjector,
  type FaultTarget,
  type FaultyWatch,
} from "./fault_injector.ts";
import type { Faults } from "./faults.ts";

/** Placeholder for the data of a remote server, which survives a restart. */
const EMPTY_JOURNAL: JournalContent = { revision: 0, objects: [] };

const LINE_FEED = 10;

/** Headers that describe only the connection to the server. */
const HOP_HEADERS = ["content-length", "content-encoding", "transfer-encoding"];

/**
 * Proxy transport that injects faults before a remote server: a client sees a
 * failure of the server or the connection. The server itself is unaffected, so
 * it cannot lose its history or objects.
 */
export class FaultProxy implements Transport {
  readonly #inner: Transport;
  readonly #outer: InProcessTransport;
  readonly #faults: FaultInjector;
  readonly #watches: Set<ProxiedWatch> = new Set();
  #down = false;

  /**
   * Creates a proxy without faults.
   *
   * @param inner Transport to the server.
   * @param clock Clock of delays and downtime.
   */
  constructor(inner: Transport, clock: Clock) {
    this.#inner = inner;
    const random = seededRandom(1);
    this.#faults = new FaultInjector({ clock, random, server: this.#target() });
    this.#outer = new InProcessTransport((request) =>
      this.#faults.around(
        request,
        async (asked) => this.#down ? undefined : await this.#forward(asked),
      )
    );
  }

  /** Fault injection of the proxy. */
  get faults(): Faults {
    return this.#faults;
  }

  send(request: HttpRequest): Promise<Awaited<ReturnType<Transport["send"]>>> {
    return this.#outer.send(request);
  }

  async close(): Promise<void> {
    this.#faults.stop();
    await this.#outer.close();
    await this.#inner.close();
  }

  #target(): FaultTarget {
    return {
      watches: () => this.#watches,
      // The transport has its own credentials.
      authorized: (request) => request,
      compact: () => cannot("forget its past"),
      // In this process there are no connections to retire.
      retireConnections: () => {},
      dropConnections: () => this.#outer.dropConnections(),
      setToken: () => cannot("change its tokens"),
      stop: (keepData) => {
        if (!keepData) cannot("lose its objects");
        this.#down = true;
        this.#outer.dropConnections();
        return Promise.resolve(EMPTY_JOURNAL);
      },
      start: () => {
        this.#down = false;
        return Promise.resolve();
      },
    };
  }

  async #forward(request: ServerRequest): Promise<ServerResponse> {
    const { method, target, headers, body } = request;
    const end = new AbortController();
    const { query, resource } = readTarget(target) ?? {};
    const wanted = query?.get("watch");
    const watches = resource?.watch === true || wanted === "true" ||
      wanted === "1";
    const response = await this.#inner.send({
      method: method as HttpRequest["method"],
      path: target,
      headers,
      body: body.length === 0 ? undefined : body,
      signal: end.signal,
      // It must not count among the few connections of short requests.
      mayPause: watches,
    });
    const kept = Object.fromEntries(
      Object.entries(response.headers).filter(([name]) =>
        !HOP_HEADERS.includes(name)
      ),
    );
    const { status } = response;
    if (resource === undefined || !watches || status !== 200) {
      return {
        status,
        headers: kept,
        body: await readBody(response, Infinity),
      };
    }
    const watch = new ProxiedWatch(resource, response.body, () => {
      this.#watches.delete(watch);
      end.abort();
    });
    this.#watches.add(watch);
    return { status, headers: kept, body: watch };
  }
}

function cannot(what: string): never {
  throw new Error(`Cannot have a real cluster ${what}`);
}

/** Proxied watch of the remote server. */
class ProxiedWatch implements ResponseStream, FaultyWatch {
  readonly resource: ResourcePath;
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #onClose: () => void;
  #writer: StreamWriter | undefined;
  #stalled = false;

  constructor(
    resource: ResourcePath,
    body: AsyncIterable<Uint8Array>,
    onClose: () => void,
  ) {
    this.resource = resource;
    this.#body = body;
    this.#onClose = onClose;
  }

  get namespace(): string | undefined {
    return this.resource.namespace;
  }

  start(writer: StreamWriter): () => void {
    this.#writer = writer;
    this.#pass(writer).then(() => this.end(), () => this.cut());
    return this.#onClose;
  }

  /** Forwards whole events, as the embedded server writes them. */
  async #pass(writer: StreamWriter): Promise<void> {
    const lines = new LineSplitter();
    for await (const chunk of this.#body) {
      lines.push(chunk);
      while (lines.next()) {
        const event = new Uint8Array(lines.end - lines.start + 1);
        event.set(lines.bytes.subarray(lines.start, lines.end));
        event.set([LINE_FEED], event.length - 1);
        if (!this.#stalled) writer.write(event);
      }
    }
  }

  stall(): void {
    this.#stalled = true;
  }

  fail(error: StatusError): void {
    this.#writer?.write(errorFrame(error.status, {}));
    this.end();
  }

  end(): void {
    this.#onClose();
    this.#writer?.end();
  }

  cut(): void {
    this.#onClose();
    this.#writer?.destroy();
  }
}
