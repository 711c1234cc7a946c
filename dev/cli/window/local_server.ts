import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { closeServer, listenOn, nodeHttp } from "@coracle/operator/internal";

const HOST = "127.0.0.1";
/** Header with the token of a request. */
export const TOKEN_HEADER = "x-coracle-token";
const MAX_BODY_BYTES = 65_536;

/** Request to a {@linkcode LocalServer}. */
export interface LocalRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Decoded JSON of a POST; undefined for other methods. */
  readonly body: unknown;
}

/** Answer of a {@linkcode LocalServer}. */
export interface LocalAnswer {
  readonly status?: number | undefined;
  readonly type: string;
  readonly body: string;
}

/** HTTP server for programs and browsers of the same machine. */
export interface LocalServer {
  readonly port: number;
  /** Token that requests must send. */
  readonly token: string;
  /** Closes the server with all its connections. */
  close(): Promise<void>;
}

/** Options of {@linkcode serveLocally}. */
export interface LocalOptions {
  /** Port; 0 for any free port. */
  readonly port: number;
  /** Files by path, which need no token. */
  readonly files?: Readonly<Record<string, LocalAnswer>> | undefined;
  /**
   * Whether the server keeps the process alive.
   *
   * @default {true}
   */
  readonly keepAlive?: boolean | undefined;
  /** Function that answers a request that has the token. */
  readonly answer: (request: LocalRequest) => Promise<LocalAnswer>;
}

/**
 * Headers of every response. The page loads only resources of the server, other
 * pages cannot embed it, and inline scripts do not run.
 */
const HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Answer as JSON. */
export function jsonAnswer(value: unknown): LocalAnswer {
  return { type: "application/json", body: JSON.stringify(value) };
}

/** Answer that refuses a request. */
export function refusal(status: number, text: string): LocalAnswer {
  return { status, type: "text/plain; charset=utf-8", body: `${text}\n` };
}

/**
 * Serves requests on the loopback address. Checks the host name, against
 * foreign names that resolve to the address (DNS rebinding), and a random
 * token, which no other user or page knows.
 *
 * @throws {Error} If the port is in use.
 */
export async function serveLocally(
  { port, files = {}, keepAlive = true, answer }: LocalOptions,
): Promise<LocalServer> {
  const token = randomBytes(16).toString("hex");
  const handle = async (request: IncomingMessage): Promise<LocalAnswer> => {
    const { method = "GET", url = "/", headers } = request;
    const names = [`${HOST}:${own}`, `localhost:${own}`];
    if (!names.includes(headers.host ?? "")) {
      return refusal(421, "Cannot answer: the host must be 127.0.0.1");
    }
    if (method !== "GET" && method !== "POST") {
      return refusal(405, "Cannot answer: the method must be GET or POST");
    }
    const target = URL.parse(url, `http://${HOST}`);
    if (target === null) return refusal(400, "Cannot answer: not a path");
    const file = files[target.pathname];
    if (file !== undefined) return file;
    if (!isEqual(headers[TOKEN_HEADER], token)) {
      return refusal(
        403,
        "Cannot answer: the token is wrong, so open the address that the program has printed",
      );
    }
    let body: unknown;
    try {
      if (method === "POST") body = await readBody(request);
    } catch (error) {
      return refusal(400, (error as Error).message);
    }
    return await answer({
      method,
      path: target.pathname,
      query: target.searchParams,
      body,
    });
  };
  const server = nodeHttp().createServer((request, response) => {
    handle(request)
      .catch((error: unknown) => refusal(500, (error as Error).message))
      .then(({ status = 200, type, body }) => {
        response.writeHead(status, { ...HEADERS, "content-type": type });
        response.end(body);
      });
  });
  server.headersTimeout = server.requestTimeout = 10_000;
  const address = { port, host: HOST };
  const own = await listenOn(server, address, `serve the page on port ${port}`);
  if (!keepAlive) server.unref();
  return { port: own, token, close: () => closeServer(server) };
}

function isEqual(given: string | string[] | undefined, token: string): boolean {
  const [one, other] = [given, token].map((text) => Buffer.from(String(text)));
  return one?.length === other?.length &&
    timingSafeEqual(one as Buffer, other as Buffer);
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MAX_BODY_BYTES) {
      throw new RangeError(
        `Cannot read the request: it must have at most ${MAX_BODY_BYTES} bytes`,
      );
    }
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("Cannot read the request: it must be JSON");
  }
}
