import type {
  HttpRequest,
  HttpResponse,
  Middleware,
  StreamConnection,
  StreamRequest,
  Transport,
} from "@coracle/operator/client";
import type { RequestHandler } from "../../core/client/middleware.ts";

/** Response of a {@linkcode ScriptedTransport}. */
export interface ScriptedAnswer {
  /**
   * HTTP status code.
   *
   * @default {200}
   */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body: text unchanged, an array of chunks one by one, anything else as JSON. */
  readonly body?: unknown;
}

/** Function that chooses the response; an error is a failed connection. */
export type Script = (
  request: HttpRequest,
  count: number,
) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** In-memory transport with the responses of a script. */
export class ScriptedTransport implements Transport {
  /** Sent requests, in order. */
  readonly requests: HttpRequest[] = [];
  /** Requested WebSockets, in order. */
  readonly streamRequests: StreamRequest[] = [];
  /** Number of bodies that were cancelled or left early. */
  cancelled = 0;
  closed = 0;
  /** Opens WebSockets; set by tests that need them. */
  stream: ((request: StreamRequest) => StreamConnection) | undefined;
  /** Script of the responses; may be replaced. */
  script: Script;

  constructor(script: Script) {
    this.script = script;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    this.requests.push(request);
    const answer = await this.script(request, this.requests.length);
    return {
      status: answer.status ?? 200,
      headers: answer.headers ?? {},
      body: this.#body(answer.body),
      cancel: () => {
        this.cancelled++;
        return Promise.resolve();
      },
    };
  }

  connect(request: StreamRequest): Promise<StreamConnection> {
    this.streamRequests.push(request);
    if (this.stream === undefined) throw new Error("No stream is expected");
    return Promise.resolve(this.stream(request));
  }

  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }

  async *#body(body: unknown): AsyncGenerator<Uint8Array, void, undefined> {
    const encoder = new TextEncoder();
    let ended = false;
    try {
      if (isChunks(body)) {
        for await (const chunk of body) yield encoder.encode(chunk);
      } else if (body !== undefined) {
        yield encoder.encode(
          typeof body === "string" ? body : JSON.stringify(body),
        );
      }
      ended = true;
    } finally {
      if (!ended) this.cancelled++;
    }
  }
}

/** Requests through one middleware to a {@linkcode ScriptedTransport}. */
export function through(
  middleware: Middleware,
  script: Script,
): { send: RequestHandler; transport: ScriptedTransport } {
  const transport = new ScriptedTransport(script);
  return {
    transport,
    send: middleware((request) => transport.send(request)),
  };
}

function isChunks(body: unknown): body is AsyncIterable<string> {
  return typeof body === "object" && body !== null &&
    Symbol.asyncIterator in body;
}
