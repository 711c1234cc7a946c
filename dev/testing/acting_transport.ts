import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "@coracle/operator/client";
import { accessOf, type RecordedRequest } from "./request_record.ts";

/**
 * Transport of an operator under test: acts as a user by impersonation, so that
 * the server enforces the rights of that user, and records its requests.
 */
export class ActingTransport implements Transport {
  readonly #inner: Transport;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #record:
    | ((request: RecordedRequest, status: number) => void)
    | undefined;
  readonly #refused: ((request: RecordedRequest) => void) | undefined;
  readonly #sending: ((request: HttpRequest) => void) | undefined;

  /**
   * Creates a transport that sends requests through another one, which stays
   * open.
   *
   * @param options.user User to act as; by default that of the other transport.
   * @param options.record Called with each request and the status of its answer,
   * 0 before that.
   * @param options.refused Called with each request that is answered with 403.
   * @param options.sending Called with each request; what it throws fails it.
   */
  constructor(
    inner: Transport,
    { user, record, refused, sending }: {
      readonly user?: string | undefined;
      readonly record?:
        | ((request: RecordedRequest, status: number) => void)
        | undefined;
      readonly refused?: ((request: RecordedRequest) => void) | undefined;
      readonly sending?: ((request: HttpRequest) => void) | undefined;
    },
  ) {
    this.#inner = inner;
    this.#headers = user === undefined ? {} : { "impersonate-user": user };
    this.#record = record;
    this.#refused = refused;
    this.#sending = sending;
  }

  get ended(): AbortSignal | undefined {
    return this.#inner.ended;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { method, path } = request;
    this.#sending?.(request);
    const response = await this.#inner.send(this.#acting(request, method));
    const { status } = response;
    if (status !== 201 && status !== 403) return response;
    const access = accessOf(method, path);
    if (access !== undefined && status === 403) this.#refused?.(access);
    else if (access !== undefined) this.#record?.(access, status);
    return response;
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    if (this.#inner.connect === undefined) {
      throw new Error("Cannot open a stream: the transport has none");
    }
    return await this.#inner.connect(this.#acting(request, "GET"));
  }

  #acting<R extends HttpRequest | StreamRequest>(
    request: R,
    method: HttpRequest["method"],
  ): R {
    const access = accessOf(method, request.path);
    if (access !== undefined) this.#record?.(access, 0);
    const headers = { ...request.headers, ...this.#headers };
    return { ...request, headers };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
