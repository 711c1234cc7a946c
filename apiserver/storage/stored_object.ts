import type { OwnerReference, UntypedObject } from "../../core/api/object.ts";
import type { ResourceDefinition } from "../registry.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What a key is made of; the namespace is empty for cluster-scoped objects. */
export interface StorageName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * The key of an object within its collection. Keys sort as etcd sorts them:
 * a namespace `a-b` comes before `a`, since `-` sorts before `/`.
 */
export function storageKey({ namespace, name }: StorageName): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/**
 * One state of one object: its bytes in the storage version, with `kind` and
 * `apiVersion` first, and what selectors and controllers ask for without
 * reading them. It never changes; a write makes another one.
 */
export class StoredObject {
  /** Who described the object when it was written. */
  readonly definition: ResourceDefinition;
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The resourceVersion. */
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly owners: readonly OwnerReference[] | undefined;
  /** Whether a deletion was asked for. */
  readonly terminating: boolean;
  /** The object as JSON, `kind` and `apiVersion` first. */
  readonly bytes: Uint8Array;
  /**
   * Whether the bytes were written under the definition: those that come from
   * a file may be older than it, and are pruned and defaulted when read.
   */
  readonly current: boolean;
  #fields: Map<string, string> | undefined;

  /**
   * @param definition Who describes it.
   * @param object The object in its storage version; its resourceVersion is set.
   * @param written The revision of the write, and whether it is a new one.
   */
  constructor(
    definition: ResourceDefinition,
    object: UntypedObject,
    { revision, current = true }: {
      readonly revision: number;
      readonly current?: boolean | undefined;
    },
  ) {
    const { metadata } = object;
    metadata.resourceVersion = String(revision);
    this.definition = definition;
    this.namespace = metadata.namespace ?? "";
    this.name = metadata.name;
    this.key = storageKey(this);
    this.uid = metadata.uid ?? "";
    this.revision = revision;
    this.labels = metadata.labels;
    this.owners = metadata.ownerReferences;
    this.terminating = metadata.deletionTimestamp !== undefined;
    this.bytes = encodeObject(object);
    this.current = current;
  }

  /** The object as a fresh tree that the caller may change. */
  parse(): UntypedObject {
    return JSON.parse(decoder.decode(this.bytes));
  }

  /** A selectable field of the storage version as text; empty when not set. */
  field(name: string): string {
    if (name === "metadata.name") return this.name;
    if (name === "metadata.namespace") return this.namespace;
    this.#fields ??= this.#readFields();
    return this.#fields.get(name) ?? "";
  }

  #readFields(): Map<string, string> {
    const { versions, storageVersion } = this.definition;
    const fields = new Map<string, string>();
    const object = this.parse();
    for (const version of versions) {
      if (version.name !== storageVersion && versions.length > 1) continue;
      for (const [name, read] of version.selectableFields) {
        fields.set(name, read(object));
      }
    }
    return fields;
  }
}

/** An object as JSON, `kind` and `apiVersion` first. */
export function encodeObject(object: UntypedObject): Uint8Array {
  const { kind, apiVersion, metadata, ...rest } = object;
  return encoder.encode(
    JSON.stringify({ kind, apiVersion, metadata, ...rest }),
  );
}

/**
 * How many bytes of an encoded object say its `kind` and `apiVersion`, up to
 * the comma after them: lists of built-in kinds leave them out of their items.
 */
export function typeMetaLength(kind: string, apiVersion: string): number {
  return JSON.stringify({ kind, apiVersion }).length;
}
