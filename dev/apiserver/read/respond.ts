import { Buffer } from "node:buffer";
import type { UntypedObject } from "@coracle/operator/client";
import { type JsonObject, loadModule } from "@coracle/operator/internal";
import { jsonResponse, type ServerResponse } from "../http/exchange.ts";
import {
  contentType,
  type Endpoint,
  negotiate,
  type Representation,
} from "../request/negotiation.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { settle } from "../settle.ts";
import { bytesIn, objectIn } from "../storage/object_view.ts";
import {
  objectIsNoList,
  partialObject,
  readIncludeObject,
  table,
  type TableShape,
} from "./transform.ts";

/** Representation that a request accepts. */
export function representationOf(
  request: ResourceRequest,
  endpoint: Omit<Endpoint, "custom"> = {},
): Representation {
  const { custom } = request.definition;
  return negotiate(request.http.headers.accept, { custom, ...endpoint });
}

const encoder = new TextEncoder();
const NEWLINE = 0x0a;

/** Appends a line break to JSON, as in kube-apiserver's responses. */
function withNewline(bytes: Uint8Array): Uint8Array {
  // From Node's pool, since a response is short-lived.
  const line = Buffer.allocUnsafe(bytes.length + 1);
  line.set(bytes);
  line[bytes.length] = NEWLINE;
  return line;
}

/** Protobuf writer; loaded when a client first requests protobuf. */
let protobufWriter: typeof import("../builtin/protobuf_writer.ts") | undefined;

/** Responds with a stored object in the requested representation. */
export async function respondStored(
  request: ResourceRequest,
  stored: StoredObject,
  how: { readonly status: number; readonly representation: Representation },
): Promise<ServerResponse> {
  const { status, representation } = how;
  if (representation.as === undefined && representation.media === "json") {
    return {
      status,
      headers: { "content-type": "application/json" },
      body: withNewline(await settle(() => bytesIn(stored, request))),
    };
  }
  const object = await settle(() => objectIn(stored, request));
  return await respondObject(request, object, how);
}

/** Responds with an object in the requested representation. */
export async function respondObject(
  request: ResourceRequest,
  object: UntypedObject,
  how: {
    readonly status: number;
    readonly representation: Representation;
    /** Columns of the Table; by default those of the resource. */
    readonly shape?: TableShape | undefined;
  },
): Promise<ServerResponse> {
  const { status, representation, shape = request.version } = how;
  const { as, version } = representation;
  if (as === "PartialObjectMetadataList") {
    throw objectIsNoList(request, object);
  }
  const value = as === undefined
    ? object
    : as === "PartialObjectMetadata"
    ? partialObject(object, version)
    : table(
      [object],
      { resourceVersion: object.metadata.resourceVersion },
      shape,
      {
        version,
        columns: true,
        include: readIncludeObject(request.query.get("includeObject")),
        now: request.context.clock.wallTime(),
      },
    );
  return await respondValue(status, value, representation);
}

/**
 * YAML options that match Go's output: sorted keys, quoted time-like strings,
 * no anchors.
 */
const YAML_OPTIONS = {
  version: "1.1",
  indentSeq: false,
  sortMapEntries: true,
  aliasDuplicateObjects: false,
  lineWidth: 0,
} as const;

/** Responds with a JSON value, as JSON, YAML or protobuf. */
export async function respondValue(
  status: number,
  value: object,
  { media }: Pick<Representation, "media">,
): Promise<ServerResponse> {
  if (media === "json") return jsonResponse(status, value);
  const headers = { "content-type": contentType(media) };
  if (media === "protobuf") {
    const { writeProtobuf } = protobufWriter ??= await loadModule(
      import("../builtin/protobuf_writer.ts"),
    );
    return { status, headers, body: writeProtobuf(value as JsonObject) };
  }
  const { stringify } = await loadModule(import("yaml"));
  const body = encoder.encode(stringify(value, YAML_OPTIONS));
  return { status, headers, body };
}

/** Responds to a create that stores no object. */
export async function respondCreated(
  request: ResourceRequest,
): Promise<ServerResponse> {
  return await respondValue(201, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 201,
  }, representationOf(request));
}
