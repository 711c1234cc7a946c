import { StatusError } from "../status.ts";

/** How an answer is written. */
export interface Representation {
  readonly media: "json" | "yaml";
  /** What objects are turned into; undefined for themselves. */
  readonly as: Transform | undefined;
  /** The version of meta.k8s.io that `as` speaks. */
  readonly version: "v1" | "v1beta1";
}

/** What an object or list can be turned into. */
export type Transform =
  | "Table"
  | "PartialObjectMetadata"
  | "PartialObjectMetadataList";

const TRANSFORMS: ReadonlySet<string> = new Set([
  "Table",
  "PartialObjectMetadata",
  "PartialObjectMetadataList",
]);

/** The representation of answers to requests that do not ask for one. */
export const PLAIN_JSON: Representation = {
  media: "json",
  as: undefined,
  version: "v1",
};

/** What kube-apiserver says it can produce; protobuf is not produced here. */
const MEDIA_TYPES =
  "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/** One part of an Accept header. */
export interface AcceptClause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** Reads an Accept header; the most wanted first, else in the order given. */
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
 * Chooses how to answer.
 *
 * @param header The Accept header.
 * @param custom Whether the resource is a custom one: the router of built-in
 * ones looks at the header first, and is stricter.
 * @throws {StatusError} 406 if nothing that is wanted can be given.
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

/** The form of a Status: as wanted, else JSON. */
export function failureMedia(header: string | undefined): "json" | "yaml" {
  if (header === undefined || !header.includes("yaml")) return "json";
  for (const clause of parseAccept(header)) {
    const chosen = representationFor(clause);
    if (chosen) return chosen.media;
  }
  return "json";
}

/** 406: nothing that is wanted can be given. */
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

/** What is answered to one part of an Accept header; undefined if nothing is. */
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
