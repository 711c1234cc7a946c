import type { Clock } from "../../clock.ts";
import type { Kind } from "../../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { checkParts } from "../../api/options.ts";
import type { Client } from "../../client/client.ts";
import type { Logger } from "../../logger.ts";
import { spanFields } from "../../tracing.ts";
import type { RunCause } from "../cause.ts";
import type {
  Context,
  ContextWriteOptions,
  ManagedWorkflowResult,
  PrimaryEvents,
  RetryInfo,
} from "../context.ts";
import { EVENT_OPTIONS } from "../event_recorder.ts";
import type { PrimaryCache, SourceRegistry } from "../event_source.ts";
import { FollowedWrites } from "./followed_writes.ts";
import type { Run } from "./run.ts";
import type { RunDeps } from "./run_deps.ts";
import { RunReads } from "./run_reads.ts";
import { RunWrites } from "./run_writes.ts";

const EVENT_RULES = {
  reason: "name",
  message: "string",
  options: { type: "object?", options: EVENT_OPTIONS },
} as const;

/** Methods of {@linkcode RunReads}, which a reconciler may take out: `{ get }`. */
const READS = ["get", "list", "secondary", "secondaries"] as const;
/**
 * Methods of {@linkcode RunWrites}, which a reconciler may take out. Their errors
 * fail the run even if they are not awaited.
 */
const WRITES = [
  "apply",
  "create",
  "patch",
  "replace",
  "modify",
  "delete",
  "addFinalizer",
  "removeFinalizer",
] as const;

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * Context of a run: what is known about it, and its reads and writes, which are
 * made on first use.
 */
export class RunContext<P extends KubernetesObject> implements Context<P> {
  declare readonly get: RunReads<P>["get"];
  declare readonly list: RunReads<P>["list"];
  declare readonly secondary: RunReads<P>["secondary"];
  declare readonly secondaries: RunReads<P>["secondaries"];
  declare readonly apply: RunWrites<P>["apply"];
  declare readonly create: RunWrites<P>["create"];
  declare readonly patch: RunWrites<P>["patch"];
  declare readonly replace: RunWrites<P>["replace"];
  declare readonly modify: RunWrites<P>["modify"];
  declare readonly delete: RunWrites<P>["delete"];
  declare readonly addFinalizer: RunWrites<P>["addFinalizer"];
  declare readonly removeFinalizer: RunWrites<P>["removeFinalizer"];
  readonly #run: Run<P>;
  readonly #deps: RunDeps<P>;
  #reads: RunReads<P> | undefined;
  #writes: RunWrites<P> | undefined;
  #followed: FollowedWrites | undefined;
  #attributes: Map<unknown, unknown> | undefined;
  #log: Logger | undefined;
  #hasEnded = false;

  static {
    for (const name of READS) {
      Object.defineProperty(this.prototype, name, {
        get(this: RunContext<KubernetesObject>): Method {
          const reads = this.#reads ??= new RunReads(this.#run, this.#deps);
          const method = reads[name] as Method;
          return method.bind(reads);
        },
      });
    }
    for (const name of WRITES) {
      Object.defineProperty(this.prototype, name, {
        get(this: RunContext<KubernetesObject>): Method {
          return (...args) => {
            const { kind = "" } = Object(args[0]) as Partial<Kind>;
            const { writes } = this;
            const write = (writes[name] as Method).apply(writes, args);
            this.#followed ??= new FollowedWrites(
              () => this.log,
              this.#hasEnded,
            );
            return this.#followed.follow(write, `ctx.${name}(${kind})`);
          };
        },
      });
    }
  }

  constructor(run: Run<P>, deps: RunDeps<P>) {
    this.#run = run;
    this.#deps = deps;
  }

  /** Writes of the run that are not followed. */
  get writes(): RunWrites<P> {
    return this.#writes ??= new RunWrites(this.#run, this.#deps);
  }

  /**
   * Waits for the writes that the reconciler has not awaited.
   *
   * @returns Undefined if there are none.
   * @throws The error of the first that failed.
   */
  endWrites(): Promise<void> | undefined {
    this.#hasEnded = true;
    return this.#followed?.end();
  }

  get workflow(): ManagedWorkflowResult | undefined {
    return this.#run.workflow;
  }

  set workflow(result: ManagedWorkflowResult | undefined) {
    this.#run.workflow = result;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get interrupted(): AbortSignal {
    return this.#run.interrupted;
  }

  get client(): Client {
    return this.#deps.client;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  get log(): Logger {
    this.#log ??= this.#deps.log.with({
      ...logFields(this.#run.primary, this.#deps.kind),
      ...spanFields(this.#run.span),
    });
    return this.#log;
  }

  get retry(): RetryInfo {
    return this.#run.retry;
  }

  get cause(): RunCause {
    return this.#run.cause;
  }

  get controller(): string {
    return this.#deps.controller;
  }

  get cluster(): string | undefined {
    return this.#deps.cluster;
  }

  get fieldManager(): string {
    return this.#deps.fieldManager;
  }

  get key(): ObjectKey {
    return this.#run.objectKey;
  }

  get current(): P | undefined {
    return this.#deps.primaries.cache.get(this.#run.key);
  }

  get nextImminent(): boolean {
    return this.#run.hasNewEvent();
  }

  get deleted(): boolean {
    return this.#run.deleted;
  }

  get finalStateUnknown(): boolean {
    return this.#run.finalStateUnknown;
  }

  get attributes(): Map<unknown, unknown> {
    this.#attributes ??= new Map();
    return this.#attributes;
  }

  get primaries(): PrimaryCache<P> {
    return this.#deps.primaries.cache;
  }

  get sources(): SourceRegistry<P> {
    return this.#deps.sources;
  }

  get events(): PrimaryEvents {
    const { recorder, kind } = this.#deps;
    const { primary } = this.#run;
    const record =
      (type: "Normal" | "Warning"): PrimaryEvents["normal"] =>
      (reason, message, options) => {
        const event = { reason, message, options };
        checkParts(event, EVENT_RULES, "an Event");
        recorder.record(primary, kind, { type, ...event });
      };
    return { normal: record("Normal"), warning: record("Warning") };
  }

  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: Pick<ContextWriteOptions, "owned">,
  ): Promise<ApplyObject<T>> {
    return this.writes.intent(kind, object, options);
  }
}

/** Fields of every log line about an object. */
export function logFields(
  object: KubernetesObject,
  kind: Kind,
): Record<string, unknown> {
  const { name, namespace, uid, resourceVersion, generation } = object.metadata;
  return {
    kind: kind.kind,
    ...(namespace !== undefined && { namespace }),
    name,
    uid,
    resourceVersion,
    ...(generation !== undefined && { generation }),
  };
}
