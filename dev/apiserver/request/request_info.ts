/** Parsed path: resource, object and subresource. */
export interface RequestInfo {
  /** Decoded path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /**
   * Resource; undefined for paths without group and version, such as
   * `/healthz`.
   */
  readonly resource?: ResourcePath | undefined;
}

/** Parts of `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME/SUB`. */
export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** Whether the path is deprecated, with `/watch/` after the version. */
  readonly watch: boolean;
  /** Segments after the subresource, where nothing is served. */
  readonly rest: readonly string[];
}

/**
 * Subresources of namespaces; any other segment names a resource in the
 * namespace.
 */
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);

/**
 * Parses the target of a request, like kube-apiserver's RequestInfoFactory.
 *
 * @returns Undefined if the path is not properly encoded.
 */
export function readTarget(target: string): RequestInfo | undefined {
  const mark = target.indexOf("?");
  const encoded = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1));
  let path: string;
  try {
    // Go decodes the path before it is split, so that %2F is a slash.
    path = decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
  return { path, query, resource: readResource(path) };
}

function readResource(path: string): ResourcePath | undefined {
  const segments = path.split("/").filter((part, index, all) =>
    // Leading and trailing slashes are ignored; empty parts between are kept
    // and name nothing.
    part !== "" || (index > 0 && index < all.length - 1)
  );
  const [root, ...parts] = segments;
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "apis" ? parts.shift() : "";
  const version = parts.shift();
  if (group === undefined || version === undefined || parts.length === 0) {
    return undefined;
  }
  const watch = parts[0] === "watch" && parts.length > 1;
  if (watch) parts.shift();
  let namespace: string | undefined;
  if (
    parts[0] === "namespaces" && parts.length > 2 &&
    !(parts.length === 3 && NAMESPACE_SUBRESOURCES.has(parts[2] as string))
  ) {
    // As in Go, an empty namespace counts as absent.
    namespace = parts[1] || undefined;
    parts.splice(0, 2);
  }
  const [plural = "", name, subresource, ...rest] = parts;
  return { group, version, namespace, plural, name, subresource, watch, rest };
}

/** RBAC verb of a request. */
export function verbOf(method: string, info: RequestInfo): string {
  const { resource, query } = info;
  if (resource === undefined) return method.toLowerCase();
  // As in kube-apiserver, the path decides and not the method.
  if (resource.watch) return "watch";
  const collection = resource.name === undefined || resource.name === "";
  switch (method) {
    case "GET":
    case "HEAD": {
      const watching = query.get("watch");
      if (
        collection && watching !== null && watching !== "0" &&
        watching.toLowerCase() !== "false"
      ) return "watch";
      return collection ? "list" : "get";
    }
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return collection ? "deletecollection" : "delete";
    default:
      return "";
  }
}
