import { type Kind, sameKind } from "../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import type { Logger } from "../logger.ts";
import { spanFields } from "../tracing.ts";
import type { RunCause } from "./cause.ts";
import type {
  ContextApplyOptions,
  ContextCreateOptions,
  ContextDeleteOptions,
  ContextMatchOptions,
  ContextPatchOptions,
  OwnedOption,
} from "./context_writes.ts";
import type { EventSource, PrimaryCache } from "./event_source.ts";
import type { WorkflowResult } from "./managed_workflow.ts";
import type { Context, PrimaryEvents, RetryInfo } from "./reconciler.ts";
import type { Run } from "./run.ts";
import type { RunEnvironment } from "./run_environment.ts";
import { RunWrites } from "./run_writes.ts";
import { scopedKey } from "./scoped_key.ts";
import type { SourceRegistry } from "./source_registry.ts";

/** {@linkcode Context} of one run. What is rarely used is made when asked for. */
export class RunContext<P extends KubernetesObject> implements Context<P> {
  readonly #run: Run<P>;
  readonly #environment: RunEnvironment<P>;
  #attributes: Map<unknown, unknown> | undefined;
  #log: Logger | undefined;
  #writer: RunWrites<P> | undefined;

  /**
   * @param run The run.
   * @param environment What all runs share.
   */
  constructor(run: Run<P>, environment: RunEnvironment<P>) {
    this.#run = run;
    this.#environment = environment;
  }

  get workflow(): WorkflowResult | undefined {
    return this.#run.workflow;
  }

  set workflow(result: WorkflowResult | undefined) {
    this.#run.workflow = result;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get interrupted(): AbortSignal {
    return this.#run.interrupted;
  }

  get client(): Client {
    return this.#environment.client;
  }

  get log(): Logger {
    this.#log ??= this.#environment.log.with({
      ...logFields(this.#run.primary, this.#environment.kind),
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
    return this.#environment.controller;
  }

  get fieldManager(): string {
    return this.#environment.fieldManager;
  }

  get key(): ObjectKey {
    return this.#run.objectKey;
  }

  get current(): P | undefined {
    return this.#environment.primaries.get(this.#run.key);
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
    return this.#environment.primaries;
  }

  get sources(): SourceRegistry<P> {
    return this.#environment.sources;
  }

  get events(): PrimaryEvents {
    const { recorder, kind } = this.#environment;
    const { primary } = this.#run;
    const record =
      (type: "Normal" | "Warning"): PrimaryEvents["normal"] =>
      (reason, message, options) =>
        recorder.record(primary, kind, { type, reason, message, options });
    return { normal: record("Normal"), warning: record("Warning") };
  }

  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string = this.#run.primary.metadata.name,
    namespace: string | undefined = this.#run.primary.metadata.namespace,
  ): Promise<T | undefined> {
    this.#run.throwIfAborted();
    const { client, sources, primaries } = this.#environment;
    const key = await scopedKey(client, kind, {
      namespace,
      name,
    });
    if (this.#isPrimaryKind(kind)) {
      return await primaries.read(key) as T | undefined;
    }
    if (sources.ofKind(kind).some((source) => source.get !== undefined)) {
      return await sources.get(kind, key);
    }
    return await client.find(kind, key, { signal: this.signal });
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace: string | undefined = this.#run.primary.metadata.namespace,
  ): Promise<readonly T[]> {
    this.#run.throwIfAborted();
    const { client, sources, primaries } = this.#environment;
    const where = namespace === "*" ? undefined : namespace;
    if (this.#isPrimaryKind(kind)) {
      const all = await primaries.readList(where);
      return all as readonly unknown[] as readonly T[];
    }
    if (sources.ofKind(kind).some((source) => source.list !== undefined)) {
      return await sources.list(kind, where);
    }
    const { signal } = this;
    const found: T[] = [];
    const all = client.listAll(kind, { namespace: where, signal });
    for await (const object of all) found.push(object);
    return found;
  }

  secondary<T extends KubernetesObject>(kind: Kind<T>): Promise<T | undefined>;
  secondary<T>(source: EventSource<P, T>): Promise<T | undefined>;
  async secondary(which: Kind | EventSource<P>): Promise<unknown> {
    const found = await this.secondaries(which as Kind);
    if (found.length > 1) {
      throw new RangeError(
        `Cannot choose the secondary: there is more than one, use ctx.secondaries: received ${found.length}`,
      );
    }
    return found[0];
  }

  secondaries<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<readonly T[]>;
  secondaries<T>(source: EventSource<P, T>): Promise<readonly T[]>;
  async secondaries(
    which: Kind | EventSource<P>,
  ): Promise<readonly unknown[]> {
    this.#run.throwIfAborted();
    const { primary } = this.#run;
    if ("start" in which) return await which.secondaries?.(primary) ?? [];
    return await this.#environment.sources.secondaries(which, primary);
  }

  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: ContextApplyOptions,
  ): Promise<T> {
    return this.#writes.apply(kind, object, options);
  }

  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: OwnedOption,
  ): Promise<ApplyObject<T>> {
    return this.#writes.intent(kind, object, options);
  }

  create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options?: ContextCreateOptions,
  ): Promise<T> {
    return this.#writes.create(kind, object, options);
  }

  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: unknown,
    options?: ContextPatchOptions,
  ): Promise<T> {
    return this.#writes.patch(kind, key, body, options);
  }

  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options?: ContextMatchOptions,
  ): Promise<T> {
    return this.#writes.replace(kind, object, options);
  }

  modify<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    change: (object: T) => void,
    options?: ContextMatchOptions,
  ): Promise<T | undefined> {
    return this.#writes.modify(kind, key, change, options);
  }

  delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    options?: ContextDeleteOptions,
  ): Promise<void> {
    return this.#writes.delete(kind, key, options);
  }

  addFinalizer(finalizer?: string): Promise<void> {
    return this.#writes.addFinalizer(finalizer);
  }

  removeFinalizer(finalizer?: string): Promise<void> {
    return this.#writes.removeFinalizer(finalizer);
  }

  get #writes(): RunWrites<P> {
    this.#writer ??= new RunWrites(this.#run, this.#environment);
    return this.#writer;
  }

  #isPrimaryKind(kind: Kind): boolean {
    return sameKind(kind, this.#environment.kind);
  }
}

/** What every log line about an object says of it. */
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
