/**
 * Reads: get, list and watch, and their representations (objects, partial metadata,
 * Tables). Watches are fed by the hub in the order of revisions. Must not change the
 * store, and must not import `write` or `controllers`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { ListMeta } from "@coracle/operator/client";
import type { ServerResponse } from "../http/exchange.ts";
import type { Representation } from "../request/negotiation.ts";
import type { ListOptions } from "../request/query_options.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import {
  prepareSelection,
  type Selection,
  selects,
  selectsAll,
} from "../request/object_selection.ts";
import { settle } from "../settle.ts";
import { badRequest, StatusError } from "../status.ts";
import {
  storageKey,
  type StoredObject,
  typeMetaLength,
} from "../storage/stored_object.ts";
import {
  type ContinueToken,
  decodeContinue,
  encodeContinue,
} from "./continue_token.ts";
import { tooLargeVersion } from "./get.ts";
import {
  apiVersionIn,
  bytesIn,
  objectIn,
  prepareObjects,
  type View,
} from "../storage/object_view.ts";
import { respondValue } from "./respond.ts";
import {
  listIsNoObject,
  partialObject,
  readIncludeObject,
  table,
} from "./transform.ts";

/** Page of a list, before encoding. */
export interface Page {
  readonly objects: readonly StoredObject[];
  readonly metadata: ListMeta;
}

/** Revision and start key of a list request. */
interface ListPosition {
  readonly revision: number;
  readonly start: string | undefined;
  /** Whether the revision must match exactly. */
  readonly exact: boolean;
  /** Time of the first page, in seconds since the Unix epoch. */
  readonly time: number;
}

/** Age in seconds at which a revision is compacted, as in kube-apiserver by default. */
const COMPACTION_SECONDS = 300;

/**
 * Collects the objects of one page, in a step of `settle`.
 *
 * @throws {StatusError} 400, 410 or 504 if the page is not available.
 */
export function listPage(
  request: ResourceRequest,
  selection: Selection,
  options: ListOptions,
): Page {
  const { store } = request.context;
  const collection = store.collectionOf(request.definition);
  const now = Math.floor(request.context.clock.wallTime() / 1000);
  const position = positionOf(options, request.query, {
    revision: store.revision,
    time: now,
  });
  const { listFloor } = collection.history;
  const compacted = position.revision < listFloor ||
    now - position.time > COMPACTION_SECONDS;
  if (position.exact && compacted) {
    throw expired(options, position, store.revision);
  }
  const only = selection.name;
  const single = only === undefined || position.exact
    ? undefined
    : collection.get(
      storageKey({ namespace: selection.namespace ?? "", name: only }),
    );
  const direct = only !== undefined && !position.exact &&
    (selection.namespace !== undefined ||
      request.definition.scope === "Cluster");
  const candidates = direct
    ? (single === undefined ? [] : [single])
    : collection.scan({
      namespace: selection.namespace,
      start: position.start,
      revision: position.exact ? position.revision : undefined,
    });
  const page = cut(candidates, selection, {
    limit: options.limit,
    revision: position.revision,
    time: position.time,
    continueAt: options.continue !== "" && !position.exact
      ? store.revision
      : position.revision,
  });
  if (selection.shard === undefined) return page;
  const shardInfo = { selector: request.query.get("shardSelector") ?? "" };
  return { ...page, metadata: { ...page.metadata, shardInfo } };
}

function positionOf(
  options: ListOptions,
  query: URLSearchParams,
  { revision: present, time }: Pick<ListPosition, "revision" | "time">,
): ListPosition {
  const { resourceVersion = 0 } = options;
  if (options.continue !== "") {
    const token = decodeContinue(options.continue);
    const given = query.get("resourceVersion") ?? "";
    if (given !== "" && given !== "0") {
      throw badRequest(
        "specifying resource version is not allowed when using continue",
      );
    }
    const { start } = token;
    return token.revision < 0
      ? { revision: present, start, exact: false, time }
      : { ...token, start, exact: true, time: token.time ?? time };
  }
  if (resourceVersion > present) {
    throw tooLargeVersion(resourceVersion, present);
  }
  // With a limit, a resourceVersion without a match rule means Exact.
  const exact = options.resourceVersionMatch === "Exact" ||
    (options.resourceVersionMatch === "" && options.limit > 0 &&
      resourceVersion > 0);
  return {
    revision: exact ? resourceVersion : present,
    start: undefined,
    exact,
    time,
  };
}

