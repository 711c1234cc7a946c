import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { QueueItem } from "../../queue/scheduling_queue.ts";
import type { Clock, Timer } from "../../clock.ts";
import type { Span } from "../../tracing.ts";
import { causeText, type RunCause } from "../cause.ts";
import type { ManagedWorkflowResult, RetryInfo } from "../context.ts";
import type { RunEnd, RunStep } from "./run_state.ts";

/**
 * Cause of the abort of a run: its timeout, the deletion of its object, the loss
 * of leadership, the shutdown of the operator, or the loss of the namespace or
 * shard of its object.
 */
export type AbortCause = RunAbortedError["abortCause"];

/** Reason of {@linkcode Context.signal}: the run was aborted. */
export class RunAbortedError extends Error {
  /** Why the run was aborted; see {@linkcode AbortCause}. */
  readonly abortCause:
    | "timeout"
    | "deletion"
    | "leadership"
    | "shutdown"
    | "namespace"
    | "shard"
    | "change";

  /**
   * Creates the reason of an aborted run.
   *
   * @param message Message of the error.
   * @param abortCause Cause of the abort.
   */
  constructor(message: string, abortCause: RunAbortedError["abortCause"]) {
    super(message);
    this.name = "RunAbortedError";
    this.abortCause = abortCause;
  }
}

/** Reason of {@linkcode Context.interrupted}: another run was requested. */
export class RunInterruptedError extends Error {
  /** Cause of the next run. */
  readonly runCause: RunCause;

