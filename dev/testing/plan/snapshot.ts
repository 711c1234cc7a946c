import { deflateRawSync, inflateRawSync } from "node:zlib";
import {
  type Kind,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import { readJson, writeJson } from "../../apiserver/exact_json.ts";
import type {
  JournalObject,
  ServerContent,
} from "../../apiserver/storage/file_journal.ts";
import { resourceKey } from "../../apiserver/storage/store.ts";

/** Resource of a snapshot, with the number of its objects. */
export interface SnapshotResource {
  readonly group: string;
  /** Version in which the objects were read. */
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly objects: number;
  /** Whether later pages are of a newer state, since the first became too old. */
  readonly isMixed?: boolean;
}

/** Resource, or a namespace of it, that could not be read. */
export interface UnreadResource {
  /** Plural and group, such as `deployments.apps`. */
  readonly resource: string;
  /** Namespace; undefined for all of them. */
  readonly namespace?: string | undefined;
  readonly why: string;
}

/** What a snapshot is of. */
export interface SnapshotInfo {
  /** Time at which the reading began, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** Version of the server, such as `v1.37.0`. */
  readonly server: string;
  /** Namespaces that were read; undefined for all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Label selector of the primaries that were read. */
  readonly selector?: string | undefined;
  /** Whether the values of Secrets were replaced by digests. */
  readonly hidesSecrets: boolean;
  readonly resources: readonly SnapshotResource[];
  readonly unread: readonly UnreadResource[];
}

/** Names the resources whose objects are not all of one state, if there are any. */
export function mixedNote({ resources }: SnapshotInfo): string | undefined {
  const names = resources.filter(({ isMixed }) => isMixed)
    .map(({ group, plural }) => group === "" ? plural : `${plural}.${group}`);
  return names.length === 0
    ? undefined
    : `The server forgot a state while it was read: the later objects are of a newer one: ${
      names.join(", ")
    }.`;
}

/** Says that no object of the operator's own kinds was read; undefined if one was. */
export function emptyNote(
  { resources, namespaces, selector, unread }: SnapshotInfo,
  primaries: readonly Pick<Kind, "group" | "kind">[],
): string | undefined {
  const own = resources.filter(({ group, kind }) =>
    primaries.some((one) => one.group === group && one.kind === kind)
  );
  const isFound = own.some(({ objects }) => objects > 0);
  // What is not served or not read is named elsewhere.
  if (own.length === 0 || isFound || unread.length > 0) return undefined;
  const where = namespaces === undefined ? "" : ` in ${namespaces.join(", ")}`;
  const which = selector === undefined ? "" : ` with ${selector}`;
  return `The cluster has no ${
    own.map(({ kind }) => kind).join(", no ")
  }${where}${which}: the operator has nothing to run for.`;
}

/** Where the objects of a cluster are put while it is read. */
export interface SnapshotSink {
  /** Adds a page of objects. */
  add(
    resource: Omit<SnapshotResource, "objects">,
    items: readonly UntypedObject[],
  ):
    | Promise<void>
    | void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Definitions of kinds, which come first in a snapshot. */
const CRDS = "apiextensions.k8s.io/customresourcedefinitions";

/**
 * Snapshot in memory: objects of a cluster at one time, as their server had them,
 * in compressed pages, which take about a tenth of the size of the objects.
 */
export class Snapshot implements SnapshotSink {
  readonly #pages: {
    readonly group: string;
    readonly plural: string;
    readonly bytes: Uint8Array;
  }[] = [];
  /** Namespaces of objects. */
  readonly namespaces: Set<string> = new Set();
  /** CustomResourceDefinitions by name. */
  readonly definitions: Map<string, UntypedObject> = new Map();
  /** Whether the namespaces themselves were read. */
  readonly #ownNamespaces: Set<string> = new Set();
  #revision = 1;
  #info: SnapshotInfo | undefined;

  /** Completes the snapshot. */
  end(info: SnapshotInfo): this {
    this.#info = info;
    return this;
  }

  /** What the snapshot is of. */
  get info(): SnapshotInfo {
    if (this.#info !== undefined) return this.#info;
    throw new Error("Cannot use a snapshot: it is not complete");
  }

  add(
    { group, plural }: Pick<SnapshotResource, "group" | "plural">,
    items: readonly UntypedObject[],
  ): void {
    if (items.length === 0) return;
    const key = resourceKey({ group, plural });
    for (const item of items) {
      const { namespace, name } = item.metadata;
      this.#revision = Math.max(this.#revision, revisionOf(item));
      if (namespace) this.namespaces.add(namespace);
      if (key === "/namespaces") this.#ownNamespaces.add(name);
      if (key === CRDS) this.definitions.set(name, item);
    }
    if (key === CRDS) return;
    const text = items.map((item) => writeJson(item)).join("\n");
    const packed = deflateRawSync(encoder.encode(text), { level: 1 });
    // The copy is as long as the result, which is a part of a larger buffer.
    this.#pages.push({ group, plural, bytes: new Uint8Array(packed) });
  }

  /** Keys of the resources that were read, as of {@linkcode resourceKey}. */
  get resources(): ReadonlySet<string> {
    return new Set(this.info.resources.map(resourceKey));
  }

  /** Decodes objects, one after another, as often as wanted. */
  *objects(only?: string): Generator<JournalObject> {
    for (const { group, plural, bytes } of this.#pages) {
      if (only !== undefined && only !== resourceKey({ group, plural })) {
        continue;
      }
      const text = decoder.decode(inflateRawSync(bytes));
      for (const line of text.split("\n")) {
        yield entryOf({ group, plural }, readJson(line) as UntypedObject);
      }
    }
  }

  /**
   * Content for an embedded server.
   *
   * @param change Changes definitions.
   */
  content(
    change: (definition: UntypedObject) => UntypedObject,
  ): ServerContent {
    return {
      revision: this.#revision,
      isPart: true,
      objects: { [Symbol.iterator]: () => this.#content(change) },
    };
  }

  *#content(
    change: (definition: UntypedObject) => UntypedObject,
  ): Generator<JournalObject> {
    const [group = "", plural = ""] = CRDS.split("/");
    for (const definition of this.definitions.values()) {
      // The store sets the version of what it loads.
      const copy = structuredClone(change(definition));
      yield entryOf({ group, plural }, copy);
    }
    const names = new Set([
      ...COMMON_NAMESPACES,
      ...this.info.namespaces ?? [],
      ...this.namespaces,
    ]);
    for (const name of names) {
      if (!this.#ownNamespaces.has(name)) yield namespaceOf(name, this.info.at);
    }
    yield* this.objects();
  }
}

/** Namespaces of every cluster. */
const COMMON_NAMESPACES = [
  "default",
  "kube-node-lease",
  "kube-public",
  "kube-system",
];

/** Namespace of objects that were read without it. */
function namespaceOf(name: string, at: number): JournalObject {
  return entryOf({ group: "", plural: "namespaces" }, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      uid: crypto.randomUUID(),
      creationTimestamp: timestamp(at),
      labels: { "kubernetes.io/metadata.name": name },
    },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  });
}

function entryOf(
  { group, plural }: Pick<SnapshotResource, "group" | "plural">,
  object: UntypedObject,
): JournalObject {
  return { group, plural, revision: revisionOf(object), object };
}

function revisionOf({ metadata }: UntypedObject): number {
  const revision = Number(metadata.resourceVersion);
  return Number.isSafeInteger(revision) && revision > 0 ? revision : 1;
}
