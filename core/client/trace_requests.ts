import { inSpan, spanHeaders, type Tracer } from "../tracing.ts";
import { type Middleware, withHeaders } from "./send.ts";
import type { HttpResponse } from "./transport.ts";

/**
 * Puts each request into a span of its own, from when it is asked for until its
 * answer begins, repetitions included, and tells the server of the span by a
 * `traceparent` header. Paths are told without their query.
 */
export function traceRequests(tracer: Tracer): Middleware {
  return (next) => async (request) =>
    await inSpan<HttpResponse>(tracer, `Kubernetes ${request.verb}`, {
      kind: 2,
      attributes: {
        "http.request.method": request.method,
        "url.path": request.path.split("?", 1)[0] as string,
        "coracle.verb": request.verb,
        "coracle.action": request.action,
      },
      onResult(span, { status }) {
        span.setAttribute("http.response.status_code", status);
        if (status >= 400) span.setStatus({ code: 2 });
      },
      work: (span) => next(withHeaders(request, spanHeaders(span))),
    });
}
