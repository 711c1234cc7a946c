import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyToRead, type ObjectKey } from "../api/object_key.ts";
import { typeText } from "../api/options.ts";
import {
  type WebhookCall,
  WebhookRefusal,
  type WebhookRoute,
} from "../client/webhook_host.ts";
import { type Clock, deadline } from "../clock.ts";
import { messageWithCause, shortText } from "../error_text.ts";
import { deepFreeze, mutableCopy } from "../json/prune.ts";
import type { Logger } from "../logger.ts";
import type { Counter, Histogram, Metrics } from "../metrics.ts";
import { diffJsonPatch } from "../patch/json_patch.ts";
import {
  checkIntegers,
  differences,
  isJsonObject,
} from "../patch/json_value.ts";
import type {
  Admission,
  AdmissionContext,
  AdmissionHandlers,
} from "./admission_options.ts";
import type { AdmissionDecision } from "./admission_result.ts";
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  admissionReview,
  readAdmissionReview,
} from "./admission_review.ts";

/** Reads objects for handlers, from caches or the server. */
export interface AdmissionReader {
  /** Reads one object; undefined if it does not exist. */
  read<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<T | undefined>;
  /** Reads the objects of a kind, of all namespaces without one. */
  readList<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly T[]>;
}

/** What admission webhooks of an operator share. */
export interface AdmissionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly reader: AdmissionReader;
  /** Whether `default` is called a second time, to check that it is idempotent. */
  readonly checksDefaults: boolean;
}

/** Handler of a webhook. */
export type HandlerName = keyof AdmissionHandlers;

/** Part of the time limit that the API server keeps for the way to and fro. */
const RESERVE = 0.2;

/** Maximum length of an error of a handler in an answer, in characters. */
const MAX_ERROR_TEXT = 500;

/** Fields of an object that only the API server changes; `status` has its own subresource. */
const FIXED_METADATA: readonly string[] = [
  "name",
  "generateName",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
  "selfLink",
];

/** Failure of a handler: for such a call the `failurePolicy` decides. */
class HandlerError extends Error {
  override readonly name = "HandlerError";
}

/** Metrics of admission webhooks. */
function admissionMetrics(metrics: Metrics): {
  readonly requests: Counter;
  readonly duration: Histogram;
} {
  return {
    requests: metrics.counter({
      name: "coracle_admission_requests_total",
      help: "Requests that admission handlers have decided about.",
      labels: ["kind", "handler", "operation", "outcome"],
    }),
    duration: metrics.histogram({
      name: "coracle_admission_duration_seconds",
      help: "Time until an admission handler has decided.",
      labels: ["kind", "handler"],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    }),
  };
}

/** Creates the route of a handler: it reads a review, and answers it. */
export function admissionRoute(
  admission: Admission,
  handler: HandlerName,
  deps: AdmissionDeps,
): WebhookRoute {
  const webhook = new AdmissionWebhook(admission, handler, deps);
  return (body, call) => webhook.answer(body, call);
}

class AdmissionWebhook {
  readonly #admission: Admission;
  readonly #handler: HandlerName;
  readonly #deps: AdmissionDeps;
  readonly #metrics: ReturnType<typeof admissionMetrics>;

  constructor(admission: Admission, handler: HandlerName, deps: AdmissionDeps) {
    this.#admission = admission;
    this.#handler = handler;
    this.#deps = deps;
    this.#metrics = admissionMetrics(deps.metrics);
  }

  async answer(body: Uint8Array, call: WebhookCall): Promise<object> {
    const request = readAdmissionReview(body);
    const { kind } = this.#admission;
    if (
      request.subresource === undefined &&
      (request.kind !== kind.kind || request.group !== kind.group)
    ) {
      throw new WebhookRefusal(
        400,
        `Cannot answer the admission review: this path is for ${kind.kind}`,
      );
    }
    const { clock, log } = this.#deps;
    const began = clock.now();
    const labels = { kind: kind.kind, handler: this.#handler };
    let outcome = "failed";
    try {
      const answer = await this.#decide(request, call);
      outcome = answer.status === undefined ? "allowed" : "denied";
      return admissionReview(request, answer);
    } catch (error) {
      log.error("An admission handler has failed", {
        ...fieldsOf(request),
        handler: this.#handler,
        error,
      });
      throw error;
    } finally {
      const { operation } = request;
      this.#metrics.requests.add(1, { ...labels, operation, outcome });
      this.#metrics.duration.observe((clock.now() - began) / 1_000, labels);
    }
  }

  async #decide(
    request: AdmissionRequest,
    { signal, timeout }: WebhookCall,
  ): Promise<AdmissionAnswer> {
    const limit = Math.min(
      timeout,
      this.#admission.options.timeout * (1 - RESERVE),
    );
    return await deadline(
      (signal) => {
        const ctx = this.#context(request, signal);
        return this.#handler === "validate"
          ? this.#validate(request, ctx)
          : this.#default(request, ctx);
      },
      limit,
      {
        clock: this.#deps.clock,
        signal,
        onTimeout: () =>
          this.#failure(request, `it was not done within ${limit} ms`),
      },
    );
  }

