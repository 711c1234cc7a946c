import { attempt, isPromise } from "./callback.ts";
import { errorMessage } from "./error_text.ts";

/** Attributes of a span. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean>
>;

/** A span: one timed operation, with the members that this library uses. */
export interface Span {
  /** Returns the identity of the span. */
  spanContext(): {
    /** ID of the trace, as 32 hexadecimal digits. */
    readonly traceId: string;
    /** ID of the span in the trace, as 16 hexadecimal digits. */
    readonly spanId: string;
    /** Trace flags; bit 0 is set if the trace is sampled. */
    readonly traceFlags: number;
  };
  /** Sets an attribute, which replaces an earlier one of its name. */
  setAttribute(name: string, value: string | number | boolean): unknown;
  /** Sets the status: 0 for unset, 1 for success, 2 for an error. */
  setStatus(
    status: { readonly code: 0 | 1 | 2; readonly message?: string },
  ): unknown;
  /** Records an error. */
  recordException(error: Error | string): void;
  /** Ends the span, whose duration this call concludes. */
  end(): void;
}

/**
 * A tracer, which starts spans. Every `Tracer` of `@opentelemetry/api` implements
 * it; this library does not import that package, and only traces when it is given
 * a tracer.
 *
 * Spans are nested by the context manager of the application: with one, a span
 * that a reconciler starts itself is a child of the span of its run.
 *
 * @example Trace runs, their phases and requests
 * ```ts ignore
 * import { trace } from "@opentelemetry/api";
 * import { Operator } from "@coracle/operator";
 *
 * const operator = new Operator({ tracer: trace.getTracer("my-operator") });
 * ```
 */
export interface Tracer {
  /**
   * Starts a span, makes it the active one and calls a function with it. The
   * function ends the span.
   *
   * @param name The name of the span, one of a small number.
   * @param options The initial attributes; `kind` is 0 for work within the process
   * and 2 for a request.
   * @param work The function to call.
   */
  startActiveSpan<R>(
    name: string,
    options: {
      readonly kind?: 0 | 2;
      readonly attributes?: Readonly<Record<string, string | number | boolean>>;
    },
    work: (span: Span) => R,
  ): R;
}

/** Options of {@linkcode inSpan}. */
export interface SpanOptions<R> {
  /**
   * Kind of the span: 0 for work within the process, 2 for a request.
   *
   * @default {0}
   */
  readonly kind?: 0 | 2 | undefined;
  /** Initial attributes. */
  readonly attributes?: SpanAttributes | undefined;
  /** Callback for the result, before the span ends. */
  readonly onResult?: ((span: Span, result: R) => void) | undefined;
}

/**
 * Runs work within a span, which ends with the work. Errors of the work are
 * recorded and rethrown; errors of the tracer are ignored.
 *
 * @param tracer The tracer; without one the work runs without a span.
 * @param options The attributes of the span, and the work.
 */
export function inSpan<R>(
  tracer: Tracer | undefined,
  name: string,
  options: SpanOptions<R> & { readonly work: (span?: Span) => R | Promise<R> },
): R | Promise<R> {
  const { work, kind = 0, attributes = {}, onResult } = options;
  if (tracer === undefined) return work();
  // Returns the result of the work; undefined before the work was called.
  let outcome: (() => R | Promise<R>) | undefined;
  const within = (span: Span): void => {
    const succeed = (result: R): R => {
      attempt(() => onResult?.(span, result));
      attempt(() => span.end());
      return result;
    };
    const fail = (error: unknown): never => {
      attempt(() => spanFailed(span, error));
      attempt(() => span.end());
      throw error;
    };
    try {
      const result = work(span);
      const traced = isPromise(result)
        ? result.then(succeed, fail)
        : succeed(result);
      outcome = () => traced;
    } catch (error) {
      outcome = () => fail(error);
    }
  };
  attempt(() => tracer.startActiveSpan(name, { kind, attributes }, within));
  // If the tracer does not call the function, the work runs without a span.
  return outcome === undefined ? work() : outcome();
}

/** Records an error in a span and sets its status. */
export function spanFailed(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : String(error));
  const message = errorMessage(error);
  span.setStatus({ code: 2, message });
}

/** Log fields that identify a span. */
export function spanFields(span: Span | undefined): Record<string, string> {
  const identity = identityOf(span);
  if (identity === undefined) return {};
  return { trace_id: identity.traceId, span_id: identity.spanId };
}

/** Headers of a request within a span (W3C Trace Context). */
export function spanHeaders(span: Span | undefined): Record<string, string> {
  const identity = identityOf(span);
  if (identity === undefined) return {};
  const { traceId, spanId, traceFlags } = identity;
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  return { traceparent: `00-${traceId}-${spanId}-${flags}` };
}

/** Identity of a span; undefined for disabled tracers, whose IDs are zero. */
function identityOf(
  span: Span | undefined,
): ReturnType<Span["spanContext"]> | undefined {
  let identity: ReturnType<Span["spanContext"]> | undefined;
  attempt(() => identity = span?.spanContext());
  return identity === undefined || /^0*$/.test(identity.traceId)
    ? undefined
    : identity;
}
