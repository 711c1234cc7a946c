import { ApiError } from "../../api/api_error.ts";
import {
  isBuiltIn,
  type Kind,
  type ResolvedKind,
  sameKind,
} from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { OwnWrite } from "../../cache/informer/shared_informer.ts";
import { sendWrite } from "../../client/client.ts";
import type { ApiRequest } from "../../client/request.ts";
import type {
  SubresourceOption,
  WriteOptions,
} from "../../client/request_options.ts";
import type { Answer } from "../../client/response.ts";
import { deepFreeze } from "../../json/prune.ts";
import { checkStatusPatch } from "../../crd/check_status.ts";
import type { JsonPatchOperation } from "../../patch/json_patch.ts";
import { isJsonObject } from "../../patch/json_value.ts";
import type { ContextWriteOptions } from "../context.ts";
import { allWrites } from "../watch/source_group.ts";
import { partOf } from "./keyed_lists.ts";
import type { Run } from "./run.ts";
import type { RunDeps } from "./run_deps.ts";

/** Properties of a write that differ between the verbs. */
export interface Write<T extends KubernetesObject> {
  readonly verb: "apply" | "create" | "patch" | "update";
  readonly body: object;
  readonly options: ContextWriteOptions;
  /** Check before the write, given the object that a cache holds. */
  readonly admit?: (cached: KubernetesObject | undefined) => Promise<void>;
  /** Whether the write would change the object that a cache holds. */
  readonly changes: (cached: KubernetesObject) => boolean;
  readonly request: (
    kind: ResolvedKind,
    options: SubresourceOption & WriteOptions,
  ) => ApiRequest;
  /** Whether to send the write again, after it has repaired the cause of an error. */
  readonly repair?: (error: unknown) => Promise<boolean>;
  /** Callback for the stored object, once it is in the cache. */
  readonly learn?: (stored: T) => void;
}

/** Object after a write, decoded on access. */
export type Written<T extends KubernetesObject> = Pick<Answer<T>, "object">;

/**
 * Sender of the writes of a run: sends what changes something, updates the caches
 * with the answer, and reports it to the observer of writes.
 */
export class WriteSender<P extends KubernetesObject> {
  readonly #run: Run<P>;
  readonly #deps: RunDeps<P>;

  constructor(run: Run<P>, deps: RunDeps<P>) {
    this.#run = run;
    this.#deps = deps;
  }