  /**
   * Creates the reason of an interrupted run.
   *
   * @param key Key of the object.
   * @param runCause Cause of the next run.
   */
  constructor(key: string, runCause: RunCause) {
    super(
      `Cannot continue to wait in the run of ${key}: another run was requested: received ${
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
  namespace: "its namespace is no longer watched",
  shard: "its object belongs to another replica",
  change: "its object has changed",
};

/** Maximum number of writes of a run that are listed. */
const MAX_WRITES = 20;

/** Write of a run. */
export interface RunWrite {
  readonly verb: string;
  readonly subresource?: "status" | undefined;
  readonly kind: Kind;
  /** Key of the object: `namespace/name`, or `name`. */
  readonly key: string;
  /** Fields that the write changed; undefined in production. */
  readonly changes?: readonly string[] | undefined;
}

/** Text of a write, such as `apply v1 ConfigMap default/web`. */
export function writeText({ verb, subresource, kind, key }: RunWrite): string {
  const action = subresource ? `${verb} ${subresource} of` : verb;
  return `${action} ${kindText(kind)} ${key}`;
}

/** Initial data of a run. */
type RunStart<P extends KubernetesObject> =
  & Pick<
    Run<P>,
    | "cause"
    | "deleted"
    | "finalStateUnknown"
    | "isUnread"
    | "key"
    | "place"
    | "primary"
    | "retry"
    | "startedAt"
    | "waited"
  >
  & {
    /** Key of the object as taken from the queue. */
    readonly item: Pick<QueueItem, "added">;
    readonly scheduler: {
      /** Adds a run of an object. */
      request(key: string): void;
    };
  };

/** What has no writes shares this list. */
const NONE: readonly never[] = Object.freeze([]);

/** Run of an object, from its start to its end. */
export class Run<P extends KubernetesObject> {
  /** Key of the object: `namespace/name`, or `name`. */
  readonly key: string;
  /** Primary from the cache, not to be changed; only its key until it was read. */
  primary: P;
  /** Place of the primary in the cache when the run began; -1 if it had none. */
  readonly place: number;
  /** Whether the primary must be read first, since its cache is bounded. */
  readonly isUnread: boolean;
  readonly cause: RunCause;
  readonly retry: RetryInfo;
  /** Whether the primary is deleted; only with the option `allEvents`. */
  readonly deleted: boolean;
  /** Whether the last state before the deletion was missed. */
  readonly finalStateUnknown: boolean;
  /** Start by the clock of the controller, in milliseconds. */
  readonly startedAt: number;
  /** End by the clock of the controller; the start before it has ended. */
  endedAt: number;
  /** Time in the queue since the object was ready to run, in milliseconds. */
  readonly waited: number;
  readonly #item: RunStart<P>["item"];
  readonly #scheduler: RunStart<P>["scheduler"];
  /** Step that the run takes; undefined before the object was inspected. */
  step: RunStep | undefined;
  /** Cause of the abort; undefined if the run was not aborted. */
  aborted: AbortCause | undefined;
  /** Callback for the abort of the run; called once. */
  onAbort: ((run: Run<P>, cause: AbortCause) => void) | undefined;
  /** Callback for the request of another run; called once. */
  onInterrupt: ((cause: RunCause) => void) | undefined;
  /** Span of the trace; undefined without a tracer. */
  span: Span | undefined;
  /** What its recording has so far; undefined if it is not recorded. */
  recorded: object | undefined;
  /** Result of the workflow of the controller. */
  workflow: ManagedWorkflowResult | undefined;
  /** Whether the run removes the finalizer: the object may be deleted soon. */
  isReleasing = false;
  /** Pause before the next run of the object, in milliseconds. */
  pause = 0;
  /** Number of objects that it has made with generated names. */
  generated = 0;
  /** Time of the last answer to a write; the start if there was none. */
  wroteAt: number;
  #objectKey: ObjectKey | undefined;
  #writes: RunWrite[] | undefined;
  #counts: Map<string, number> | undefined;
  #controller: AbortController | undefined;
  #interruption: AbortController | undefined;
  #interruptedBy: RunCause | undefined;
  #timer: Timer | undefined;

  constructor(start: RunStart<P>) {
    this.key = start.key;
    this.place = start.place;
    this.primary = start.primary;
    this.isUnread = start.isUnread;
    this.cause = start.cause;
    this.retry = start.retry;
    this.deleted = start.deleted;
    this.finalStateUnknown = start.finalStateUnknown;
    this.startedAt = this.endedAt = this.wroteAt = start.startedAt;
    this.waited = start.waited;
    this.#item = start.item;
    this.#scheduler = start.scheduler;
  }

  /** Whether an event has arrived since the run began. */
  hasNewEvent(): boolean {
    return this.#item.added > 0;
  }

  /** Requests another run of the object. */
  requestAnother(): void {
    this.#scheduler.request(this.key);
  }

  /** Aborts the run after a timeout in milliseconds. */
  limit(clock: Clock, timeout: number): void {
    this.#timer = clock.setTimer(() => this.abort("timeout"), timeout);
  }

  /** Notes the end of the run, and cancels its timeout. */
  ended(now: number): void {
    this.endedAt = now;
    this.#timer?.cancel();
  }

  /** Key of the object, parsed. */
  get objectKey(): ObjectKey {
    return this.#objectKey ??= parseKey(this.key);
  }

  /** First 20 writes of the run. */
  get writes(): readonly RunWrite[] {
    return this.#writes ?? NONE;
  }

  /** Notes a write; returns the number of earlier ones like it to its object. */
  wrote(write: RunWrite): number {
    if (this.#writes === undefined) {
      // A literal has no spare capacity, unlike an array that grows.
      this.#writes = [write];
      return 0;
    }
    const [first = write] = this.#writes;
    const counts = this.#counts ??= new Map([[writeId(first), 1]]);
    if (this.#writes.length < MAX_WRITES) this.#writes.push(write);
    const id = writeId(write);
    const earlier = counts.get(id) ?? 0;
    counts.set(id, earlier + 1);
    return earlier;
  }

  /** Signal that is aborted with the run; created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted !== undefined) this.#controller.abort(this.#reason());
    }
    return this.#controller.signal;
  }

  /** Aborts the run; only the first cause counts. */
  abort(cause: AbortCause): void {
    if (this.aborted !== undefined) return;
    if (cause === "deletion" && this.isReleasing) return;
    this.aborted = cause;
    // The timer of a run that never ends would keep the run in memory.
    this.#timer?.cancel();
    this.#controller?.abort(this.#reason());
    this.onAbort?.(this, cause);
  }

  /** Signal that is aborted when another run is requested; created on first use. */
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

  /** Reports that another run was requested; only the first cause counts. */
  interrupt(cause: RunCause): void {
    if (this.#interruptedBy !== undefined) return;
    this.#interruptedBy = cause;
    this.onInterrupt?.(cause);
    this.#interruption?.abort(new RunInterruptedError(this.key, cause));
  }

  /**
   * Throws if the run was aborted.
   *
   * @throws {RunAbortedError} If the run was aborted.
   */
  throwIfAborted(): void {
    if (this.aborted !== undefined) throw this.#reason();
  }

  #reason(): RunAbortedError {
    const cause = this.aborted as AbortCause;
    return new RunAbortedError(
      `Cannot continue the run of ${this.key}: ${ABORT_TEXTS[cause]}`,
      cause,
    );
  }
}

export interface RunResult {
  readonly end: RunEnd;
  /** Error of a failed run. */
  readonly error?: unknown;
}

/**
 * Whether a run was aborted before it had its time, however it ended. A run that
 * has removed the finalizer has reached its end, and one after its timeout has
 * had its time.
 */
export function wasCutShort(
  run: { readonly aborted: AbortCause | undefined },
  end: RunEnd,
): boolean {
  return run.aborted !== undefined && run.aborted !== "timeout" &&
    end.type !== "finalizerRemoved";
}

/** Key of the writes that are alike, without their contents. */
function writeId({ verb, kind, key }: RunWrite): string {
  return `${verb} ${kind.group} ${kind.kind} ${key}`;
}
