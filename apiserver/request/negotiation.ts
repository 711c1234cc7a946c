import { StatusError } from "../status.ts";

/** Representation of an answer, by content negotiation. */
export interface Representation {
  readonly media: "json" | "yaml";
  /** Kind that objects are converted to; undefined for no conversion. */
  readonly as: Transform | undefined;
  /** Version of meta.k8s.io of `as`. */
  readonly version: "v1" | "v1beta1";
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

/** Default representation. */
export const PLAIN_JSON: Representation = {
  media: "json",
  as: undefined,
  version: "v1",
};

/**
 * Media types of kube-apiserver's error messages; protobuf is not produced
 * here.
 */
const MEDIA_TYPES =
  "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/** Clause of an Accept header. */
export interface AcceptClause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** Parses an Accept header; clauses are ordered by quality, then as written. */
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
 * Chooses the representation of an answer.
 *
 * @param header The Accept header.
 * @param custom Whether the resource is a custom one; the router of built-in
 * resources checks the header earlier and more strictly.
 * @throws {StatusError} 406 if no clause is acceptable.
 */
export function negotiate(
  header: string | undefined,
  custom: boolean,
): Representation {
  if (header === undefined || header === "" || header === "application/json") {
    return PLAIN_JSON;
  }
  if (!custom && !passesRouter(header)) {
    throw new StatusError({
      code: 406,
      reason: "NotAcceptable",
      message:
        `406: Not Acceptable\n\nAvailable representations: ${MEDIA_TYPES}`,
      details: {},
    });
  }
  for (const clause of parseAccept(header)) {
    const chosen = representationFor(clause);
    if (chosen) return chosen;
  }
  throw notAcceptable();
}

/** Encoding of a Status: the accepted one, else JSON. */
export function failureMedia(header: string | undefined): "json" | "yaml" {
  if (header === undefined || !header.includes("yaml")) return "json";
  for (const clause of parseAccept(header)) {
    const chosen = representationFor(clause);
    if (chosen) return chosen.media;
  }
  return "json";
}

/** Error 406: no clause is acceptable. */
export function notAcceptable(): StatusError {
  return new StatusError({
    code: 406,
    reason: "NotAcceptable",
    message: `only the following media types are accepted: ${MEDIA_TYPES}`,
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
): Representation | undefined {
  const media = type === "application/yaml" ? "yaml" : "json";
  if (
    media === "json" && type !== "application/json" &&
    type !== "application/*" && type !== "*/*"
  ) return undefined;
  const charset = parameters.get("charset");
  if (charset && charset.toLowerCase() !== "utf-8") return undefined;
  const as = parameters.get("as");
  if (as === undefined) {
    return media === "json" ? PLAIN_JSON : { ...PLAIN_JSON, media };
  }
  const version = parameters.get("v");
  if (
    !TRANSFORMS.has(as) || parameters.get("g") !== "meta.k8s.io" ||
    (version !== "v1" && version !== "v1beta1")
  ) return undefined;
  return { media, as: as as Transform, version };
}
