import { StatusError } from "../status.ts";

/** Representation of a response, chosen by content negotiation. */
export interface Representation {
  readonly media: Media;
  /** Kind that objects are converted to; undefined for no conversion. */
  readonly as: Transform | undefined;
  /** Version of the kind `as` in the group meta.k8s.io. */
  readonly version: "v1" | "v1beta1";
}

/** Encoding of a response. */
export type Media = "json" | "yaml" | "protobuf";

/** Representations that an endpoint supports. */
export interface Endpoint {
  /**
   * Whether the resource is custom, and so has no form in protobuf; the router
   * of built-in resources checks the header earlier and more strictly.
   */
  readonly custom: boolean;
  /**
   * Whether the endpoint supports Tables.
   *
   * @default {true}
   */
  readonly tables?: boolean | undefined;
  /**
   * Whether the response is a watch, which has no form in YAML.
   *
   * @default {false}
   */
  readonly watch?: boolean | undefined;
}

/** Kind that an object or list can be converted to. */
export type Transform =
  | "Table"
  | "PartialObjectMetadata"
  | "PartialObjectMetadataList";

const TRANSFORMS: ReadonlySet<string> = new Set([
  "Table",
  "PartialObjectMetadata",
  "PartialObjectMetadataList",
]);

/** Default representation: plain JSON. */
const PLAIN_JSON: Representation = {
  media: "json",
  as: undefined,
  version: "v1",
};

/** Media type of Kubernetes' protobuf, which kubectl and client-go ask for. */
export const PROTOBUF = "application/vnd.kubernetes.protobuf";

const ENCODINGS: ReadonlyMap<string, Media> = new Map<string, Media>([
  ["application/json", "json"],
  ["application/yaml", "yaml"],
  [PROTOBUF, "protobuf"],
  ["application/*", "json"],
  ["*/*", "json"],
]);

/** Media types of kube-apiserver's error messages. */
const MEDIA_TYPES = `application/json, application/yaml, ${PROTOBUF}`;
const WATCH_TYPES = `application/json;stream=watch, ${PROTOBUF};stream=watch`;

/** Value of the Content-Type header of an encoding. */
export function contentType(media: Media): string {
  return media === "protobuf" ? PROTOBUF : `application/${media}`;
}

/** Clause of an Accept header. */
export interface AcceptClause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** Parses an Accept header; clauses are sorted by quality, then in their order in the header. */
export function parseAccept(header: string): AcceptClause[] {
  return header.split(",").map((part) => {
    const [type = "", ...rest] = part.split(";").map((text) => text.trim());
    const parameters = new Map<string, string>();
    for (const text of rest) {
      const equals = text.indexOf("=");
      if (equals > 0) {
        parameters.set(text.slice(0, equals), text.slice(equals + 1));
      }
    }
    const quality = Number(parameters.get("q") ?? 1);
    return { type, parameters, quality: Number.isNaN(quality) ? 1 : quality };
  }).filter(({ type }) => type !== "")
    .sort((a, b) => b.quality - a.quality);
}

/**
 * Chooses the representation of a response.
 *
 * @param header The Accept header.
 * @param endpoint Representations of the endpoint.
 * @throws {StatusError} 406 if no clause is acceptable.
 */
export function negotiate(
  header: string | undefined,
  endpoint: Endpoint,
): Representation {
  if (header === undefined || header === "" || header === "application/json") {
    return PLAIN_JSON;
  }
  if (!endpoint.custom && !passesRouter(header)) {
    throw new StatusError({
      code: 406,
      reason: "NotAcceptable",
      message:
        `406: Not Acceptable\n\nAvailable representations: ${MEDIA_TYPES}`,
      details: {},
    });
  }
  for (const clause of parseAccept(header)) {
    const chosen = representationFor(clause, endpoint);
    if (chosen) return chosen;
  }
  throw notAcceptable(endpoint);
}

/** Encoding of a Status: the accepted encoding, or else JSON. */
export function failureMedia(header: string | undefined): Media {
  if (header === undefined || !/yaml|protobuf/.test(header)) return "json";
  for (const clause of parseAccept(header)) {
    const chosen = representationFor(clause, { custom: false });
    if (chosen) return chosen.media;
  }
  return "json";
}

/** Error 406: no clause is acceptable. */
export function notAcceptable({ watch }: Endpoint): StatusError {
  return new StatusError({
    code: 406,
    reason: "NotAcceptable",
    message: `only the following media types are accepted: ${
      watch ? WATCH_TYPES : MEDIA_TYPES
    }`,
  });
}

function passesRouter(header: string): boolean {
  return header.split(",").some((part) => {
    const type = part.split(";")[0]?.trim() ?? "";
    return type === "*/*" || MEDIA_TYPES.split(", ").includes(type);
  });
}

/**
 * Representation for one clause of an Accept header; undefined if unsupported.
 */
export function representationFor(
  { type, parameters }: AcceptClause,
  { custom, tables = true, watch = false }: Endpoint,
): Representation | undefined {
  const media = ENCODINGS.get(type);
  if (media === undefined || (watch && media === "yaml")) return undefined;
  const charset = parameters.get("charset");
  if (charset && charset.toLowerCase() !== "utf-8") return undefined;
  const as = parameters.get("as");
  if (as === undefined) {
    if (custom && media === "protobuf") return undefined;
    return media === "json" ? PLAIN_JSON : { ...PLAIN_JSON, media };
  }
  const version = parameters.get("v");
  if (as === "Table" && (!tables || media === "protobuf")) return undefined;
  if (
    !TRANSFORMS.has(as) || parameters.get("g") !== "meta.k8s.io" ||
    (version !== "v1" && version !== "v1beta1")
  ) return undefined;
  return { media, as: as as Transform, version };
}