  /** Sends a write unless it would change nothing, and updates the caches. */
  async send<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey | undefined,
    write: Write<T>,
  ): Promise<Written<T>> {
    const { trigger = false, match = true, subresource } = write.options;
    const { signal = this.#run.signal } = write.options;
    if (write.options.signal === undefined) this.#run.throwIfAborted();
    const { verb, body } = write;
    const before = key && await this.cached(kind, key);
    if (write.admit !== undefined) await write.admit(before);
    if (match && before !== undefined && !write.changes(before)) {
      // The primary of a run is not handed out before it is frozen.
      if (before === this.#run.primary) deepFreeze(before);
      return { object: before as T };
    }
    const isStatus = subresource !== undefined;
    const checked = isStatus && this.#checkStatus(kind, body, before);
    if (checked instanceof Promise) await checked;
    const { client, fieldManager, recorder, writeObserver } = this.#deps;
    // A partial cache does not show what others have changed.
    const isWatched = isStatus && !this.#deps.cacheIsPartial;
    const live = isWatched && key && writeObserver.needsLive(kind, key)
      ? await client.find(kind, key, { signal })
      : undefined;
    const own = key && this.beginWrite(kind, key);
    const common = { signal, fieldManager, subresource };
    const send = () =>
      sendWrite(client, kind, (resolved) => write.request(resolved, common));
    try {
      const answer = await send().catch(async (error: unknown) => {
        if (!await write.repair?.(error)) throw error;
        return await send();
      });
      const written = key ?? parseKey(answer.keyText);
      (own ?? this.beginWrite(kind, written)).succeed(answer.json, {
        sent: sentPart(verb, body),
        base: baseOf(body),
        subresource: isStatus,
      });
      const after = write.learn && await this.cached(kind, written);
      if (after !== undefined) write.learn?.(answer.object);
      const fight = writeObserver.observe(this.#run, {
        verb,
        subresource,
        kind,
        before,
        after: answer,
        isStatus: isWatched,
        prefix: key === undefined ? prefixOf(body) : undefined,
        live,
      });
      if (fight !== undefined) {
        recorder.record(this.#run.primary, this.#deps.kind, {
          type: "Warning",
          reason: "StatusFieldFight",
          message: `${fight.field} changes after each write: ${
            fight.manager === undefined
              ? "another writer changes"
              : `field manager "${fight.manager}" writes`
          } it, too`,
        });
      }
      if (trigger) this.#run.requestAnother();
      return answer;
    } catch (error) {
      own?.fail();
      const mayLack = isStatus && ApiError.is(error) &&
        (error.isNotFound || error.isForbidden);
      if (mayLack) await this.#checkHasStatus(kind, error);
      throw error;
    }
  }

  /** Throws an explanation if a status was refused as the kind has none. */
  async #checkHasStatus(kind: Kind, cause: ApiError): Promise<void> {
    const served = await this.#deps.client.resources().catch(() => []);
    const resource = served.find((resource) => sameKind(resource, kind));
    if (!resource || resource.subresources.includes("status")) return;
    throw new TypeError(
      `Cannot write the status of ${kind.kind}: the kind has none, so ${
        isBuiltIn(kind)
          ? "write an annotation by patchResource()"
          : "give defineKind a status, or its CustomResourceDefinition subresources: { status: {} }"
      }`,
      { cause },
    );
  }

  /** Reads an object from the caches; a bounded cache may have to fetch it. */
  cached<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<KubernetesObject | undefined> {
    const { sources, primaries: { cache } } = this.#deps;
    if (!this.isPrimaryKind(kind)) return sources.get(kind, key);
    const { primary } = this.#run;
    const { resourceVersion } = primary.metadata;
    // What the run has decoded need not be decoded again.
    return this.#isOwn(key) && resourceVersion !== undefined &&
        cache.resourceVersion?.(key) === resourceVersion
      ? Promise.resolve(primary)
      : cache.read(key);
  }

  #isOwn({ name, namespace }: ObjectKey): boolean {
    const { objectKey } = this.#run;
    return name === objectKey.name && namespace === objectKey.namespace;
  }

  /** Opens the window of an own write in all caches that hold the object. */
  beginWrite(kind: Kind, key: ObjectKey): OwnWrite {
    const { sources, primaries } = this.#deps;
    const writes = sources.beginWrites(kind, key);
    if (this.isPrimaryKind(kind)) {
      const isOwn = this.#isOwn(key);
      const write = primaries.beginWrite(
        isOwn ? this.#run.key : key,
      ) as OwnWrite;
      // Another primary has to run for what this one wrote to it.
      writes.push(isOwn ? this.#followed(write, key) : heard(write));
    }
    return allWrites(writes);
  }

  /** A write to the object of the run; sources that follow primaries are notified. */
  #followed(write: OwnWrite, key: ObjectKey): OwnWrite {
    const { sources } = this.#deps;
    if (!sources.followsPrimaries) return write;
    return {
      succeed(object, result) {
        write.succeed(object, result);
        void sources.primaryWritten(key);
      },
      fail: () => write.fail(),
    };
  }

  /** Whether a kind is that of the primaries. */
  isPrimaryKind(kind: Kind): boolean {
    return sameKind(kind, this.#deps.kind);
  }

  /** Checks a status against the schema of its kind. */
  #checkStatus(
    kind: Kind,
    body: object,
    before: KubernetesObject | undefined,
  ): void | Promise<void> {
    const { status: patch } = body as { status?: unknown };
    if (!isJsonObject(patch)) return;
    const whole = this.isPrimaryKind(kind) &&
      !this.#deps.cacheIsPartial;
    const current = partOf(before, "status") ?? (whole ? {} : undefined);
    return checkStatusPatch(kind, patch, current as object | undefined);
  }
}

/** Prefix of a name that the server makes. */
function prefixOf(body: object): string {
  const { metadata } = body as Partial<KubernetesObject>;
  return `${metadata?.generateName ?? ""}*`;
}

/** Version of the object that a write is for; undefined if it is for any. */
function baseOf(body: object): string | undefined {
  if (!Array.isArray(body)) {
    return (body as Partial<KubernetesObject>).metadata?.resourceVersion;
  }
  const guard = (body as readonly JsonPatchOperation[]).find(({ op, path }) =>
    path === "/metadata/resourceVersion" && (op === "replace" || op === "test")
  );
  return guard !== undefined && "value" in guard
    ? String(guard.value)
    : undefined;
}

/** Fields that a write sends, if it sends only a part of the object. */
function sentPart(verb: string, body: unknown): unknown {
  const isPart = verb === "apply" || (verb === "patch" && !Array.isArray(body));
  return isPart ? body : undefined;
}

/** A write whose event goes to the handler of its author, too. */
function heard(write: OwnWrite): OwnWrite {
  return {
    succeed: (object, result) =>
      write.succeed(object, { ...result, delivered: true }),
    fail: () => write.fail(),
  };
}
