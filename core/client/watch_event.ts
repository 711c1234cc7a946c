import type { KubernetesObject } from "../api/object.ts";

/** One change that a watch tells. */
export type WatchEvent<T extends KubernetesObject = KubernetesObject> =
  | {
    readonly type: "ADDED" | "MODIFIED" | "DELETED";
    readonly object: T;
  }
  | {
    /** How far the watch has come; only with `bookmarks`. */
    readonly type: "BOOKMARK";
    /** The resource version that it has come to. */
    readonly object: BookmarkObject;
  };

/** What a bookmark carries: a resource version, and nothing of an object. */
export interface BookmarkObject {
  /** All that is set of its metadata. */
  readonly metadata: {
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}
