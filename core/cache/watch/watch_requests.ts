import type { Kind, ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { SelectionOptions } from "../../api/selection.ts";
import {
  type ApiRequest,
  getRequest,
  listRequest,
  watchRequest,
} from "../../client/request.ts";
import type { ListOptions } from "../../client/request_options.ts";
import type { HttpResponse } from "../../client/transport/transport.ts";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { Metrics } from "../../metrics.ts";

/** Selection of the objects of an informer, and the form in which it keeps them. */
export interface InformerSelection extends SelectionOptions {
  /**
   * Namespaces to watch, with one watch each; if left out, all namespaces, with
   * one watch. Not for cluster-scoped kinds.
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * Whether to request and keep the metadata only.
   *
   * @default {false}
   */
  readonly metadataOnly?: boolean | undefined;
  /**
   * Paths to remove before an object is stored, such as
   * `metadata.managedFields` or `status.conditions[*].lastProbeTime`. Reading
   * one throws an error that names it.
   *
   * `metadata.managedFields[manager!="page","book"]` removes all elements of a
   * list except those whose field has one of these values; reading the list then
   * gives the remaining elements, without an error. A write of such an object
   * omits the list, so that the server keeps the removed elements.
   *
   * @default {[]}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Whether the cache may keep only the keys of objects for which the budget has
   * no space left, even compressed. Such an object is fetched when it is read by
   * `read`, `readList` or `readByIndex`; reads that do not wait throw. Keys and
   * index entries always stay, so that no event is missed; the next event of an
   * evicted object has no previous state.
   *
   * @default {false}
   */
  readonly bounded?: boolean | undefined;
}

/** Part of a client that an informer uses; every `Client` implements it. */
export interface InformerClient {
  /** Sends a request and resolves with its response, whose body is unread. */
  request(request: ApiRequest): Promise<HttpResponse>;
  /** Resolves the plural name and the scope of a kind, with `fresh` again from the server. */
  resolve<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: { readonly fresh?: boolean | undefined },
  ): Promise<ResolvedKind<T>>;
  /** Defaults for options of an informer that uses this client. */
  readonly defaults?: {
    readonly clock?: Clock | undefined;
    readonly logger?: Logger | undefined;
    readonly metrics?: Metrics | undefined;
    readonly random?: (() => number) | undefined;
  };
}

/** Objects that are listed and watched together. */
export interface WatchTarget extends SelectionOptions {
  readonly kind: ResolvedKind;
  /** Namespace of the objects; undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly metadataOnly: boolean;
}

const METADATA_TYPE = "application/json;g=meta.k8s.io;v=v1;as=";

/**
 * Request for one page of the state.
 *
 * @param position Maximum number of objects, all if undefined; continue token from
 * the previous page, empty for the first; and the oldest acceptable state, `"0"`
 * for any, empty for the newest.
 */
export function pageRequest(
  target: WatchTarget,
  position: {
    readonly limit: number | undefined;
    readonly continueToken: string;
    readonly resourceVersion: string;
  },
): ApiRequest {
  const { continueToken, resourceVersion } = position;
  const request = listRequest(target.kind, {
    ...selection(target),
    limit: position.limit,
    continue: continueToken || undefined,
    // A token contains the version of its list; the server rejects both together.
    resourceVersion: continueToken === "" && resourceVersion !== ""
      ? resourceVersion
      : undefined,
  });
  // The reflector retries, reports failures and limits the time by itself.
  return {
    ...accepting("PartialObjectMetadataList", request, target),
    mayRetry: false,
    mayPause: true,
  };
}

/**
 * Request for the changes after a state, or for the whole state and its changes.
 *
 * @param position Version after which events are requested, time after which the
 * server ends the watch, and whether the whole state precedes the changes.
 */
export function streamRequest(
  target: WatchTarget,
  position: {
    readonly resourceVersion: string;
    readonly timeoutSeconds: number;
    readonly initialEvents: boolean;
  },
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
    // Its lines are copied or dropped while they are read.
    borrowsChunks: true,
  };
}

export function objectRequest(
  target: Pick<WatchTarget, "kind" | "metadataOnly">,
  key: ObjectKey,
): ApiRequest {
  const request = getRequest(target.kind, key);
  return accepting("PartialObjectMetadata", request, target);
}

function selection(target: WatchTarget): ListOptions {
  const { namespace, labelSelector, fieldSelector, shardSelector } = target;
  return { namespace, labelSelector, fieldSelector, shardSelector };
}

/**
 * Adds the `accept` header for metadata only, if requested; a server that does not
 * support it sends whole objects.
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
