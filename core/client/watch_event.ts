import type { KubernetesObject } from "../api/object.ts";

/** One change of an object that a watch tells. */
export interface WatchChange<T extends KubernetesObject = KubernetesObject> {
  /** What happened to the object. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The object as it is now, or as it was last. */
  readonly object: T;
}

/** How far a watch has come; only with `bookmarks`. */
export interface WatchBookmark {
  /** Tells it from a change. */
  readonly type: "BOOKMARK";
  /** The resource version that it has come to. */
  readonly object: BookmarkObject;
}

/** What a watch tells. */
export type WatchEvent<T extends KubernetesObject = KubernetesObject> =
  | WatchChange<T>
  | WatchBookmark;

/** What a bookmark carries: a resource version, and nothing of an object. */
export interface BookmarkObject {
  /** All that is set of its metadata. */
  readonly metadata: {
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}