function cut(
  candidates: readonly StoredObject[],
  selection: Selection,
  page: {
    readonly limit: number;
    readonly revision: number;
    readonly time: number;
    readonly continueAt: number;
  },
): Page {
  const { limit, revision, continueAt, time } = page;
  const all = selectsAll(selection);
  const resourceVersion = String(revision);
  prepareSelection(candidates, selection);
  if (limit === 0 || candidates.length <= limit) {
    const objects = all
      ? candidates
      : candidates.filter((object) => selects(selection, object));
    return { objects, metadata: { resourceVersion } };
  }
  const objects: StoredObject[] = [];
  let seen = 0;
  for (const object of candidates) {
    if (objects.length === limit) break;
    seen++;
    if (all || selects(selection, object)) objects.push(object);
  }
  const last = candidates[seen - 1];
  if (last === undefined || seen === candidates.length) {
    return { objects, metadata: { resourceVersion } };
  }
  return {
    objects,
    metadata: {
      resourceVersion,
      continue: encodeContinue({
        revision: continueAt,
        start: `${last.key}\0`,
        time,
      }),
      // The number of remaining items that match a selector is unknown.
      ...(all ? { remainingItemCount: candidates.length - seen } : {}),
    },
  };
}

/**
 * Error 410: the revision was compacted. A page can continue inconsistently
 * with the current state.
 */
function expired(
  options: ListOptions,
  position: ListPosition,
  present: number,
): StatusError {
  if (options.continue === "" || position.start === undefined) {
    return new StatusError({
      code: 410,
      reason: "Expired",
      message: "The resourceVersion for the provided list is too old.",
    });
  }
  const token: ContinueToken = { revision: -1, start: position.start };
  return new StatusError({
    code: 410,
    reason: "Expired",
    message:
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    metadata: {
      continue: encodeContinue(token),
      resourceVersion: String(present),
    },
  });
}

/** Responds with a page in the requested representation. */
export async function respondPage(
  request: ResourceRequest,
  page: Page,
  representation: Representation,
): Promise<ServerResponse> {
  const { as, version, media } = representation;
  if (as === "PartialObjectMetadata") throw listIsNoObject(request);
  if (as === undefined && media === "json") {
    const body = request.definition.prepareConversion
      ? await settle(() => {
        prepareObjects(page.objects, request);
        return [...blocks(pageParts(page, request))];
      })
      : blocks(pageParts(page, request));
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body,
    };
  }
  const objects = await settle(() => {
    prepareObjects(page.objects, request);
    return page.objects.map((stored) => objectIn(stored, request));
  });
  const { metadata } = page;
  const value = as === "Table"
    ? table(objects, metadata, request.version, {
      version,
      columns: true,
      include: readIncludeObject(request.query.get("includeObject")),
      now: request.context.clock.wallTime(),
    })
    : as === undefined
    ? { ...listHead(request), metadata, items: objects }
    : {
      kind: as,
      apiVersion: `meta.k8s.io/${version}`,
      metadata,
      items: objects.length === 0
        ? null
        : objects.map((object) => partialObject(object, version)),
    };
  return await respondValue(200, value, { media });
}

function listHead(view: View): { kind: string; apiVersion: string } {
  return { kind: view.definition.listKind, apiVersion: apiVersionIn(view) };
}

const encoder = new TextEncoder();
const COMMA = encoder.encode(",");
const OPEN = encoder.encode("{");

/** Parts of a list in JSON, mostly the stored bytes of items. */
function* pageParts(page: Page, view: View): Generator<Uint8Array> {
  const { definition } = view;
  const { kind, apiVersion } = listHead(view);
  // Lists of custom resources always have a continue field, even an empty one.
  const metadata = definition.custom
    ? { continue: "", ...page.metadata }
    : page.metadata;
  const head = JSON.stringify({ kind, apiVersion, metadata });
  yield encoder.encode(`${head.slice(0, -1)},"items":[`);
  // Items of built-in lists omit kind and apiVersion.
  const skip = definition.custom
    ? 0
    : typeMetaLength(definition.kind, apiVersion);
  let first = true;
  for (const stored of page.objects) {
    if (!first) yield COMMA;
    first = false;
    const bytes = bytesIn(stored, view);
    if (skip === 0) yield bytes;
    else {
      yield OPEN;
      yield bytes.subarray(skip);
    }
  }
  yield encoder.encode("]}\n");
}

const BLOCK_BYTES = 256 * 1024;

/** Joins small parts into blocks, so that each write to a socket is large. */
function* blocks(parts: Iterable<Uint8Array>): Generator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for (const part of parts) {
    if (size + part.length > BLOCK_BYTES) {
      if (size > 0) yield Buffer.concat(held, size);
      held = [];
      size = 0;
      if (part.length > BLOCK_BYTES) {
        yield part;
        continue;
      }
    }
    held.push(part);
    size += part.length;
  }
  yield Buffer.concat(held, size);
}
