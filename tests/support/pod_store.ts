import { Buffer } from "node:buffer";
import type {
  IndexDefinition,
  ObjectKey,
  UntypedObject,
} from "@coracle/operator/client";
import { untyped } from "../../core/api/kind.ts";
import {
  ObjectStore,
  type ObjectStoreOptions,
  type PutOptions,
  type StoreOutcome,
} from "../../core/cache/store/object_store.ts";
import { rangeText, wholeRange } from "../../core/json/byte_range.ts";
import { EventScanner } from "../../core/json/event_scanner.ts";

const Pod = untyped({ group: "", version: "v1", kind: "Pod" });
const scanner = new EventScanner();

type Options = Partial<ObjectStoreOptions<UntypedObject>> & {
  readonly indexes?: Readonly<Record<string, IndexDefinition<UntypedObject>>>;
};

/** Creates a store of Pods. */
export function podStore(
  { indexes = {}, ...options }: Options = {},
): ObjectStore<UntypedObject> {
  const store = new ObjectStore({ kind: Pod, ...options });
  for (const [name, definition] of Object.entries(indexes)) {
    store.addIndex(name, definition);
  }
  return store;
}

/** JSON of an object as it is stored; undefined if none exists. */
export function storedText(
  store: ObjectStore<UntypedObject>,
  key: ObjectKey,
): string | undefined {
  const header = store.header(key);
  return header === undefined || header.isPartial
    ? undefined
    : rangeText(header);
}

/** Fields that differ between Pods. */
export interface Fields {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly version?: number | string;
  readonly labels?: Record<string, string>;
  readonly owners?: readonly string[];
  readonly spec?: unknown;
}

/** Creates a small Pod. */
export function pod(fields: Fields): UntypedObject {
  const { name, namespace, uid = "u", version = 1, labels, owners, spec } =
    fields;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid,
      resourceVersion: String(version),
      ...(labels && { labels }),
      ...(owners && {
        ownerReferences: owners.map((uid) => ({
          apiVersion: "v1",
          kind: "Owner",
          name: "o",
          uid,
        })),
      }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}

/** Puts an object as a watch does, which reuses its bytes. */
export function put(
  store: ObjectStore<UntypedObject>,
  object: unknown,
  options?: PutOptions,
): StoreOutcome {
  const text = JSON.stringify(object);
  const bytes = Buffer.from(text);
  const { outcome } = store.put(scanner.scanObject(wholeRange(bytes)), options);
  bytes.fill("#"); // the store has made its own copy
  return outcome;
}
