import type { ApiRequest } from "./request.ts";
import type { HttpResponse } from "./transport.ts";

/** Sends a request and resolves with the head of its answer. */
export type Send = (request: ApiRequest) => Promise<HttpResponse>;

/** Something that every request passes on its way to the transport. */
export type Middleware = (next: Send) => Send;

/**
 * Puts middleware around a transport's `send`; the first sees a request first
 * and its answer last.
 */
export function compose(send: Send, middleware: readonly Middleware[]): Send {
  return middleware.reduceRight((next, wrap) => wrap(next), send);
}

/** A request with further or other headers. */
export function withHeaders(
  request: ApiRequest,
  headers: Readonly<Record<string, string>>,
): ApiRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}
