import { AsyncLocalStorage } from "node:async_hooks";
import type { Span, Tracer } from "@coracle/operator/core";
import type { SpanAttributes } from "../../core/tracing.ts";

/** Recorded span. */
export interface RecordedSpan {
  readonly name: string;
  readonly kind: number;
  readonly id: string;
  readonly trace: string;
  /** Parent span. */
  readonly parent: RecordedSpan | undefined;
  readonly attributes: Record<string, unknown>;
  status: { readonly code: number; readonly message?: string } | undefined;
  readonly exceptions: string[];
  ended: boolean;
}

/** Records spans as a tracer of OpenTelemetry with a context manager would. */
export class RecordedTracer implements Tracer {
  /** All spans, in the order in which they began. */
  readonly spans: RecordedSpan[] = [];
  readonly #active: AsyncLocalStorage<RecordedSpan> = new AsyncLocalStorage();

  /** The spans of a name. */
  named(name: string): readonly RecordedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  startActiveSpan<R>(
    name: string,
    options: { readonly kind?: 0 | 2; readonly attributes?: SpanAttributes },
    work: (span: Span) => R,
  ): R {
    const parent = this.#active.getStore();
    const id = (this.spans.length + 1).toString(16).padStart(16, "0");
    const span: RecordedSpan = {
      name,
      kind: options.kind ?? 0,
      id,
      trace: parent?.trace ?? id.padStart(32, "a"),
      parent,
      attributes: { ...options.attributes },
      status: undefined,
      exceptions: [],
      ended: false,
    };
    this.spans.push(span);
    return this.#active.run(span, () => work(handleOf(span)));
  }
}

function handleOf(span: RecordedSpan): Span {
  return {
    spanContext: () => ({
      traceId: span.trace,
      spanId: span.id,
      traceFlags: 1,
    }),
    setAttribute(name, value) {
      span.attributes[name] = value;
    },
    setStatus(status) {
      span.status = status;
    },
    recordException: (error) => span.exceptions.push(String(error)),
    end() {
      if (span.ended) throw new Error(`The span ${span.name} ended twice`);
      span.ended = true;
    },
  };
}
