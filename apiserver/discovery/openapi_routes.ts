import { createHash } from "node:crypto";
import type { ApiContext } from "../api_context.ts";
import {
  jsonResponse,
  type ServerRequest,
  type ServerResponse,
} from "../http/exchange.ts";
import { servedGroups, type ServedVersion } from "./discovery_documents.ts";
import {
  OPENAPI_V2_CONTENT_TYPE,
  OPENAPI_V2_PROTOBUF,
  openApiV2,
  openApiV2Protobuf,
  patchPaths,
} from "./openapi_v2.ts";

/** Function that creates the OpenAPI v3 document of one group and version. */
export type OpenApiSource = (served: ServedVersion) => Promise<unknown>;

interface Document {
  readonly bytes: Uint8Array;
  readonly hash: string;
}

const encoder = new TextEncoder();

/**
 * Routes of OpenAPI v3: an index, and a document for each group and version,
 * created on first use and kept until its resources change. OpenAPI v2 is
 * served as far as clients still read it.
 */
export class OpenApiRoutes {
  readonly #context: ApiContext;
  readonly #source: OpenApiSource;
  #documents: Map<string, Promise<Document>> = new Map();
  #generation = 0;

  constructor(context: ApiContext, source: OpenApiSource) {
    this.#context = context;
    this.#source = source;
  }

  /** Handles paths at and below `/openapi`. */
  async respond(
    request: ServerRequest,
    path: string,
  ): Promise<ServerResponse> {
    const versions = this.#versions();
    if (path === "/openapi/v3" || path === "/openapi/v3/") {
      return jsonResponse(200, { paths: await this.#index(versions) });
    }
    if (path === "/openapi/v2") return versionTwo(request, versions);
    const key = path.replace(/^\/openapi\/v3\//, "");
    const served = versions.get(key);
    if (served === undefined) {
      return { status: 404, headers: {}, body: new Uint8Array() };
    }
    const { bytes, hash } = await this.#document(key, served);
    const headers = { "content-type": "application/json", etag: `"${hash}"` };
    return request.headers["if-none-match"] === headers.etag
      ? { status: 304, headers, body: new Uint8Array() }
      : { status: 200, headers, body: bytes };
  }

  #versions(): Map<string, ServedVersion> {
    const versions = new Map<string, ServedVersion>();
    for (const [group, list] of servedGroups(this.#context.resources)) {
      for (const served of list) {
        const root = group === "" ? "api" : `apis/${group}`;
        versions.set(`${root}/${served.version}`, served);
      }
    }
    return versions;
  }

  async #index(
    versions: ReadonlyMap<string, ServedVersion>,
  ): Promise<Record<string, unknown>> {
    const paths: Record<string, unknown> = {};
    for (const [key, served] of versions) {
      const { hash } = await this.#document(key, served);
      paths[key] = { serverRelativeURL: `/openapi/v3/${key}?hash=${hash}` };
    }
    return paths;
  }

  #document(key: string, served: ServedVersion): Promise<Document> {
    const { generation } = this.#context.resources;
    if (generation !== this.#generation) {
      this.#generation = generation;
      // Built-in groups never change; any custom one may have.
      const kept = [...this.#documents].filter(([key]) =>
        this.#context.resources.isBuiltinGroup(key.split("/")[1] ?? "")
      );
      this.#documents = new Map(kept);
    }
    const known = this.#documents.get(key);
    if (known) return known;
    const document = this.#source(served).then((value) => {
      const bytes = encoder.encode(JSON.stringify(value));
      const hash = createHash("sha512").update(bytes).digest("hex")
        .toUpperCase();
      return { bytes, hash };
    });
    this.#documents.set(key, document);
    return document;
  }
}

function versionTwo(
  request: ServerRequest,
  versions: ReadonlyMap<string, ServedVersion>,
): ServerResponse {
  const paths = [...versions].flatMap(([root, served]) =>
    patchPaths(root, served)
  );
  const { accept = "" } = request.headers;
  return accept.includes(OPENAPI_V2_PROTOBUF)
    ? {
      status: 200,
      headers: { "content-type": OPENAPI_V2_CONTENT_TYPE },
      body: openApiV2Protobuf(paths),
    }
    : jsonResponse(200, openApiV2(paths));
}