  async #validate(
    request: AdmissionRequest,
    ctx: AdmissionContext,
  ): Promise<AdmissionAnswer> {
    const { object = request.old } = request;
    const result = await this.#call(
      request,
      (handlers) => handlers.validate?.(deepFreeze(object) as never, ctx),
    );
    if (result === undefined) return {};
    if (isDecision(result)) {
      return { status: result.denied, warnings: result.warnings };
    }
    throw this.#failure(
      request,
      `it must return deny(), allow() or nothing: received ${typeText(result)}`,
    );
  }

  async #default(
    request: AdmissionRequest,
    ctx: AdmissionContext,
  ): Promise<AdmissionAnswer> {
    const { object } = request;
    const once = await this.#changed(request, object, ctx);
    for (const { path } of differences(object, once)) {
      const [field = "", name = ""] = path;
      const isFixed = field === "apiVersion" || field === "kind" ||
        field === "status" && request.subresource !== "status" ||
        field === "metadata" && FIXED_METADATA.includes(String(name));
      if (!isFixed) continue;
      throw this.#failure(request, `it must not change ${path.join(".")}`);
    }
    if (this.#deps.checksDefaults) {
      const twice = await this.#changed(request, once, ctx);
      const [first] = differences(once, twice);
      if (first !== undefined) {
        throw this.#failure(
          request,
          `it is called again when others change the object, and must not change what it has filled in: a second call changes ${
            first.path.join(".")
          }`,
        );
      }
    }
    const patch = diffJsonPatch(object, once);
    for (const operation of patch) {
      if ("value" in operation) {
        checkIntegers(`patch ${operation.path}`, operation.value);
      }
    }
    return { patch };
  }

  /** Object as `default` returns it, as JSON. */
  async #changed(
    request: AdmissionRequest,
    object: unknown,
    ctx: AdmissionContext,
  ): Promise<unknown> {
    const result = await this.#call(
      request,
      (handlers) => handlers.default?.(mutableCopy(object) as never, ctx),
    );
    const text = isJsonObject(result) ? JSON.stringify(result) : undefined;
    if (text !== undefined) return JSON.parse(text);
    throw this.#failure(
      request,
      `it must return the changed object: received ${typeText(result)}`,
    );
  }

  /** Calls the handler; what it throws becomes a failure that names it. */
  async #call(
    request: AdmissionRequest,
    call: (handlers: AdmissionHandlers) => unknown,
  ): Promise<unknown> {
    try {
      return await call(this.#admission.handlers);
    } catch (error) {
      const text = shortText(messageWithCause(error), MAX_ERROR_TEXT);
      throw this.#failure(request, `it has thrown an error: ${text}`, error);
    }
  }

  #failure(request: AdmissionRequest, why: string, cause?: unknown): Error {
    const { namespace, name = "a new object" } = request;
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    const { kind } = this.#admission.kind;
    return new HandlerError(
      `Cannot call ${this.#handler}() for ${kind} ${object}: ${why}`,
      { cause },
    );
  }

  #context(request: AdmissionRequest, signal: AbortSignal): AdmissionContext {
    const { operation, user, dryRun, namespace, name, subresource } = request;
    const { log, reader } = this.#deps;
    const own = { namespace, ...(name !== undefined && { name }) };
    return {
      operation,
      old: deepFreeze(request.old) as KubernetesObject | undefined,
      user,
      dryRun,
      namespace,
      name,
      subresource,
      signal,
      log: log.with(fieldsOf(request)),
      get: (kind, ...names) =>
        reader.read(kind, keyToRead(kind, names, own), signal),
      list: (kind, from = namespace) =>
        reader.readList(kind, from === "*" ? undefined : from, signal),
    };
  }
}

function fieldsOf(
  { kind, namespace, name, operation, uid }: AdmissionRequest,
): Readonly<Record<string, unknown>> {
  return { kind, namespace, name, operation, request: uid };
}

/** Whether a result is a decision, also of another copy of the library. */
function isDecision(result: unknown): result is AdmissionDecision {
  const { warnings } = Object(result) as Partial<AdmissionDecision>;
  return Array.isArray(warnings) && "denied" in Object(result);
}
