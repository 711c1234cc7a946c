import { loadModule } from "@coracle/operator/internal";
import { createHash } from "node:crypto";
import type { ApiContext } from "../api_context.ts";
import {
  jsonResponse,
  type ServerRequest,
  type ServerResponse,
  taggedResponse,
} from "../http/exchange.ts";
import type { KubernetesRelease } from "../kubernetes_release.ts";
import { parseAccept } from "../request/negotiation.ts";
import { servedGroups, type ServedVersion } from "./discovery_documents.ts";
import { readJson, writeJson } from "../exact_json.ts";

interface Document {
  readonly bytes: Uint8Array;
  readonly hash: string;
}

/** OpenAPI v2 document in both encodings; protobuf is encoded on first use. */
interface DocumentTwo extends Document {
  readonly generation: number;
  readonly protobuf: () => Promise<Uint8Array>;
}

/** Media type with which Go clients request OpenAPI v2 as protobuf. */
const SWAGGER_PROTOBUF =
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/** Content type of OpenAPI v2 as protobuf; the requested name is not a valid media type. */
const SWAGGER_CONTENT_TYPE = SWAGGER_PROTOBUF.replace("@", ".");

const encoder = new TextEncoder();

/**
 * Routes of OpenAPI: an index and a document per group and version in version
 * 3, one document in version 2. Documents are created on first use and kept
 * until their resources change.
 */
export class OpenApiRoutes {
  readonly #context: ApiContext;
  #documents: Map<string, Promise<Document>> = new Map();
  #generation = 0;
  #two: Promise<DocumentTwo> | undefined;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Handles paths at and below `/openapi`. */
  async respond(request: ServerRequest, path: string): Promise<ServerResponse> {
    const versions = this.#versions();
    if (path === "/openapi/v3" || path === "/openapi/v3/") {
      return jsonResponse(200, { paths: await this.#index(versions) });
    }
    if (path === "/openapi/v2") {
      return await this.#versionTwo(request, versions);
    }
    const key = path.replace(/^\/openapi\/v3\//, "");
    const served = versions.get(key);
    if (served === undefined) {
      return { status: 404, headers: {}, body: new Uint8Array() };
    }
    const { bytes, hash } = await this.#document(key, served);
    const headers = { "content-type": "application/json", etag: `"${hash}"` };
    return taggedResponse(request, headers, bytes);
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

  async #versionTwo(
    request: ServerRequest,
    versions: ReadonlyMap<string, ServedVersion>,
  ): Promise<ServerResponse> {
    const { accept = "" } = request.headers;
    const vary = "Accept-Encoding, Accept";
    const type = parseAccept(accept || "*/*").map(({ type }) => type).find((
      type,
    ) => SWAGGER_TYPES.has(type));
    if (type === undefined) {
      return { status: 406, headers: { vary }, body: new Uint8Array() };
    }
    const { generation } = this.#context.resources;
    if ((await this.#two)?.generation !== generation) {
      this.#two = documentTwo(versions, {
        generation,
        release: this.#context.release,
      });
    }
    const document = await this.#two as DocumentTwo;
    const media = SWAGGER_TYPES.get(type) as string;
    const etag = `"${document.hash}"`;
    return taggedResponse(
      request,
      { "content-type": media, etag, vary },
      media === SWAGGER_CONTENT_TYPE
        ? await document.protobuf()
        : document.bytes,
    );
  }

  #document(key: string, served: ServedVersion): Promise<Document> {
    const { generation } = this.#context.resources;
    if (generation !== this.#generation) {
      this.#generation = generation;
      // Built-in groups never change; any custom group may have changed.
      const kept = [...this.#documents].filter(([key]) =>
        this.#context.resources.isBuiltinGroup(key.split("/")[1] ?? "")
      );
      this.#documents = new Map(kept);
    }
    const known = this.#documents.get(key);
    if (known) return known;
    const document = loadModule(import("./openapi_v3.ts"))
      .then(({ openApiV3 }) =>
        documentOf(openApiV3(served, this.#context.release))
      );
    this.#documents.set(key, document);
    return document;
  }
}

const SWAGGER_TYPES: ReadonlyMap<string, string> = new Map([
  ["application/json", "application/json"],
  ["application/*", "application/json"],
  ["*/*", "application/json"],
  [SWAGGER_PROTOBUF, SWAGGER_CONTENT_TYPE],
  [SWAGGER_CONTENT_TYPE, SWAGGER_CONTENT_TYPE],
]);

function documentOf(value: unknown): Document {
  const bytes = encoder.encode(writeJson(value));
  const hash = createHash("sha512").update(bytes).digest("hex").toUpperCase();
  return { bytes, hash };
}

async function documentTwo(
  versions: ReadonlyMap<string, ServedVersion>,
  { generation, release }: {
    readonly generation: number;
    readonly release: KubernetesRelease;
  },
): Promise<DocumentTwo> {
  const { openApiV2 } = await loadModule(import("./openapi_v2.ts"));
  const { bytes, hash } = documentOf(openApiV2(versions, release));
  let encoded: Promise<Uint8Array> | undefined;
  const encode = async () => {
    const { openApiV2Protobuf } = await loadModule(
      import("./openapi_v2_protobuf.ts"),
    );
    const document = readJson(new TextDecoder().decode(bytes));
    return openApiV2Protobuf(document as Readonly<Record<string, unknown>>);
  };
  return { bytes, hash, generation, protobuf: () => encoded ??= encode() };
}
