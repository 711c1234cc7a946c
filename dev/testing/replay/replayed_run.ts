import type { Buffer } from "node:buffer";
import { ApiError, type HttpResponse } from "@coracle/operator/client";
import {
  type AbortCause,
  causeText,
  isSameShown,
  NO_BODY,
  NOT_KEPT,
  type RecordedError,
  type RecordedRead,
  type RecordedStep,
  Run,
  type RunResult,
  WholeBody,
} from "@coracle/operator/internal";
import {
  type ComparedRequest,
  type ComparedRun,
  differingFields,
  isSameRequest,
  isSameText,
  requestText,
} from "./compare_requests.ts";
import type { KeptRun } from "./read_recording.ts";
import type { RunDifference } from "./replay_report.ts";

/** Request that a repeated run waits for. */
interface Pending {
  readonly request: ComparedRequest;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

type RecordedEvent = NonNullable<RecordedStep["event"]>;

/** Differences of a run, without what is known of the run. */
type Found = Omit<
  RunDifference,
  "at" | "attempt" | "cause" | "controller" | "object"
>;

/** Outcome that is compared. */
type Outcome = Pick<KeptRun["end"], "delay" | "error" | "outcome">;

/** Decodes an object of the recording, frozen as those of a cache are. */
export type ObjectOf = (number: number | null) => unknown;

/**
 * Repetition of one run: it gets what the run read then, and its requests are
 * compared with those of then, one after the other.
 */
export class ReplayedRun {
  readonly kept: KeptRun;
  readonly run: Run<never>;
  /** Number of requests that were equal. */
  equal = 0;
  difference: Found | undefined;
  /** Reason for which the run cannot be repeated further. */
  unrepeatable: string | undefined;
  result: RunResult | undefined;
  readonly #item: { added: number };
  readonly #objectOf: ObjectOf;
  readonly #compared: ComparedRun;
  readonly #requests: readonly RecordedStep[];
  readonly #reads: Map<string, RecordedRead[1][]> = new Map();
  readonly #decisions: { readonly name: string; readonly value: unknown }[];
  readonly #pending: Pending[] = [];
  readonly #events: RecordedEvent[] = [];
  /** Requests that are answered by a later step, by the step of the request. */
  readonly #open: Map<number, Pending> = new Map();

  constructor(
    kept: KeptRun,
    { startedAt, objectOf, secrets }: {
      readonly startedAt: number;
      readonly objectOf: ObjectOf;
      /** Whether it has read something in place of a Secret's value. */
      readonly secrets: boolean;
    },
  ) {
    this.kept = kept;
    this.#objectOf = objectOf;
    this.#requests = kept.steps.filter(({ request }) => request !== undefined);
    this.#compared = {
      from: kept.at,
      to: kept.at + kept.end.t,
      secrets,
    };
    for (const [question, answer] of kept.reads) {
      const answers = this.#reads.get(question) ?? [];
      this.#reads.set(question, answers);
      answers.push(answer);
    }
    this.#decisions = kept.decisions.map(([name, value]) => ({ name, value }));
    this.#item = { added: 0 };
    this.run = new Run<never>({
      key: kept.key,
      place: -1,
      primary: (kept.primary === undefined
        ? { metadata: keyOf(kept.key) }
        : objectOf(kept.primary)) as never,
      isUnread: kept.primary === undefined,
      cause: kept.cause,
      retry: { attempt: kept.attempt, last: kept.last },
      deleted: kept.deleted === true,
      finalStateUnknown: kept.finalStateUnknown === true,
      startedAt,
      waited: kept.waited,
      item: this.#item,
      scheduler: { request() {} },
    });
  }

  /** Whether nothing more can be compared. */
  get isOver(): boolean {
    return this.difference !== undefined || this.unrepeatable !== undefined;
  }

  /** Whether the run waits for a request that nothing has been compared with. */
  get hasPending(): boolean {
    return this.#pending.length > 0;
  }

