import type { UntypedObject } from "@coracle/operator/client";
import type { JsonObject, Status } from "@coracle/operator/internal";
import type { Representation } from "../request/negotiation.ts";
import type { ChangeType } from "../storage/history.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import {
  apiVersionIn,
  bytesIn,
  objectIn,
  type View,
} from "../storage/object_view.ts";
import { type IncludeObject, partialObject, table } from "./transform.ts";
import { writeJson } from "../exact_json.ts";

const encoder = new TextEncoder();
const END = encoder.encode("}\n");
const STARTS: Readonly<Record<ChangeType, Uint8Array>> = {
  ADDED: encoder.encode('{"type":"ADDED","object":'),
  MODIFIED: encoder.encode('{"type":"MODIFIED","object":'),
  DELETED: encoder.encode('{"type":"DELETED","object":'),
};

/** Encoding of a watch's events. */
export interface FrameFormat {
  readonly view: View;
  readonly representation: Representation;
  readonly include: IncludeObject;
  /** Encoder of protobuf; undefined if the events are JSON. */
  readonly protobuf?:
    | typeof import("../builtin/protobuf_writer.ts")
    | undefined;
}

/**
 * Key of an encoding, equal for encodings that yield the same bytes, so that
 * watches share frames.
 */
export function formatKey(
  { view, representation, include }: FrameFormat,
): string {
  const { as = "", version, media } = representation;
  return `${view.definition.group}/${view.version.name}/${as}/${version}/${media}/${include}`;
}

/** Encodes one event as a line. */
export function frame(
  type: ChangeType,
  stored: StoredObject,
  format: FrameFormat,
  table: { readonly now: number; readonly columns: boolean },
): Uint8Array {
  const { view, representation, protobuf } = format;
  if (representation.as === undefined && protobuf === undefined) {
    const bytes = bytesIn(stored, view);
    const start = STARTS[type];
    const line = new Uint8Array(start.length + bytes.length + END.length);
    line.set(start);
    line.set(bytes, start.length);
    line.set(END, start.length + bytes.length);
    return line;
  }
  return event(type, shown(objectIn(stored, view), format, table), format);
}

function shown(
  object: UntypedObject,
  { view, representation, include }: FrameFormat,
  { now, columns }: { readonly now: number; readonly columns: boolean },
): JsonObject {
  const { as, version } = representation;
  if (as === undefined) return object as unknown as JsonObject;
  if (as !== "Table") return partialObject(object, version);
  const { resourceVersion } = object.metadata;
  return table([object], { resourceVersion }, view.version, {
    version,
    include,
    now,
    columns,
  });
}

/** Encodes an event: a line of JSON, or a frame of protobuf. */
function event(
  type: string,
  object: JsonObject,
  { protobuf }: Pick<FrameFormat, "protobuf">,
): Uint8Array {
  return protobuf?.writeWatchEvent(type, object) ??
    encoder.encode(`${writeJson({ type, object })}\n`);
}

/**
 * Encodes a bookmark with a revision, optionally marked as the end of the
 * initial events.
 */
export function bookmarkFrame(
  revision: number,
  format: FrameFormat,
  bookmark: { readonly initialEventsEnd: boolean; readonly now: number },
): Uint8Array {
  const { view } = format;
  const { definition, version } = view;
  const empty = version.empty?.();
  const object: UntypedObject = {
    kind: definition.kind,
    apiVersion: apiVersionIn(view),
    ...empty,
    metadata: {
      name: undefined as unknown as string,
      resourceVersion: String(revision),
      creationTimestamp: null as unknown as string,
      ...(bookmark.initialEventsEnd
        ? { annotations: { "k8s.io/initial-events-end": "true" } }
        : {}),
    },
  };
  const how = { now: bookmark.now, columns: false };
  return event("BOOKMARK", shown(object, format, how), format);
}

/** Encodes the ERROR event that ends a watch. */
export function errorFrame(
  status: Status,
  format: Pick<FrameFormat, "protobuf">,
): Uint8Array {
  return event("ERROR", status as unknown as JsonObject, format);
}
