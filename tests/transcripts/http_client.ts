import { Buffer } from "node:buffer";
import * as http from "node:http";
import * as https from "node:https";
import { gunzipSync } from "node:zlib";

/** Server and credentials. */
export interface Target {
  readonly url: string;
  readonly token: string;
  /** The authority's certificate in PEM; undefined for plain HTTP. */
  readonly authority?: string | undefined;
  /** Whether any certificate will do. */
  readonly insecure?: boolean | undefined;
}

/** A request of a transcript. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | null>>;
  readonly payload?: string | undefined;
  readonly auth?: "none" | "bad" | undefined;
}

/** The whole answer to a request. */
export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** How long a request may take, in milliseconds. */
const LIMIT = 20_000;

/** Talks HTTP as plainly as can be, so that nothing stands between. */
export class WireClient {
  readonly #target: Target;
  readonly #url: URL;
  readonly #agent: http.Agent;

  constructor(target: Target) {
    this.#target = target;
    this.#url = new URL(target.url);
    const options = { keepAlive: true, maxSockets: 64 };
    this.#agent = this.#url.protocol === "https:"
      ? new https.Agent({
        ...options,
        ca: target.authority,
        rejectUnauthorized: !target.insecure,
      })
      : new http.Agent(options);
  }

  close(): void {
    this.#agent.destroy();
  }

  #open(
    request: WireRequest,
    onResponse: (response: http.IncomingMessage) => void,
    onError: (error: Error) => void,
  ): http.ClientRequest {
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": "golden/1.0",
    };
    for (const [name, value] of Object.entries(request.headers)) {
      if (value === null) delete headers[name.toLowerCase()];
      else headers[name.toLowerCase()] = value;
    }
    if (request.payload !== undefined) {
      headers["content-type"] ??= "application/json";
      headers["content-length"] = String(Buffer.byteLength(request.payload));
    }
    if (request.auth === "bad") {
      headers["authorization"] = "Bearer nobody-has-this-token";
    } else if (request.auth !== "none") {
      headers["authorization"] = `Bearer ${this.#target.token}`;
    }
    const { request: start } = this.#url.protocol === "https:" ? https : http;
    const outgoing = start({
      protocol: this.#url.protocol,
      hostname: this.#url.hostname,
      port: this.#url.port,
      agent: this.#agent,
      method: request.method,
      path: request.path,
      headers,
    }, onResponse);
    outgoing.on("error", onError);
    return outgoing;
  }

  /** Sends a request and reads the whole answer. */
  send(request: WireRequest): Promise<WireResponse> {
    return new Promise((resolve, reject) => {
      const outgoing = this.#open(request, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          clearTimeout(timer);
          let bytes = Buffer.concat(chunks);
          if (response.headers["content-encoding"] === "gzip") {
            bytes = gunzipSync(bytes);
          }
          resolve({
            status: response.statusCode ?? 0,
            headers: textHeaders(response),
            body: decodeBody(bytes.toString()),
          });
        });
      }, reject);
      const timer = setTimeout(
        () => outgoing.destroy(new Error(`no answer within ${LIMIT} ms`)),
        LIMIT,
      );
      outgoing.end(request.payload);
    });
  }

  /** Opens a watch. */
  watch(request: WireRequest): WireWatch {
    return new WireWatch((onResponse, onError) =>
      this.#open(request, onResponse, onError)
    );
  }
}

function textHeaders(
  response: http.IncomingMessage,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : value ?? "",
    ]),
  );
}

function decodeBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Watch that records its events. */
export class WireWatch {
  readonly events: { readonly type?: string; readonly object?: unknown }[] = [];
  /** Status and headers, once they are there. */
  head:
    | { status: number; headers: Readonly<Record<string, string>> }
    | undefined;
  ended = false;
  text = "";
  #rest = "";
  readonly #waiters: Set<() => void> = new Set();
  readonly #request: http.ClientRequest;

  constructor(
    open: (
      onResponse: (response: http.IncomingMessage) => void,
      onError: (error: Error) => void,
    ) => http.ClientRequest,
  ) {
    const end = () => {
      this.ended = true;
      this.#wake();
    };
    this.#request = open((response) => {
      this.head = {
        status: response.statusCode ?? 0,
        headers: textHeaders(response),
      };
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => this.#take(chunk));
      response.on("end", end);
      response.on("error", end);
      this.#wake();
    }, end);
    this.#request.end();
  }

  get body(): unknown {
    return decodeBody(this.text);
  }

  #take(chunk: string): void {
    this.text += chunk;
    this.#rest += chunk;
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.head?.status === 200) {
      for (const line of lines) {
        if (line.trim() !== "") this.events.push(JSON.parse(line));
      }
    }
    this.#wake();
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  /** Waits until a condition holds, the watch ends, or the time is over. */
  wait(condition: () => boolean, limit: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (result: boolean) => {
        clearTimeout(timer);
        this.#waiters.delete(look);
        resolve(result);
      };
      const look = () => {
        if (condition()) finish(true);
        else if (this.ended) finish(false);
      };
      const timer = setTimeout(() => finish(false), limit);
      this.#waiters.add(look);
      look();
    });
  }

  close(): void {
    this.ended = true;
    this.#request.destroy();
  }
}
