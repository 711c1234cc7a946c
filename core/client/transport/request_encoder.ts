import type { Dispatcher } from "undici";
import { headerLines, type HttpRequest } from "./transport.ts";

/** Valid paths: printable ASCII without spaces. */
const PATH = /^[\x21-\x7e]+$/;

/** Headers that only the transport sets: server, framing and connection. */
const OWN_HEADERS =
  /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** Encoder of requests to one server in the form that undici takes. */
export class RequestEncoder {
  readonly #prefix: string;
  /** Frozen headers that were encoded last, and their lines. */
  #frozen: HttpRequest["headers"] | undefined;
  #lines: string[] = [];

  /**
   * Creates an encoder for a server.
   *
   * @param prefix Prefix of all paths.
   */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /**
   * Encodes a request.
   *
   * @throws {TypeError} If the path or a header is invalid.
   */
  encode(request: HttpRequest): Dispatcher.DispatchOptions {
    const path = this.#prefix + request.path;
    if (!PATH.test(path)) {
      throw new TypeError(
        `Cannot send a request: its path must be printable ASCII without spaces: received ${
          JSON.stringify(path)
        }`,
      );
    }
    const { method, body = null } = request;
    // Undici would close a connection after a DELETE with a body.
    return {
      method,
      path,
      headers: this.#linesOf(request),
      body,
      reset: false,
    };
  }

  /** Names and values of the headers, which mostly are those of the last request. */
  #linesOf(request: HttpRequest): string[] {
    const { headers, repeatedHeaders } = request;
    if (repeatedHeaders === undefined && headers === this.#frozen) {
      return this.#lines;
    }
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
      headers: { "accept-encoding": "gzip", ...headers },
    }).flat();
    if (repeatedHeaders === undefined && Object.isFrozen(headers)) {
      this.#frozen = headers;
      this.#lines = lines;
    }
    return lines;
  }
}
