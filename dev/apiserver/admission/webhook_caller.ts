import type { Clock } from "@coracle/operator/client";
import {
  errorMessage,
  type HttpTransport,
  type KeyPair,
  openHttpTransport,
} from "@coracle/operator/internal";
import type { WebhookClientConfig } from "@coracle/operator/kinds";
import { readJson, writeJson } from "../exact_json.ts";

/**
 * Services that webhooks name, by `namespace/name:port`, or `namespace/name` for
 * port 443, and the origins of their URLs: base URL, or handler of reviews in the
 * current process.
 */
export type WebhookServices = Readonly<
  Record<
    string,
    // deno-lint-ignore no-explicit-any -- handlers declare the review they take
    string | ((review: any, call: WebhookCallInfo) => unknown)
  >
>;

/** Call of a webhook that a handler in the process answers. */
interface WebhookCallInfo {
  /** Path of the webhook, without a query. */
  readonly path: string;
  /** Time limit, in milliseconds. */
  readonly timeout: number;
  /** Signal that aborts when nobody waits for the answer. */
  readonly signal: AbortSignal;
}

/** Settings of a {@linkcode WebhookCaller}. */
export interface WebhookCallerOptions {
  readonly clock: Clock;
  readonly services: WebhookServices;
  /**
   * Function that returns the external name of a Service object: empty if it is of
   * another type, undefined if there is no such object.
   */
  readonly externalName: (
    namespace: string,
    name: string,
  ) => string | undefined;
  /** Certificate that admission webhooks are called with. */
  readonly certificate?: KeyPair | undefined;
}

/** Maximum size of an answer in bytes. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** Maximum number of servers to which connections are kept. */
const MAX_TRANSPORTS = 64;

/** Maximum length in characters of an answer that an error quotes. */
const MAX_QUOTED = 2_048;

/** Messages of client-go for HTTP statuses. */
const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  409: "the server reported a conflict",
  422: "the server rejected our request due to an error in our request",
  429:
    "the server has received too many requests and has asked us to try again later",
  503: "the server is currently unable to handle the request",
  504:
    "the server was unable to return a response in the time allotted, but may still be processing the request",
};

/** Failed call of a webhook, with the message of kube-apiserver. */
export class WebhookFailure extends Error {
  override readonly name = "WebhookFailure";
}

/** Client of webhooks: sends reviews and reads the answers. */
export class WebhookCaller {
  /** Client certificate of admission webhooks; undefined without one. */
  readonly certificate: KeyPair | undefined;
  readonly #options: WebhookCallerOptions;
  readonly #transports: Map<string, Promise<HttpTransport>> = new Map();
  /** Functions that end the calls under way. */
  readonly #calls: Set<() => void> = new Set();

  constructor(options: WebhookCallerOptions) {
    this.#options = options;
    this.certificate = options.certificate;
  }

