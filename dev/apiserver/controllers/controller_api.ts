import {
  type KubernetesObject,
  type LabelSelector,
  matchesLabels,
  type ObjectMeta,
  type OwnerReference,
  type ResolvedKind,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import {
  apiVersionOf,
  jsonEquals,
  labelRequirements,
  mutableCopy,
} from "@coracle/operator/internal";
import type { ApiContext } from "../api_context.ts";
import type { ResourceDefinition } from "../registry.ts";
import type { DeleteOptions } from "../request/query_options.ts";
import { settle } from "../settle.ts";
import { StatusError } from "../status.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import { createObject } from "../write/create.ts";
import { updateObject } from "../write/update.ts";
import {
  deleteStored,
  internalRequest,
  internalWrite,
} from "./internal_request.ts";
import { readJson, writeJson } from "../exact_json.ts";

/** Object to create; the server sets the rest of its metadata. */
export type Draft<T extends KubernetesObject> =
  & Omit<T, "metadata" | "status">
  & { metadata: Partial<ObjectMeta> };

/** Decoded states of stored objects, shared by the controllers. */
const decoded = new WeakMap<StoredObject, UntypedObject>();

/** Maximum number of decoded states that are kept for a while. */
const MAX_LATEST = 256;
/** Decoded states of the stored objects that were synced last. */
const latest: Map<StoredObject, UntypedObject> = new Map();

/** Decodes a stored object; the result is shared and must not be changed. */
export function decode<T extends KubernetesObject>(stored: StoredObject): T {
  const known = decoded.get(stored);
  if (known !== undefined) return known as KubernetesObject as T;
  const object = decodeForNow<T>(stored);
  decoded.set(stored, object as KubernetesObject as UntypedObject);
  return object;
}

/**
 * Decodes a stored object like {@linkcode decode}, but keeps the result only for a
 * while: the decoded states of many pods would take much memory.
 */
export function decodeForNow<T extends KubernetesObject>(
  stored: StoredObject,
): T {
  const known = decoded.get(stored) ?? latest.get(stored);
  if (known !== undefined) return known as KubernetesObject as T;
  const object = stored.parse();
  latest.set(stored, object);
  const [oldest] = latest.keys();
  if (latest.size > MAX_LATEST && oldest) latest.delete(oldest);
  return object as KubernetesObject as T;
}

/** Owner reference of the managing controller, among several references. */
export function controllerOf(
  owners: readonly OwnerReference[] | undefined,
): OwnerReference | undefined {
  return owners?.find(({ controller }) => controller === true);
}

/** Owner reference with which a controller manages an object. */
export function controllerReference(
  kind: ResolvedKind,
  { metadata: { name, uid = "" } }: KubernetesObject,
): OwnerReference {
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Creates a function that checks whether labels match a selector; an empty selector matches nothing. */
export function matcher(
  selector: LabelSelector | undefined,
): (labels: Readonly<Record<string, string>> | undefined) => boolean {
  const requirements = labelRequirements(selector ?? {});
  return (labels = {}) =>
    requirements.length > 0 && matchesLabels(requirements, labels);
}

/**
 * Reads and writes of the controllers of the server. Reads return the newest
 * state; writes pass validation and admission like those of clients.
 */
export class ControllerApi {
  readonly context: ApiContext;
  readonly #manager: string;

  /**
   * Creates the access of one field manager to the objects.
   *
   * @param context Shared state of the server.
   * @param manager Field manager of the writes.
   */
  constructor(context: ApiContext, manager: string) {
    this.context = context;
    this.#manager = manager;
  }

  /** Current time, in milliseconds since the Unix epoch. */
  get now(): number {
    return this.context.clock.wallTime();
  }

  /** Current time in the format of object fields. */
  get time(): string {
    return timestamp(this.now);
  }

  get<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    key: { readonly namespace?: string | undefined; readonly name: string },
  ): T | undefined {
    const { namespace = "", name } = key;
    const stored = this.context.store.collection(kind).get(
      storageKey({ namespace, name }),
    );
    return stored && decode<T>(stored);
  }

  /** Objects of a kind, in the order of their keys. */
  list<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    namespace: string | undefined,
    matches?: (labels: Readonly<Record<string, string>> | undefined) => boolean,
  ): T[] {
    const collection = this.context.store.collection(kind);
    if (collection.size === 0) return [];
    const found = collection.scan({ namespace });
    return (matches ? found.filter(({ labels }) => matches(labels)) : found)
      .map((stored) => decode<T>(stored));
  }

  /** Objects of a kind that an owner manages, in the order of their keys. */
  managed<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    { metadata: { namespace = "", uid } }: KubernetesObject,
  ): T[] {
    return this.context.store.collection(kind).managedBy(namespace, [uid])
      .map((stored) => decode<T>(stored));
  }

  /**
   * Objects that an owner manages. Adopts unmanaged objects that its selector
   * matches, and releases objects that it no longer matches.
   */
  async claim<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    ownerKind: ResolvedKind,
    owner: KubernetesObject,
    selector: LabelSelector | undefined,
  ): Promise<T[]> {
    const matches = matcher(selector);
    const { namespace = "", uid, deletionTimestamp } = owner.metadata;
    const reference = controllerReference(ownerKind, owner);
    const claimed: T[] = [];
    const collection = this.context.store.collection(kind);
    for (const stored of collection.managedBy(namespace, [uid, undefined])) {
      const { manager } = stored;
      if (manager !== undefined) {
        if (matches(stored.labels)) claimed.push(decode<T>(stored));
        else if (deletionTimestamp === undefined) {
          await this.#setOwner(kind, decode<T>(stored), reference, false);
        }
      } else if (
        deletionTimestamp === undefined && !stored.terminating &&
        matches(stored.labels)
      ) {
        const adopted = await this.#setOwner(
          kind,
          decode<T>(stored),
          reference,
          true,
        );
        if (adopted) claimed.push(adopted);
      }
    }
    return claimed;
  }

  async #setOwner<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    object: T,
    reference: OwnerReference,
    owned: boolean,
  ): Promise<T | undefined> {
    return await this.update(kind, object, ({ metadata }) => {
      const others = metadata.ownerReferences?.filter(({ uid }) =>
        uid !== reference.uid
      ) ?? [];
      metadata.ownerReferences = owned ? [...others, reference] : others;
    });
  }

  async create<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    draft: Draft<T>,
  ): Promise<T> {
    const { namespace = "" } = draft.metadata;
    const request = internalRequest(this.context, this.#definition(kind), {
      namespace,
      name: "",
    });
    const written = await settle(() => {
      const { object } = request.version.decode({
        apiVersion: apiVersionOf(kind),
        kind: kind.kind,
        ...mutableCopy(draft),
      } as unknown as UntypedObject);
      request.version.setDefaults(object);
      return createObject(request, object, {
        options: internalWrite(this.#manager),
        apply: false,
      });
    });
    if (!("stored" in written)) throw new Error("Cannot create: dry run");
    return decode<T>(written.stored);
  }

  /**
   * Updates an object or a subresource; returns the newest state, or undefined
   * if the object is gone.
   */
  async update<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    object: T,
    change: (draft: T) => void,
    subresource?: string,
  ): Promise<T | undefined> {
    const { namespace = "", name, uid } = object.metadata;
    const definition = this.#definition(kind);
    try {
      const request = internalRequest(this.context, definition, {
        namespace,
        name,
        subresource,
      });
      const written = await settle(() =>
        updateObject(request, {
          options: internalWrite(this.#manager),
          uid,
          next: (live) => {
            change(live as KubernetesObject as T);
            // As in Go, an empty list is no field.
            for (const field of ["finalizers", "ownerReferences"] as const) {
              if (live.metadata[field]?.length === 0) {
                delete live.metadata[field];
              }
            }
            return live;
          },
        })
      );
      return "stored" in written ? decode<T>(written.stored) : undefined;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** Removes a finalizer of an object. */
  async removeFinalizer<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    object: T,
    finalizer: string,
  ): Promise<void> {
    await this.update(kind, object, ({ metadata }) => {
      metadata.finalizers = metadata.finalizers?.filter((one) =>
        one !== finalizer
      );
    });
  }

  /** Sets the status of an object if it differs. */
  async setStatus<T extends KubernetesObject & { status?: unknown }>(
    kind: ResolvedKind<T>,
    object: T,
    status: T["status"],
  ): Promise<T | undefined> {
    const plain = readJson(writeJson(status)) as T["status"];
    if (jsonEquals(plain, object.status ?? {})) return object;
    return await this.update(kind, object, (draft) => {
      draft.status = plain;
    }, "status");
  }

  /** Deletes an object; does nothing if it is gone. */
  async delete<T extends KubernetesObject>(
    kind: ResolvedKind<T>,
    { metadata: { namespace = "", name, uid } }: T,
    options: Partial<DeleteOptions> = {},
  ): Promise<void> {
    await settle(() => {
      const stored = this.context.store.collection(kind).get(
        storageKey({ namespace, name }),
      );
      if (stored === undefined || stored.uid !== uid) return;
      deleteStored(this.context, stored, { uid, ...options });
    });
  }

  #definition({ group, plural }: ResolvedKind): ResourceDefinition {
    const definition = this.context.resources.find(group, plural);
    if (definition === undefined) {
      throw new Error(`Cannot find the resource ${plural}: nobody serves it`);
    }
    return definition;
  }
}

/** Whether a write failed because the object no longer exists. */
function isGone(error: unknown): boolean {
  return error instanceof StatusError &&
    (error.status.code === 404 || /UID in precondition/.test(error.message));
}
