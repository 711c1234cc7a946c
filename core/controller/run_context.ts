import { isResolved, type Kind, kindText, sameKind } from "../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
  OwnerReference,
} from "../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../api/object_key.ts";
import type { OwnWrite } from "../cache/shared_informer.ts";
import type { Client } from "../client/client.ts";
import type { Logger } from "../logger.ts";
import type { RunCause } from "./cause.ts";
import type { EventSource } from "./event_source.ts";
import type { WorkflowResult } from "./managed_workflow.ts";
import { withOwner } from "./owner.ts";
import { allWrites } from "./source_group.ts";
import { partSent } from "./part_sent.ts";
import type {
  Context,
  ContextDeleteOptions,
  ContextPatchOptions,
  ContextWriteOptions,
  PrimaryEvents,
  RetryInfo,
} from "./reconciler.ts";
import type { PatchBody } from "./resource_client.ts";
import type { Run } from "./run.ts";
import type { RunEnvironment } from "./run_environment.ts";

/** {@linkcode Context} of one run. What is rarely used is made when asked for. */
export class RunContext<P extends KubernetesObject> implements Context<P> {
  readonly #run: Run<P>;
  readonly #environment: RunEnvironment<P>;
  #attributes: Map<unknown, unknown> | undefined;
  #log: Logger | undefined;
  workflow: WorkflowResult | undefined;