  /**
   * Sends a review; returns the parsed answer.
   *
   * @param timeout Time limit in milliseconds.
   * @param certificate Client certificate; conversion webhooks are called without.
   * @throws {Error} If there is no answer, with client-go's message.
   */
  async call(
    config: WebhookClientConfig,
    review: unknown,
    timeout: number,
    certificate?: KeyPair,
  ): Promise<unknown> {
    const { namespace = "", name = "", path = "", port = 443 } =
      config.service ?? {};
    const base = config.service === undefined
      ? cleanUrl(config.url ?? "")
      : cleanUrl(`https://${name}.${namespace}.svc:${port}/${path}`);
    const url = `${base}?timeout=${Math.ceil(timeout / 1000)}s`;
    const { services, externalName } = this.#options;
    let service = config.service === undefined
      ? services[URL.parse(base)?.origin ?? ""]
      : services[`${namespace}/${name}:${port}`] ??
        (port === 443 ? services[`${namespace}/${name}`] : undefined);
    const failure = (why: string) =>
      new WebhookFailure(`Post ${JSON.stringify(url)}: ${why}`);
    if (config.service !== undefined && service === undefined) {
      const external = externalName(namespace, name);
      const quoted = JSON.stringify(name);
      if (external === undefined) throw failure(`service ${quoted} not found`);
      if (external === "") {
        throw failure(`no endpoints available for service ${quoted}`);
      }
      service = `https://${external}:${port}`;
    }
    const abort = new AbortController();
    const answer = typeof service === "function"
      ? handled(service, review, {
        path: new URL(base).pathname,
        timeout,
        signal: abort.signal,
      })
      : this.#post(service === undefined ? url : moved(url, service), {
        review,
        caBundle: config.caBundle,
        serverName: config.service && `${name}.${namespace}.svc`,
        certificate,
        signal: abort.signal,
        failure,
      });
    return await this.#within(timeout, answer, () => {
      abort.abort();
      return failure("context deadline exceeded");
    });
  }

  /** Result of a promise; rejects with an error after a time limit. */
  async #within<T>(
    timeout: number,
    result: Promise<T>,
    late: () => WebhookFailure,
  ): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const end = () => reject(late());
    const timer = this.#options.clock.setTimer(end, timeout);
    this.#calls.add(end);
    try {
      return await Promise.race([result, promise]);
    } finally {
      timer.cancel();
      this.#calls.delete(end);
      result.catch(() => {}); // the call that lost
    }
  }

  async #post(
    url: string,
    { review, caBundle, serverName, certificate, signal, failure }: {
      readonly review: unknown;
      readonly caBundle: string | undefined;
      /** Name that the certificate of the webhook must have, if not its host. */
      readonly serverName: string | undefined;
      readonly certificate: KeyPair | undefined;
      readonly signal: AbortSignal;
      readonly failure: (why: string) => WebhookFailure;
    },
  ): Promise<unknown> {
    const { origin, pathname, search, host } = new URL(url);
    let status: number;
    let text: string;
    let type: string;
    try {
      const transport = await this.#transport(origin, {
        caBundle,
        serverName,
        certificate,
      });
      const response = await transport.send({
        method: "POST",
        path: pathname + search,
        headers: {
          accept: "application/json, */*",
          "content-type": "application/json",
        },
        body: writeJson(review),
        signal,
      });
      ({ status } = response);
      type = response.headers["content-type"] ?? "";
      text = await bounded(response.body);
    } catch (error) {
      throw failure(connectionText(error as Error, host));
    }
    if (status < 200 || status > 206) throw refusal(status, text, type);
    return parsed(text);
  }

  #transport(
    server: string,
    { caBundle, serverName, certificate }: {
      readonly caBundle: string | undefined;
      readonly serverName: string | undefined;
      readonly certificate: KeyPair | undefined;
    },
  ): Promise<HttpTransport> {
    const key = [
      server,
      serverName,
      caBundle,
      certificate && "with a certificate",
    ].join("\0");
    const known = this.#transports.get(key);
    if (known !== undefined) return known;
    if (this.#transports.size >= MAX_TRANSPORTS) this.#closeConnections();
    const opened = openHttpTransport({
      server,
      serverName,
      certificateAuthority: caBundle ? atob(caBundle) : undefined,
      certificate: certificate?.certificate,
      key: certificate?.key,
    });
    opened.catch(() => this.#transports.delete(key));
    this.#transports.set(key, opened);
    return opened;
  }

  /** Ends all calls, and closes all connections. */
  close(): void {
    for (const end of this.#calls) end();
    this.#closeConnections();
  }

  #closeConnections(): void {
    for (const opened of this.#transports.values()) {
      opened.then((transport) => transport.close(), () => {});
    }
    this.#transports.clear();
  }
}

/** URL without empty segments of its path, as client-go cleans it. */
function cleanUrl(url: string): string {
  const [, server = "", path = ""] = /^(https?:\/\/[^/]*)(.*)$/.exec(url) ?? [];
  return server === ""
    ? url
    : `${server}/${path.split("/").filter(Boolean).join("/")}`;
}

/** Answer of a handler in the current process, in the form of an HTTP response. */
async function handled(
  handler: (review: unknown, call: WebhookCallInfo) => unknown,
  review: unknown,
  call: WebhookCallInfo,
): Promise<unknown> {
  let answer;
  try {
    // In JavaScript, where numbers are doubles.
    answer = writeJson(await handler(JSON.parse(writeJson(review)), call));
  } catch (error) {
    const text = errorMessage(error);
    throw refusal(500, text, "text/plain");
  }
  return parsed(answer);
}

/** URL with the scheme and host of another server. */
function moved(url: string, base: string): string {
  const { pathname, search } = new URL(url);
  return base.replace(/\/$/, "") + pathname + search;
}

async function bounded(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) {
      throw new WebhookFailure(
        `the answer has more than ${MAX_ANSWER_BYTES} bytes`,
      );
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    const { message } = error as Error;
    throw new WebhookFailure(
      `couldn't get version/kind; json parse error: ${message}`,
    );
  }
}

/** Error of a response whose status is no success. */
function refusal(status: number, text: string, type: string): WebhookFailure {
  if (type.startsWith("application/json")) {
    try {
      const { kind, message } = JSON.parse(text);
      if (kind === "Status" && message) {
        return new WebhookFailure(String(message));
      }
    } catch {
      // No Status: the text is quoted.
    }
  }
  const shown = type === "" || type.startsWith("text/")
    ? text.slice(0, MAX_QUOTED).trim()
    : "unknown";
  if (status === 403 || status === 415) return new WebhookFailure(shown);
  return new WebhookFailure(
    STATUS_TEXTS[status] ??
      (status >= 500
        ? `an error on the server (${
          JSON.stringify(shown)
        }) has prevented the request from succeeding`
        : `the server responded with the status code ${status} but did not return more information`),
  );
}

/** Message of a connection error; common ones in Go's wording. */
function connectionText({ message }: Error, host: string): string {
  const why = /the connection failed: received (.*)$/s.exec(message)?.[1] ??
    message;
  if (/ECONNREFUSED|refused/i.test(why)) {
    return `dial tcp ${host}: connect: connection refused`;
  }
  if (!/certificate|self.signed|UnknownIssuer/i.test(why)) return why;
  const unknown = /verify|issuer|self.signed|unknown/i.test(why) &&
    !/altnames|hostname|NotValidForName/i.test(why);
  return `tls: failed to verify certificate: x509: ${
    unknown ? "certificate signed by unknown authority" : why
  }`;
}
