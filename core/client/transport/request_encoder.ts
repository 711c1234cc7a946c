import { Buffer } from "node:buffer";
import { headerLines, type HttpRequest } from "./transport.ts";

/** Valid paths: printable ASCII without spaces. */
const PATH = /^[\x21-\x7e]+$/;

/** Headers that only the transport sets: framing and connection. */
const OWN_HEADERS =
  /^(connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** Encoder of HTTP/1.1 requests to one server. */
export class RequestEncoder {
  readonly #host: string;
  readonly #prefix: string;
  /** Frozen headers that were encoded last, and their text. */
  #frozen: HttpRequest["headers"] | undefined;
  #lines = "";

  /**
   * Creates an encoder for a server.
   *
   * @param host Host and port of the server.
   * @param prefix Prefix of all paths.
   */
  constructor(host: string, prefix: string) {
    this.#host = host;
    this.#prefix = prefix;
  }

  /**
   * Encodes a request with its body.
   *
   * @param extra Further headers.
   * @throws {TypeError} If the path or a header is invalid.
   */
  encode(
    request: HttpRequest,
    extra?: Readonly<Record<string, string>>,
  ): Uint8Array {
    const { body, method } = request;
    const path = this.#prefix + request.path;
    if (!PATH.test(path)) {
      throw new TypeError(
        `Cannot send a request: its path must be printable ASCII without spaces: received ${
          JSON.stringify(path)
        }`,
      );
    }
    const length = body === undefined
      ? 0
      : typeof body === "string"
      ? Buffer.byteLength(body)
      : body.byteLength;
    const framing = body === undefined && method === "GET"
      ? ""
      : `content-length: ${length}\r\n`;
    const head = `${method} ${path} HTTP/1.1\r\n${
      this.#headerText(request, extra)
    }${framing}\r\n`;
    const bytes = Buffer.allocUnsafe(head.length + length);
    bytes.write(head, 0, "latin1");
    if (typeof body === "string") bytes.write(body, head.length);
    else if (body !== undefined) bytes.set(body, head.length);
    return bytes;
  }

  /** Text of the headers, which mostly are those of the last request. */
  #headerText(
    request: HttpRequest,
    extra: Readonly<Record<string, string>> | undefined,
  ): string {
    const { headers, repeatedHeaders } = request;
    const mayRepeat = repeatedHeaders === undefined && extra === undefined;
    if (mayRepeat && headers === this.#frozen) return this.#lines;
    const lines = this.#textOf(request, extra ?? {});
    if (mayRepeat && Object.isFrozen(headers)) {
      this.#frozen = headers;
      this.#lines = lines;
    }
    return lines;
  }

  #textOf(
    request: HttpRequest,
    extra: Readonly<Record<string, string>>,
  ): string {
    const { headers, repeatedHeaders } = request;
    const own = Object.keys({ ...headers, ...repeatedHeaders })
      .find((name) => OWN_HEADERS.test(name));
    if (own !== undefined) {
      throw new TypeError(
        `Cannot send a request: the transport sets this header: received ${
          JSON.stringify(own)
        }`,
      );
    }
    const lines = headerLines({
      ...request,
      headers: {
        host: this.#host,
        "accept-encoding": "gzip",
        ...headers,
        ...extra,
      },
    });
    return lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  }
}
