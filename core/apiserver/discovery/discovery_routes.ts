import { createHash } from "node:crypto";
import type { ApiContext } from "../api_context.ts";
import {
  jsonResponse,
  pageNotFound,
  type ServerRequest,
  type ServerResponse,
} from "../http/exchange.ts";
import { parseAccept } from "../request/negotiation.ts";
import { noSuchPath } from "../status.ts";
import {
  apiGroup,
  apiGroupList,
  apiResourceList,
  groupDiscoveryList,
  servedGroups,
  type ServedVersion,
} from "./discovery.ts";

/**
 * Answers `/api`, `/apis` and what lies below them down to a version; undefined
 * for other paths.
 */
export function discover(
  context: ApiContext,
  request: ServerRequest,
  path: string,
): ServerResponse | undefined {
  const [root, ...parts] = path.split("/").filter((part) => part !== "");
  if (root === "api") return legacyGroup(context, request, parts);
  if (root !== "apis") return undefined;
  const [group, version, ...rest] = parts;
  if (rest.length > 0) return undefined;
  const groups = servedGroups(context.resources);
  if (group === undefined) {
    const aggregated = aggregate(
      request,
      [...groups].filter(([name]) => name !== ""),
    );
    return aggregated ?? jsonResponse(200, apiGroupList(context.resources));
  }
  const versions = group === "" ? undefined : groups.get(group);
  if (versions === undefined || versions.length === 0) return pageNotFound();
  if (version === undefined) {
    const body = apiGroup(group, versions);
    return jsonResponse(200, { kind: "APIGroup", apiVersion: "v1", ...body });
  }
  return versionResponse(context, versions, { group, version });
}

function legacyGroup(
  context: ApiContext,
  request: ServerRequest,
  parts: readonly string[],
): ServerResponse | undefined {
  const [version, ...rest] = parts;
  if (rest.length > 0) return undefined;
  const versions = servedGroups(context.resources).get("") ?? [];
  if (version !== undefined) {
    return versionResponse(context, versions, { group: "", version });
  }
  return aggregate(request, [["", versions]]) ?? jsonResponse(200, {
    kind: "APIVersions",
    versions: versions.map((served) => served.version),
    serverAddressByClientCIDRs: [{
      clientCIDR: "0.0.0.0/0",
      serverAddress: request.headers.host ?? "",
    }],
  });
}

function versionResponse(
  { resources }: ApiContext,
  versions: readonly ServedVersion[],
  { group, version }: { readonly group: string; readonly version: string },
): ServerResponse {
  const served = versions.find((one) => one.version === version);
  if (served) return jsonResponse(200, apiResourceList(served));
  if (resources.isBuiltinGroup(group)) throw noSuchPath();
  return pageNotFound();
}

/** Answers with all groups at once, if the client asks for that first. */
function aggregate(
  request: ServerRequest,
  groups: Iterable<readonly [string, readonly ServedVersion[]]>,
): ServerResponse | undefined {
  const [wanted] = parseAccept(request.headers.accept ?? "").filter((
    { type, parameters },
  ) => type === "application/json" || type === "*/*" || parameters.size > 0);
  const { parameters } = wanted ?? {};
  const version = parameters?.get("v");
  if (
    parameters?.get("g") !== "apidiscovery.k8s.io" ||
    parameters.get("as") !== "APIGroupDiscoveryList" ||
    (version !== "v2" && version !== "v2beta1")
  ) return undefined;
  const body = groupDiscoveryList(groups, `apidiscovery.k8s.io/${version}`);
  const text = JSON.stringify(body);
  const etag = `"${createHash("sha256").update(text).digest("hex")}"`;
  const headers = {
    "content-type":
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    etag,
    vary: "Accept",
  };
  return request.headers["if-none-match"] === etag
    ? { status: 304, headers, body: new Uint8Array() }
    : { status: 200, headers, body: new TextEncoder().encode(`${text}\n`) };
}
