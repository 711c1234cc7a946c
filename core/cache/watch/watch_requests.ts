import type { ResolvedKind } from "../../api/kind.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import {
  type ApiRequest,
  getRequest,
  listRequest,
  watchRequest,
} from "../../client/request.ts";
import type { InformerSelection } from "../informer/informer_options.ts";

/** Which objects are listed and watched together. */
export interface WatchTarget extends
  Pick<
    InformerSelection,
    "labelSelector" | "fieldSelector" | "shardSelector"
  > {
  readonly kind: ResolvedKind;
  /** One namespace; all when absent. */
  readonly namespace: string | undefined;
  /** Whether only the metadata is asked for. */
  readonly metadataOnly: boolean;
}

/** Which page of a list is asked for. */
export interface ListPosition {
  /** At most so many objects; all at once when absent. */
  readonly limit: number | undefined;
  /** The token that the page before gave; empty for the first page. */
  readonly continueToken: string;
  /** The state may not be older; `"0"` for any, empty for the newest. */
  readonly resourceVersion: string;
}

/** Where a watch begins. */
export interface WatchPosition {
  /** Events after this state. */
  readonly resourceVersion: string;
  /** After how many seconds the server ends the watch. */
  readonly timeoutSeconds: number;
  /** Whether the whole state is asked for first. */
  readonly initialEvents: boolean;
}

const METADATA_TYPE = "application/json;g=meta.k8s.io;v=v1;as=";

/** Asks for one page of the state. */
export function pageRequest(
  target: WatchTarget,
  position: ListPosition,
): ApiRequest {
  const { continueToken, resourceVersion } = position;
  const request = listRequest(target.kind, {
    ...selection(target),
    limit: position.limit,
    continue: continueToken || undefined,
    // A token carries the state of its list; the server refuses both together.
    resourceVersion: continueToken === "" && resourceVersion !== ""
      ? resourceVersion
      : undefined,
  });
  // The reflector tries again by itself, tells of what fails, and has limits of
  // its own.
  return {
    ...accepting("PartialObjectMetadataList", request, target),
    mayRetry: false,
    mayPause: true,
  };
}

/** Asks for the changes after a state, or for the whole state and its changes. */
export function streamRequest(
  target: WatchTarget,
  position: WatchPosition,
): ApiRequest {
  const request = watchRequest(target.kind, {
    ...selection(target),
    resourceVersion: position.resourceVersion || undefined,
    resourceVersionMatch: position.initialEvents ? "NotOlderThan" : undefined,
    sendInitialEvents: position.initialEvents,
    bookmarks: true,
    timeoutSeconds: position.timeoutSeconds,
  });
  return {
    ...accepting("PartialObjectMetadata", request, target),
    mayRetry: false,
    // Its lines are stored elsewhere, or forgotten, as they are read.
    borrowsChunks: true,
  };
}

/** Asks for one object. */
export function objectRequest(
  target: Pick<WatchTarget, "kind" | "metadataOnly">,
  key: ObjectKey,
): ApiRequest {
  const request = getRequest(target.kind, key);
  return accepting("PartialObjectMetadata", request, target);
}

function selection(
  target: WatchTarget,
): Pick<
  WatchTarget,
  "namespace" | "labelSelector" | "fieldSelector" | "shardSelector"
> {
  const { namespace, labelSelector, fieldSelector, shardSelector } = target;
  return { namespace, labelSelector, fieldSelector, shardSelector };
}

/**
 * Asks for metadata where no more is wanted, and for the whole object where the
 * server cannot give less.
 */
function accepting(
  as: string,
  request: ApiRequest,
  target: Pick<WatchTarget, "metadataOnly">,
): ApiRequest {
  if (!target.metadataOnly) return request;
  const accept = `${METADATA_TYPE}${as},application/json`;
  return { ...request, headers: { ...request.headers, accept } };
}
