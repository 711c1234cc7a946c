import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { OwnerReference, UntypedObject } from "@coracle/operator/client";
import type { ResourceDefinition } from "../registry.ts";
import { readJson, writeJson } from "../exact_json.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** Minimum size of objects that are compressed, in bytes. */
const MIN_COMPRESSED_BYTES = 2_048;

/**
 * Namespace and name of an object; the namespace is empty for cluster-scoped
 * objects.
 */
export interface StorageName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Key of an object in its collection. Keys sort as in etcd: a namespace `a-b`
 * comes before `a`, because `-` sorts before `/`.
 */
export function storageKey({ namespace, name }: StorageName): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/**
 * Immutable state of one object: its bytes in the storage version, with `kind`
 * and `apiVersion` first, and the fields that selectors and controllers need
 * without decoding.
 */
export class StoredObject {
  /** Resource definition with which the object was written. */
  readonly definition: ResourceDefinition;
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** resourceVersion as a number. */
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly owners: readonly OwnerReference[] | undefined;
  /** Whether the object has a deletionTimestamp. */
  readonly terminating: boolean;
  /** Size of {@linkcode StoredObject.bytes}. */
  readonly size: number;
  /**
   * Whether the bytes were written with the current definition, in its storage
   * version. Others, such as those from a file, are pruned and defaulted on
   * reads.
   */
  readonly current: boolean;
  #bytes: Uint8Array;
  #isCompressed = false;
  #fields: Map<string, string> | undefined;

  /**
   * Creates the stored form of an object.
   *
   * @param definition Resource definition.
   * @param object Object in its storage version; its resourceVersion is set.
   * @param written Revision of the write, and whether it is a new write.
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
    this.#bytes = encodeObject(object);
    this.size = this.#bytes.length;
    this.current = current;
  }

  /** Object as JSON, with `kind` and `apiVersion` first. */
  get bytes(): Uint8Array {
    return this.#isCompressed
      ? inflateRawSync(this.#bytes, { chunkSize: this.size + 1 })
      : this.#bytes;
  }

  /** Compresses the bytes, unless they are few. */
  compress(): void {
    if (this.#isCompressed || this.size < MIN_COMPRESSED_BYTES) return;
    // The copy is as long as the result, which is a part of a larger buffer.
    this.#bytes = new Uint8Array(
      deflateRawSync(this.#bytes, { level: 1, windowBits: 13, memLevel: 6 }),
    );
    this.#isCompressed = true;
  }

  /** UID of the controller that manages the object; undefined if none exists. */
  get manager(): string | undefined {
    return this.owners?.find(({ controller }) => controller === true)?.uid;
  }

  /** Decodes the object into a new tree that the caller may change. */
  parse(): UntypedObject {
    return readJson(decoder.decode(this.bytes)) as UntypedObject;
  }

  /** Selectable field of the storage version as text; empty if absent. */
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

/** Encodes an object as JSON, with `kind` and `apiVersion` first. */
export function encodeObject(object: UntypedObject): Uint8Array {
  const { kind, apiVersion, metadata, ...rest } = object;
  return encoder.encode(
    writeJson({ kind, apiVersion, metadata, ...rest }),
  );
}

/**
 * Length of `kind` and `apiVersion` in an encoded object, up to the comma after
 * them; lists of built-in kinds omit them from their items.
 */
export function typeMetaLength(kind: string, apiVersion: string): number {
  return JSON.stringify({ kind, apiVersion }).length;
}
