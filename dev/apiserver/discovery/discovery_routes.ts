import { createHash } from "node:crypto";
import type { ApiContext } from "../api_context.ts";
import {
  pageNotFound,
  type ServerRequest,
  type ServerResponse,
  taggedResponse,
} from "../http/exchange.ts";
import { respondValue } from "../read/respond.ts";
import {
  contentType,
  type Media,
  notAcceptable,
  parseAccept,
  PROTOBUF,
  type Representation,
  representationFor,
} from "../request/negotiation.ts";
import { noSuchMethod, noSuchPath } from "../status.ts";
import {
  apiGroup,
  apiGroupList,
  apiResourceList,
  groupDiscoveryList,
  servedGroups,
  type ServedVersion,
} from "./discovery_documents.ts";

/**
 * Handles `/api`, `/apis` and paths below them down to a version; returns
 * undefined for other paths.
 */
export async function discover(
  context: ApiContext,
  request: ServerRequest,
  path: string,
): Promise<ServerResponse | undefined> {
  const [root, ...parts] = path.split("/").filter((part) => part !== "");
  if (root === "api") return await legacyGroup(context, request, parts);
  if (root !== "apis") return undefined;
  const [group, version, ...rest] = parts;
  if (rest.length > 0) return undefined;
  const groups = servedGroups(context.resources);
  if (group === undefined) {
    return await respondGroups(request, {
      groups: [...groups].filter(([name]) => name !== ""),
      plain: () => apiGroupList(context.resources),
    });
  }
  const versions = group === "" ? undefined : groups.get(group);
  if (versions === undefined || versions.length === 0) return pageNotFound();
  if (version === undefined) {
    const body = apiGroup(group, versions);
    return await respondPlain(
      request,
      { kind: "APIGroup", apiVersion: "v1", ...body },
    );
  }
  return await versionResponse(context, request, versions, { group, version });
}

async function legacyGroup(
  context: ApiContext,
  request: ServerRequest,
  parts: readonly string[],
): Promise<ServerResponse | undefined> {
  const [version, ...rest] = parts;
  if (rest.length > 0) return undefined;
  const versions = servedGroups(context.resources).get("") ?? [];
  if (version !== undefined) {
    const group = "";
    return await versionResponse(context, request, versions, {
      group,
      version,
    });
  }
  checkReads(request);
  return await respondGroups(request, {
    groups: [["", versions]],
    plain: () => ({
      kind: "APIVersions",
      versions: versions.map((served) => served.version),
      serverAddressByClientCIDRs: [{
        clientCIDR: "0.0.0.0/0",
        serverAddress: request.headers.host ?? "",
      }],
    }),
  });
}

async function versionResponse(
  { resources }: ApiContext,
  request: ServerRequest,
  versions: readonly ServedVersion[],
  { group, version }: { readonly group: string; readonly version: string },
): Promise<ServerResponse> {
  const served = versions.find((one) => one.version === version);
  if (served) {
    if (!served.resources[0]?.definition.custom) checkReads(request);
    return await respondPlain(request, apiResourceList(served));
  }
  if (resources.isBuiltinGroup(group)) throw noSuchPath();
  return pageNotFound();
}

/**
 * Checks that the method is a read; some documents accept any method.
 *
 * @throws {StatusError} 405 for other methods.
 */
export function checkReads({ method }: ServerRequest): void {
  if (method !== "GET") throw noSuchMethod();
}

function respondPlain(
  request: ServerRequest,
  body: object,
): Promise<ServerResponse> {
  return respondGroups(request, { groups: undefined, plain: () => body });
}

/** Responds with a document, or with aggregated discovery if requested. */
async function respondGroups(request: ServerRequest, how: {
  readonly groups:
    | Iterable<readonly [string, readonly ServedVersion[]]>
    | undefined;
  readonly plain: () => object;
}): Promise<ServerResponse> {
  const wanted = choose(request.headers.accept, how.groups !== undefined);
  return "v" in wanted
    ? await aggregated(request, how.groups ?? [], wanted)
    : await respondValue(200, how.plain(), wanted);
}

/** Version and encoding of aggregated discovery. */
interface Aggregated {
  readonly v: "v2" | "v2beta1";
  readonly media: Media;
}

const DISCOVERY = { custom: false, tables: false } as const;

/**
 * Representation that the client prefers: a single document or aggregated
 * discovery.
 */
function choose(
  header: string | undefined,
  aggregated: boolean,
): Representation | Aggregated {
  for (const clause of parseAccept(header || "application/json")) {
    const { type, parameters } = clause;
    const version = parameters.get("v");
    if (
      aggregated && (type === "application/json" || type === PROTOBUF) &&
      parameters.get("as") === "APIGroupDiscoveryList" &&
      parameters.get("g") === "apidiscovery.k8s.io" &&
      (version === "v2" || version === "v2beta1")
    ) return { v: version, media: type === PROTOBUF ? "protobuf" : "json" };
    const plain = representationFor(clause, DISCOVERY);
    if (plain && plain.as === undefined) return plain;
  }
  throw notAcceptable(DISCOVERY);
}

async function aggregated(
  request: ServerRequest,
  groups: Iterable<readonly [string, readonly ServedVersion[]]>,
  { v, media }: Aggregated,
): Promise<ServerResponse> {
  const document = groupDiscoveryList(groups, `apidiscovery.k8s.io/${v}`);
  const { body } = await respondValue(200, document, { media });
  const etag = `"${
    createHash("sha256").update(body as Uint8Array).digest("hex")
  }"`;
  const headers = {
    "content-type": `${
      contentType(media)
    };g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`,
    etag,
    vary: "Accept",
  };
  return taggedResponse(request, headers, body as Uint8Array);
}