  /**
   * @param run The run.
   * @param environment What all runs share.
   */
  constructor(run: Run<P>, environment: RunEnvironment<P>) {
    this.#run = run;
    this.#environment = environment;
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
    this.#log ??= this.#environment.log.with(
      logFields(this.#run.primary, this.#environment.kind),
    );
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
    return this.#run.isDirty();
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

  get events(): PrimaryEvents {
    const { recorder, kind } = this.#environment;
    const { primary } = this.#run;
    return {
      normal: (reason, message) =>
        recorder.record(primary, kind, { type: "Normal", reason, message }),
      warning: (reason, message) =>
        recorder.record(primary, kind, { type: "Warning", reason, message }),
    };
  }

  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string = this.#run.primary.metadata.name,
    namespace: string | undefined = this.#run.primary.metadata.namespace,
  ): Promise<T | undefined> {
    this.#run.throwIfAborted();
    const { client, sources, primaries } = this.#environment;
    const key = await this.#keyIn(kind, { namespace, name });
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

  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ContextWriteOptions = {},
  ): Promise<T> {
    const { client, fieldManager } = this.#environment;
    const intent = await this.#owned(kind, object, options);
    return await this.#write(kind, keyOf(intent as KubernetesObject), {
      verb: "apply",
      body: intent,
      options,
      send: (signal) =>
        client.apply(kind, intent, { signal, fieldManager, force: true }),
    });
  }

  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: Pick<ContextWriteOptions, "owned"> = {},
  ): Promise<ApplyObject<T>> {
    return this.#owned(kind, object, options);
  }

  async create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options: ContextWriteOptions = {},
  ): Promise<T> {
    const { client, fieldManager } = this.#environment;
    const intent = await this.#owned(kind, object, options);
    const { name } = intent.metadata;
    return await this.#write(
      kind,
      name === undefined ? undefined : keyOf(intent as KubernetesObject),
      {
        verb: "create",
        body: intent,
        options,
        send: (signal) => client.create(kind, intent, { signal, fieldManager }),
      },
    );
  }

  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: unknown,
    options: ContextPatchOptions = {},
  ): Promise<T> {
    const { client, fieldManager } = this.#environment;
    const { type = "merge", subresource } = options;
    const target = await this.#keyOf(kind, key);
    const writer = subresource === undefined ? client : client.status;
    return await this.#write(kind, target, {
      verb: "patch",
      body,
      options,
      subresource: subresource !== undefined,
      send: (signal) =>
        writer.patch(kind, target, body as PatchBody<T>, {
          type,
          signal,
          fieldManager,
        }),
    });
  }

  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    options: ContextDeleteOptions = {},
  ): Promise<void> {
    this.#run.throwIfAborted();
    const { signal = this.signal, propagationPolicy, uid } = options;
    const target = await this.#keyOf(kind, key);
    try {
      await this.#environment.client.delete(kind, target, {
        signal,
        propagationPolicy: propagationPolicy ?? "Background",
        ...(uid !== undefined && { preconditions: { uid } }),
      });
      this.#run.wrote(`delete ${kindText(kind)} ${keyText(target)}`);
    } catch (error) {
      if ((error as { isNotFound?: unknown }).isNotFound !== true) throw error;
    }
  }

  #isPrimaryKind(kind: Kind): boolean {
    return sameKind(kind, this.#environment.kind);
  }

  #keyOf(kind: Kind, key: string | ObjectKey): Promise<ObjectKey> {
    const { namespace } = this.#run.primary.metadata;
    return this.#keyIn(
      kind,
      typeof key === "string" ? { namespace, name: key } : key,
    );
  }

  /** The key as the kind has it: without namespace where it lives in none. */
  async #keyIn(kind: Kind, key: ObjectKey): Promise<ObjectKey> {
    const { scope } = isResolved(kind)
      ? kind
      : await this.#environment.client.resolve(kind);
    return scope === "Cluster" ? { name: key.name } : key;
  }

  /** The object with its namespace, and the primary as its owner. */
  async #owned<
    O extends { metadata: { name?: string | undefined } & Partial<Meta> },
  >(
    kind: Kind,
    object: O,
    options: ContextWriteOptions,
  ): Promise<O> {
    const { client, kind: primaryKind } = this.#environment;
    const { primary } = this.#run;
    const { scope } = isResolved(kind) ? kind : await client.resolve(kind);
    const namespace = scope === "Cluster"
      ? undefined
      : object.metadata.namespace ?? primary.metadata.namespace;
    const canOwn = primary.metadata.namespace === undefined ||
      primary.metadata.namespace === namespace;
    const { owned = canOwn } = options;
    if (owned && !canOwn) {
      throw new TypeError(
        `Cannot own ${kind.kind} ${object.metadata.name}: an owner must be in the same namespace or in none: received ${
          namespace ?? "a cluster-scoped object"
        } for an owner in ${primary.metadata.namespace}`,
      );
    }
    const references = object.metadata.ownerReferences ?? [];
    const metadata = {
      ...object.metadata,
      ...(namespace !== undefined && { namespace }),
      ...(owned &&
        { ownerReferences: withOwner(references, primary, primaryKind) }),
    };
    return { ...object, metadata };
  }

  /** Does a write with the caches told before and after. */
  async #write<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey | undefined,
    write: {
      readonly verb: string;
      readonly body: unknown;
      readonly options: ContextWriteOptions;
      readonly subresource?: boolean | undefined;
      readonly send: (signal: AbortSignal) => Promise<T>;
    },
  ): Promise<T> {
    this.#run.throwIfAborted();
    const { trigger = false, signal = this.signal } = write.options;
    const before = key && await this.#cached(kind, key);
    const own = key && this.#beginWrite(kind, key);
    try {
      const object = await write.send(signal);
      const { verb, body, subresource } = write;
      (own ?? this.#beginWrite(kind, keyOf(object)))
        .succeed(object, { sent: partSent(verb, body), subresource });
      const stored = { verb, body, kind, before, after: object };
      this.#environment.onWrite(this.#run, stored);
      if (trigger) this.#environment.request(this.#run.key);
      return object;
    } catch (error) {
      own?.fail();
      throw error;
    }
  }

  /** The object as a cache has it, without asking the API server. */
  async #cached<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<KubernetesObject | undefined> {
    const { sources, primaries } = this.#environment;
    return this.#isPrimaryKind(kind)
      ? primaries.get(key)
      : await sources.get(kind, key);
  }

  #beginWrite(kind: Kind, key: ObjectKey): OwnWrite {
    const { sources, primaries } = this.#environment;
    const write = sources.beginWrite(kind, key);
    if (!this.#isPrimaryKind(kind)) return write;
    return allWrites([write, primaries.beginWrite(key) as OwnWrite]);
  }
}

/** The metadata that {@linkcode RunContext} fills in. */
interface Meta {
  namespace: string | undefined;
  ownerReferences: OwnerReference[] | undefined;
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
