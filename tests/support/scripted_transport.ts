import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "../../core/client/transport/transport.ts";

/** What a {@linkcode ScriptedTransport} answers to one request. */
export interface ScriptedAnswer {
  /**
   * The HTTP status code.
   *
   * @default {200}
   */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts are sent as they are, chunks one by one, anything else as JSON. */
  readonly body?: unknown;
}

/** Decides what is answered; what it throws is a connection that failed. */
export type Script = (
  request: HttpRequest,
  count: number,
) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** A transport without a network, which answers as a test says. */
export class ScriptedTransport implements Transport {
  /** What was sent, in order. */
  readonly requests: HttpRequest[] = [];
  /** Which WebSockets were asked for, in order. */
  readonly streamRequests: StreamRequest[] = [];
  /** How many bodies were cancelled or left before their end. */
  cancelled = 0;
  closed = 0;
  /** Opens the WebSockets; the test gives one that is asked for. */
  stream: ((request: StreamRequest) => StreamConnection) | undefined;
  /** What it answers from now on. */
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

function isChunks(body: unknown): body is AsyncIterable<string> {
  return typeof body === "object" && body !== null &&
    Symbol.asyncIterator in body;
}
