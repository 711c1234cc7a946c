/** What a span may be described by. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean>
>;

/** One timed operation, as far as it is used here. */
export interface Span {
  /** Trace and identifiers of the span. */
  spanContext(): {
    /** Trace, as 32 hexadecimal digits. */
    readonly traceId: string;
    /** Span in the trace, as 16 hexadecimal digits. */
    readonly spanId: string;
    /** Flags; bit 0 is set if the trace is sampled. */
    readonly traceFlags: number;
  };
  /** Describes it further. */
  setAttribute(name: string, value: string | number | boolean): unknown;
  /** Says how it ended: 0 for nothing to say, 1 for well, 2 for an error. */
  setStatus(
    status: { readonly code: 0 | 1 | 2; readonly message?: string },
  ): unknown;
  /** Tells of an error. */
  recordException(error: Error | string): void;
  /** Ends it. */
  end(): void;
}

/**
 * Begins spans. Every `Tracer` of `@opentelemetry/api` is one: this library does
 * not import it, and traces only what it is given a tracer for.
 *
 * Spans nest by the context manager of the application: with one, a span that a
 * reconciler begins itself is a child of its run.
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
   * Begins a span, makes it the active one and calls a function with it. The
   * function ends it.
   *
   * @param name What is done, of few different names.
   * @param options What is known of it at its begin; `kind` is 0 for work within
   * the process and 2 for a request.
   * @param work What is done within the span.
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

/** How a piece of work is traced. */
export interface SpanOptions<R> {
  /**
   * 0 for work within the process, 2 for a request.
   *
   * @default {0}
   */
  readonly kind?: 0 | 2 | undefined;
  /** What is known at its begin. */
  readonly attributes?: SpanAttributes | undefined;
  /** Called with the result before the span ends. */
  readonly onResult?: ((span: Span, result: R) => void) | undefined;
}

/**
 * Does a piece of work within a span, which ends with it. What is thrown is
 * recorded and thrown on; what the tracer throws is left out.
 *
 * @param tracer Begins the span; without one the work is just done.
 * @param name The name of the span.
 * @param options What the span says, and the work.
 */
export function inSpan<R>(
  tracer: Tracer | undefined,
  name: string,
  options: SpanOptions<R> & { readonly work: (span?: Span) => R | Promise<R> },
): R | Promise<R> {
  const { work, kind = 0, attributes = {}, onResult } = options;
  if (tracer === undefined) return work();
  /** Gives what the work gave; undefined before it was called. */
  let outcome: (() => R | Promise<R>) | undefined;
  const within = (span: Span): void => {
    const succeed = (result: R): R => {
      unfailing(() => onResult?.(span, result));
      unfailing(() => span.end());
      return result;
    };
    const fail = (error: unknown): never => {
      unfailing(() => spanFailed(span, error));
      unfailing(() => span.end());
      throw error;
    };
    try {
      const result = work(span);
      const told = isPromise(result)
        ? result.then(succeed, fail)
        : succeed(result);
      outcome = () => told;
    } catch (error) {
      outcome = () => fail(error);
    }
  };
  unfailing(() => tracer.startActiveSpan(name, { kind, attributes }, within));
  // A tracer that gives no span costs the span and not the work.
  return outcome === undefined ? work() : outcome();
}

/**
 * Whether a value must be awaited. Any thenable counts: users may return
 * promises of other libraries.
 *
 * @param value A value, or a promise of it.
 */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/** Tells a tracer something. What it throws must not undo what was done. */
function unfailing(tell: () => void): void {
  try {
    tell();
  } catch {
    // Who traces is told by the lack of the span.
  }
}

/** Tells in a span that what it times has failed. */
export function spanFailed(span: Span, error: unknown): void {
  const exception = error instanceof Error ? error : String(error);
  span.recordException(exception);
  const message = error instanceof Error ? error.message : String(error);
  span.setStatus({ code: 2, message });
}

/** The fields by which log lines of a span are found again. */
export function spanFields(span: Span | undefined): Record<string, string> {
  const identity = identityOf(span);
  if (identity === undefined) return {};
  return { trace_id: identity.traceId, span_id: identity.spanId };
}

/** The headers (W3C Trace Context) of requests within a span. */
export function spanHeaders(span: Span | undefined): Record<string, string> {
  const identity = identityOf(span);
  if (identity === undefined) return {};
  const { traceId, spanId, traceFlags } = identity;
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  return { traceparent: `00-${traceId}-${spanId}-${flags}` };
}

/** Tracers that are switched off give spans whose identity is all zeros. */
function identityOf(
  span: Span | undefined,
): ReturnType<Span["spanContext"]> | undefined {
  let identity: ReturnType<Span["spanContext"]> | undefined;
  unfailing(() => identity = span?.spanContext());
  return identity === undefined || /^0*$/.test(identity.traceId)
    ? undefined
    : identity;
}
