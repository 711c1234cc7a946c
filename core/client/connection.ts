import { systemClock } from "../clock.ts";
import type { ClientOptions } from "./client_options.ts";
import { rateLimit } from "./rate_limit.ts";
import type { ApiRequest } from "./request.ts";
import { readJson, responseError } from "./response.ts";
import { retry } from "./retry.ts";
import { compose, type Middleware, type Send } from "./send.ts";
import type { HttpRequest, HttpResponse, Transport } from "./transport.ts";

/** The longest answer that is decoded unless told otherwise. */
const MAX_ANSWER_BYTES = 256 << 20;

/** A transport with everything around it that makes requests succeed. */
export class Connection {
  readonly #transport: Transport;
  readonly #send: Send;
  readonly #maxAnswerBytes: number;

  constructor(transport: Transport, options: ClientOptions = {}) {
    const {
      clock = systemClock,
      maxAnswerBytes = MAX_ANSWER_BYTES,
      random = Math.random,
    } = options;
    this.#transport = transport;
    this.#maxAnswerBytes = maxAnswerBytes;
    const middleware: Middleware[] = [];
    if (options.retry !== false) {
      middleware.push(retry({ ...options.retry, clock, random }));
    }
    if (options.rateLimit !== undefined) {
      middleware.push(rateLimit({ ...options.rateLimit, clock }));
    }
    this.#send = compose((request) => transport.send(request), middleware);
  }

  /**
   * Sends a request and resolves with its answer, the body unread.
   *
   * @throws {ApiError} If the server says no (any status from 300).
   */
  async request(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    const named: ApiRequest = "verb" in request ? request : {
      ...request,
      verb: "connect",
      action: `${request.method} ${request.path.split("?", 1)[0]}`,
    };
    const response = await this.#send(named);
    if (response.status < 300) return response;
    throw await responseError(named, response);
  }

  /**
   * Sends a request and decodes its answer.
   *
   * @throws {ApiError} If the server says no.
   * @throws {SyntaxError} If the answer is not JSON.
   */
  async json(request: ApiRequest): Promise<unknown> {
    const response = await this.request(request);
    return readJson(request, response, this.#maxAnswerBytes);
  }

  /** Closes every connection. */
  close(): Promise<void> {
    return this.#transport.close();
  }
}
