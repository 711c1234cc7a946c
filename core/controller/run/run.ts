import type { KubernetesObject } from "../../api/object.ts";
import { type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { Clock, Timer } from "../../clock.ts";
import type { Span } from "../../tracing.ts";
import { causeText, type RunCause } from "../cause.ts";
import type { ManagedWorkflowResult } from "../context.ts";
import type { RetryInfo } from "../context.ts";
import type { RunEnd, RunStep } from "./run_state.ts";

/** Why a run was asked to end early. */
export type AbortCause =
  | "timeout"
  | "deletion"
  | "leadership"
  | "shutdown"
  | "namespace"
  | "shard";

/** What {@linkcode Context.signal} fires with. */
export class RunAbortedError extends Error {
  /** Why the run was asked to end. */
  readonly abortCause: AbortCause;

  /**
   * Makes the reason of an aborted run.
   *
   * @param message What was aborted and why.
   * @param abortCause Why.
   */
  constructor(message: string, abortCause: AbortCause) {
    super(message);
    this.name = "RunAbortedError";
    this.abortCause = abortCause;
  }
}

/** What {@linkcode Context.interrupted} fires with. */
export class RunInterruptedError extends Error {
  /** What asks for the next run; which object it was, where one is known. */
  readonly runCause: RunCause;

  /**
   * Makes the reason of an interruption.
   *
   * @param key The object whose run it is.
   * @param runCause What asks for the next run.
   */
  constructor(key: string, runCause: RunCause) {
    super(
      `Cannot wait any longer in the run of ${key}: another one is asked for: received ${
        causeText(runCause)
      }`,
    );
    this.name = "RunInterruptedError";
    this.runCause = runCause;
  }
}

const ABORT_TEXTS: Readonly<Record<AbortCause, string>> = {
  timeout: "it took longer than its timeout",
  deletion: "its object is being deleted",
  leadership: "leadership was lost",
  shutdown: "the operator stops",
  namespace: "its namespace is not watched any more",
  shard: "another replica has its object now",
};

/** How many writes of a run are remembered. */
const MOST_WRITES = 20;

/** Part of the event processor that a run uses. */
export interface RunScheduler {
  /** Whether an event has arrived since the run of a slot began. */
  hasNewEvent(slot: number): boolean;
  /** Adds a run of an object. */
  request(key: string): void;
}

/** Facts that a run starts with. */
type RunStart<P extends KubernetesObject> =
  & Pick<
    Run<P>,
    | "cause"
    | "deleted"
    | "finalStateUnknown"
    | "isUnread"
    | "key"
    | "primary"
    | "retry"
    | "startedAt"
    | "waited"
  >
  & {
    /** Slot of the object in the queue. */
    readonly slot: number;
    readonly scheduler: RunScheduler;
  };

/** One run of one object, while it lasts. */
export class Run<P extends KubernetesObject> {
  /** Key of the object: `namespace/name`, or `name`. */
  readonly key: string;
  /** Primary from the cache, frozen; only its key until an unread one is read. */
  primary: P;
  /** Whether the primary must be read first, since its cache is bounded. */
  readonly isUnread: boolean;
  readonly cause: RunCause;
  readonly retry: RetryInfo;
  /** Whether the primary is deleted; only in all-events mode. */
  readonly deleted: boolean;
  /** Whether the last state before the deletion was missed. */
  readonly finalStateUnknown: boolean;
  /** Start by the clock of the controller, in milliseconds. */
  readonly startedAt: number;
  /** Time in the queue since the object was ready to run, in milliseconds. */
  readonly waited: number;
  readonly #slot: number;
  readonly #scheduler: RunScheduler;
  /** Step that the run takes; undefined before the object was inspected. */
  step: RunStep | undefined;
  /** Cause of the abort; undefined if the run was not aborted. */
  aborted: AbortCause | undefined;
  /** Called once, when the run is aborted. */
  onAbort: ((run: Run<P>, cause: AbortCause) => void) | undefined;
  /** Span of the trace; undefined without a tracer. */
  span: Span | undefined;
  /** Result of the workflow of the controller. */
  workflow: ManagedWorkflowResult | undefined;
  /** Whether the run removes the finalizer: its object may vanish any moment. */
  isReleasing = false;
  /** Time before which the object must not run again, in milliseconds. */
  pause = 0;
  #writes: string[] | undefined;
  #controller: AbortController | undefined;
  #interruption: AbortController | undefined;
  #interruptedBy: RunCause | undefined;
  #timer: Timer | undefined;

  /** @param start Facts that the run starts with. */
  constructor(start: RunStart<P>) {
    this.key = start.key;
    this.primary = start.primary;
    this.isUnread = start.isUnread;
    this.cause = start.cause;
    this.retry = start.retry;
    this.deleted = start.deleted;
    this.finalStateUnknown = start.finalStateUnknown;
    this.startedAt = start.startedAt;
    this.waited = start.waited;
    this.#slot = start.slot;
    this.#scheduler = start.scheduler;
  }

  /** Whether an event has arrived since the run began. */
  hasNewEvent(): boolean {
    return this.#scheduler.hasNewEvent(this.#slot);
  }

  /** Requests another run of the object. */
  requestAnother(): void {
    this.#scheduler.request(this.key);
  }

  /** Asks it to end after so many milliseconds, if it has not by then. */
  limit(clock: Clock, timeout: number): void {
    this.#timer = clock.setTimer(() => this.abort("timeout"), timeout);
  }

  /** It has ended: its time limit is no more. */
  ended(): void {
    this.#timer?.cancel();
  }

  /** Which object it is about. */
  get objectKey(): ObjectKey {
    return parseKey(this.key);
  }

  /** What it wrote, for people: `apply v1 ConfigMap default/web`. */
  get writes(): readonly string[] {
    return this.#writes ?? [];
  }

  /** Remembers a write; of many only the first. */
  wrote(what: string): void {
    this.#writes ??= [];
    if (this.#writes.length < MOST_WRITES) this.#writes.push(what);
  }

  /** Fires when the run should end; made when first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted !== undefined) this.#controller.abort(this.#reason());
    }
    return this.#controller.signal;
  }

  /** Asks the run to end; the first cause counts. */
  abort(cause: AbortCause): void {
    if (this.aborted !== undefined) return;
    if (cause === "deletion" && this.isReleasing) return;
    this.aborted = cause;
    // The first cause counts; the timer of a run that never ends would hold on.
    this.#timer?.cancel();
    this.#controller?.abort(this.#reason());
    this.onAbort?.(this, cause);
  }

  /** Fires when another run is asked for; made when first asked for. */
  get interrupted(): AbortSignal {
    if (this.#interruption === undefined) {
      this.#interruption = new AbortController();
      const cause = this.#interruptedBy;
      if (cause !== undefined) {
        this.#interruption.abort(new RunInterruptedError(this.key, cause));
      }
    }
    return this.#interruption.signal;
  }

  /** Tells the run that another one is asked for; the first cause counts. */
  interrupt(cause: RunCause): void {
    if (this.#interruptedBy !== undefined) return;
    this.#interruptedBy = cause;
    this.#interruption?.abort(new RunInterruptedError(this.key, cause));
  }

  /** @throws {RunAbortedError} If the run was asked to end. */
  throwIfAborted(): void {
    if (this.aborted !== undefined) throw this.#reason();
  }

  #reason(): RunAbortedError {
    const cause = this.aborted as AbortCause;
    return new RunAbortedError(
      `Cannot go on with the run of ${this.key}: ${
        ABORT_TEXTS[cause]
      }: received an abort`,
      cause,
    );
  }
}

/** How a run ended, and with which error if it failed. */
export interface RunResult {
  readonly end: RunEnd;
  readonly error?: unknown;
  /** Whether the reconciler said that it dealt with the error. */
  readonly handled?: boolean | undefined;
}