  /**
   * What the run read then.
   *
   * @throws {Error} If the read failed then, or was not made.
   */
  answer(question: string): unknown {
    const answers = this.#reads.get(question) ??
      this.#reads.get(
        [...this.#reads.keys()].find((one) => isSameShown(one, question)) ?? "",
      );
    if (answers === undefined) {
      // What a write looks up is no read of the operator: its request is named.
      if (question.startsWith("get ")) return undefined;
      this.#differ({
        what: "a read that was not made",
        repeated: question,
      });
      throw this.#stopped();
    }
    // One that is repeated more often sees what it saw last.
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === null || answer === undefined) return undefined;
    if (typeof answer === "number") return this.#objectOf(answer);
    if (Array.isArray(answer)) {
      return answer.map((one: number | null) => this.#objectOf(one));
    }
    if ("error" in answer) throw errorOf(answer.error);
    return (answer as { readonly value: unknown }).value;
  }

  /** Takes what was decided then; undefined if nothing was. */
  decision(name: string): unknown {
    const index = this.#decisions.findIndex((one) =>
      isSameShown(one.name, name)
    );
    return index < 0 ? undefined : this.#decisions.splice(index, 1)[0]!.value;
  }

  /** Sends a request of the repeated run. */
  send(
    request: ComparedRequest,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    if (this.isOver || this.result !== undefined) {
      return Promise.reject(this.#stopped());
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ request, signal, resolve, reject });
    });
  }

  /** Takes an Event of the repeated run. */
  event(event: RecordedEvent): void {
    this.#events.push(event);
  }

  /** Whether the run has done what a step says; true also if it cannot be told. */
  hasDone({ request, event }: RecordedStep): boolean {
    if (request !== undefined) {
      return this.#pending.length > 0 || this.result !== undefined;
    }
    return event === undefined || this.#events.length > 0;
  }

  /** Compares a step, or lets it happen. */
  take(step: RecordedStep): void {
    if (this.isOver) return;
    if (step.request !== undefined) this.#compareRequest(step);
    else if (step.to !== undefined) this.#answer(step, step.to);
    else if (step.event !== undefined) this.#compareEvent(step.event);
    else if (step.interrupted !== undefined) {
      this.#item.added++;
      this.run.interrupt(step.interrupted);
    } else if (step.aborted !== undefined) {
      this.run.abort(step.aborted as AbortCause);
      this.#dropAborted();
    }
  }

  /** Rejects what the abort has kept from being sent. */
  #dropAborted(): void {
    for (const one of [...this.#pending]) {
      if (!one.signal?.aborted) continue;
      this.#pending.splice(this.#pending.indexOf(one), 1);
      one.reject(one.signal.reason);
    }
  }

  /** Compares the end. */
  end(outcome: Outcome | undefined): void {
    if (this.isOver) return;
    const [extra] = this.#pending;
    if (extra !== undefined) {
      this.#differ({
        what: "a request that was not sent",
        repeated: requestText(extra.request),
      });
      return;
    }
    const { end } = this.kept;
    const [event] = this.#events;
    if (event !== undefined) {
      this.#differ({
        what: "an Event that was not recorded",
        repeated: eventText(event),
      });
    } else if (outcome === undefined) {
      this.#differ({ what: "the run does not end", recorded: endText(end) });
    } else if (
      outcome.outcome !== end.outcome ||
      end.outcome !== "aborted" && (outcome.delay !== end.delay ||
          !isSameText(outcome.error ?? "", end.error ?? "", this.#compared))
    ) {
      this.#differ({
        what: "the end differs",
        recorded: endText(end),
        repeated: endText(outcome),
      });
    }
  }

  /** Lets nothing of the run go on. */
  leave(): void {
    for (const { reject } of [...this.#pending, ...this.#open.values()]) {
      reject(this.#stopped());
    }
    this.#pending.length = 0;
    this.#open.clear();
    this.run.abort("shutdown");
  }

  /** Ends the comparison, as something is not in the recording. */
  cannot(why: string): Error {
    if (!this.isOver) this.unrepeatable = why;
    return this.#stopped();
  }

  /** The difference with what is known of the run. */
  report(): RunDifference | undefined {
    if (this.difference === undefined) return undefined;
    const { controller, key: object, at, cause, attempt } = this.kept;
    const { secrets } = this.#compared;
    return {
      controller,
      object,
      at: new Date(at).toISOString(),
      cause: causeText(cause),
      attempt,
      ...this.difference,
      ...secrets && {
        note:
          "the run has read Secrets, whose values are not in the recording: what follows from them may differ",
      },
    };
  }

  #compareRequest(step: RecordedStep): void {
    const recorded = this.#recordedOf(step);
    const number = this.#requests.indexOf(step) + 1;
    const place = `request ${number} of ${this.#requests.length}`;
    const same = this.#pending.filter(({ request }) =>
      isSameRequest(recorded, request)
    );
    const found = same.find(({ request }) =>
      differingFields(recorded, request, this.#compared) === undefined
    );
    if (found !== undefined) {
      this.equal++;
      this.#pending.splice(this.#pending.indexOf(found), 1);
      this.#open.set(step.n, found);
      return;
    }
    const [first = this.#pending[0]] = same;
    const text = requestText(recorded);
    if (first === undefined) {
      this.#differ({ what: `${place} is missing`, recorded: text });
      return;
    }
    const { request } = first;
    const repeated = requestText(request);
    if (same.length > 0) {
      this.#differ({
        what: `${place} has another body`,
        recorded: text,
        repeated,
        fields: differingFields(recorded, request, this.#compared),
      });
      return;
    }
    const later = this.#requests.findIndex((one, index) =>
      index >= number && isSameRequest(this.#recordedOf(one), request)
    );
    this.#differ({
      what: later >= 0
        ? `request ${
          later + 1
        } of ${this.#requests.length} is sent in place of request ${number}`
        : `another request is sent in place of ${place}`,
      recorded: text,
      repeated,
    });
  }

  #recordedOf(step: RecordedStep): ComparedRequest {
    const { method, path, type, body } = step.request!;
    return {
      ...{ method, path, type },
      body: body === NO_BODY
        ? undefined
        : body === NOT_KEPT
        ? null
        : this.kept.bodies.get(step)?.toString(),
    };
  }

  #answer(step: RecordedStep, to: number): void {
    const pending = this.#open.get(to);
    if (pending === undefined) return;
    this.#open.delete(to);
    const { answer, error, isAborted } = step;
    if (error !== undefined) {
      const { signal } = pending;
      pending.reject(
        isAborted && signal?.aborted ? signal.reason : errorOf(error),
      );
      return;
    }
    const body = this.kept.bodies.get(step);
    if (answer === undefined || body === undefined) {
      pending.reject(
        this.cannot(
          `the answer to ${pending.request.method} requests such as ${
            pathOf(pending.request)
          } is not in the recording`,
        ),
      );
      return;
    }
    pending.resolve(responseOf(answer.status, body, answer.headers));
  }

  #compareEvent(recorded: RecordedEvent): void {
    const [event] = this.#events.splice(0, 1);
    const isSame = event?.type === recorded.type &&
      isSameShown(event.reason, recorded.reason) &&
      isSameText(event.message, recorded.message, this.#compared);
    if (isSame) return;
    this.#differ({
      what: "an Event differs",
      recorded: eventText(recorded),
      repeated: event && eventText(event),
    });
  }

  #differ(found: Found): void {
    if (!this.isOver) this.difference = found;
  }

  #stopped(): Error {
    return new Error(
      `Cannot go on with the run of ${this.kept.key}: its repetition has ended`,
    );
  }
}

/** Response whose body has arrived. */
export function responseOf(
  status: number,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: new WholeBody(body),
    cancel: () => Promise.resolve(),
  };
}

function errorOf({ message, name, code, api }: RecordedError): Error {
  if (api !== undefined) return new ApiError(message, api);
  const error = name === "TypeError"
    ? new TypeError(message)
    : name === "RangeError"
    ? new RangeError(message)
    : new Error(message);
  if (name !== undefined) error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}

function keyOf(key: string): { name: string; namespace?: string } {
  const [name = "", namespace] = key.split("/").reverse();
  return namespace === undefined ? { name } : { name, namespace };
}

function pathOf({ path }: ComparedRequest): string {
  return path.split("?", 1)[0]!;
}

function eventText({ type, reason, message }: RecordedEvent): string {
  return `${type} ${reason}: ${message}`;
}

function endText({ outcome, delay, error }: Outcome): string {
  if (outcome === "aborted") return "aborted";
  const again = delay === undefined ? "" : `, again after ${delay} ms`;
  return outcome === "failed" ? `failed: ${error}${again}` : `done${again}`;
}
