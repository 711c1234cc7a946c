import { Buffer } from "node:buffer";
import * as http from "node:http";
import * as https from "node:https";
import * as nodeModule from "node:module";
import { isIPv6 } from "node:net";
import { Readable, Writable } from "node:stream";

type Callback = (response: Readable) => void;
interface RequestOptions {
  readonly protocol?: string | null;
  readonly host?: string | null;
  readonly hostname?: string | null;
  readonly port?: number | string | null;
  readonly path?: string | null;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly auth?: string | null;
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}
type Arguments = readonly (string | URL | RequestOptions | Callback)[];

/** Pattern of connection headers, which are not passed to `fetch`. */
const OF_CONNECTION = /^(host|connection|content-length|transfer-encoding)$/i;

/** Request of `node:http` that the global `fetch` sends. */
class FetchedRequest extends Writable {
  readonly method: string;
  readonly path: string;
  readonly #url: URL;
  readonly #headers: Map<string, readonly [string, unknown]> = new Map();
  readonly #chunks: Buffer[] = [];
  readonly #abort: AbortController = new AbortController();
  #limit: ReturnType<typeof setTimeout> | undefined;

  constructor(url: URL, options: RequestOptions) {
    // Its end is that of the answer, not of what it sends.
    super({ autoDestroy: false });
    const { method = "GET", headers = {}, auth, timeout, signal } = options;
    this.#url = url;
    this.method = method.toUpperCase();
    this.path = url.pathname + url.search;
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.setHeader(name, value);
    }
    if (auth) this.setHeader("authorization", `Basic ${btoa(auth)}`);
    if (timeout !== undefined) this.setTimeout(timeout);
    const stop = () => this.destroy(signal?.reason);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  }

  setHeader(name: string, value: unknown): this {
    this.#headers.set(name.toLowerCase(), [name, value]);
    return this;
  }

  getHeader(name: string): unknown {
    return this.#headers.get(name.toLowerCase())?.[1];
  }

  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  getHeaders(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.#headers].map(([name, [, value]]) => [name, value]),
    );
  }

  flushHeaders(): void {}

  setNoDelay(): void {}

  setSocketKeepAlive(): void {}

  /** Emits `timeout` if there is no answer in time; 0 is no limit. */
  setTimeout(milliseconds: number, callback?: () => void): this {
    if (callback) this.once("timeout", callback);
    clearTimeout(this.#limit);
    this.#limit = milliseconds > 0
      ? setTimeout(() => this.emit("timeout"), milliseconds)
      : undefined;
    return this;
  }

  abort(): void {
    this.destroy();
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: () => void,
  ): void {
    this.#chunks.push(chunk);
    done();
  }

  override _final(done: () => void): void {
    done();
    this.#send().catch((error) => this.destroy(error));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void) {
    clearTimeout(this.#limit);
    this.#abort.abort();
    done(error);
  }

  async #send(): Promise<void> {
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) {
      if (OF_CONNECTION.test(name)) continue;
      for (const one of [value].flat()) headers.append(name, String(one));
    }
    const body = Buffer.concat(this.#chunks);
    const { method } = this;
    const response = await fetch(this.#url, {
      method,
      headers,
      signal: this.#abort.signal,
      ...(body.length > 0 && !/^(GET|HEAD)$/.test(method) && { body }),
    }).catch(() => {
      const { hostname, port, protocol } = this.#url;
      const at = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
      const code = "ECONNREFUSED";
      // deno-lint-ignore coracle/error-message -- as the runtimes word it
      throw Object.assign(new Error(`connect ${code} ${at}`), { code });
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const given = [...response.headers];
    const message = Object.assign(Readable.from(bytes.length ? [bytes] : []), {
      statusCode: response.status,
      statusMessage: response.statusText,
      headers: Object.fromEntries(given),
      rawHeaders: given.flat(),
      httpVersion: "1.1",
      complete: true,
    });
    if (this.destroyed) return;
    clearTimeout(this.#limit);
    message.once("close", () => this.destroy());
    const isHeard = this.emit("response", message);
    if (!isHeard) message.resume();
  }
}

function originOf(
  { hostname, host, port, protocol }: RequestOptions,
  standard: string,
): string {
  const name = hostname ?? host ?? "localhost";
  return `${protocol ?? standard}//${isIPv6(name) ? `[${name}]` : name}${
    port ? `:${port}` : ""
  }`;
}

/** URL with another path and query; a proxy is asked for a whole URL. */
function withPath({ origin }: URL, path: string): URL {
  if (/^https?:/i.test(path)) return new URL(path);
  return new URL(`${origin}${path.startsWith("/") ? "" : "/"}${path}`);
}

function requestBy(protocol: string) {
  return (...given: Arguments): FetchedRequest => {
    const callback = given.find((one) => typeof one === "function");
    const first = given.find((one) =>
      typeof one === "string" || one instanceof URL
    );
    const options =
      given.find((one): one is RequestOptions =>
        typeof one === "object" && !(one instanceof URL)
      ) ?? {};
    const url = first === undefined
      ? new URL(originOf(options, protocol))
      : new URL(first as string | URL);
    const { path } = options;
    const request = new FetchedRequest(
      path ? withPath(url, path) : url,
      options,
    );
    if (callback !== undefined) request.once("response", callback as Callback);
    return request;
  };
}

/**
 * Replaces `request` and `get` of `node:http` and `node:https` by functions that
 * call `fetch`, for all modules that are loaded.
 *
 * @returns A function that restores them.
 */
export function replaceHttp(): () => void {
  const restore: (() => void)[] = [];
  for (
    const [protocol, module] of [["http:", http], ["https:", https]] as const
  ) {
    const { default: owner } = module as unknown as {
      default: Record<"request" | "get", unknown>;
    };
    const { request, get } = owner;
    const fetched = requestBy(protocol);
    owner.request = fetched;
    owner.get = (...given: Arguments) => {
      const made = fetched(...given);
      made.end();
      return made;
    };
    restore.push(() => Object.assign(owner, { request, get }));
  }
  nodeModule.syncBuiltinESMExports();
  return () => {
    for (const undo of restore) undo();
    nodeModule.syncBuiltinESMExports();
  };
}
