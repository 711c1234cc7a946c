/**
 * Conversion of one object through a chain of versions, which loses nothing: what
 * a version cannot express, and a whole object whose conversion fails, is kept in
 * an annotation until the object is converted back.
 *
 * @module
 */
import type { UntypedObject } from "../api/object.ts";
import type { ConversionStep, DefinedKind } from "../crd/kind_definition.ts";
import { deepFreeze } from "../json/prune.ts";
import { isJsonObject, jsonEquals } from "../patch/json_value.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import { messageWithCause, textWithCause } from "../error_text.ts";
import { type KeptField, lostFields, withKept } from "./kept_fields.ts";
import { plainCopy } from "./plain_copy.ts";
import {
  type Failed,
  FAILED_ANNOTATION,
  isFailed,
  isPlaceholder,
  parsed,
} from "./unconverted.ts";

/** Annotation with the fields that other versions have and this one does not. */
export const KEPT_ANNOTATION = "conversion.coracle.dev/kept";

/** Maximum size of all annotations of an object, in bytes of UTF-8. */
const MOST_ANNOTATION_BYTES = 256 * 1024;

/** Maximum length of the reason in the annotation. */
const LONGEST_REASON = 500;

/** An object that could not be converted. */
export interface FailedConversion {
  readonly object: UntypedObject;
  /** Version that the content has. */
  readonly from: string;
  /** Version that was asked for. */
  readonly to: string;
  readonly reason: string;
}

/** Settings of a conversion. */
export interface ConvertOptions {
  /** Callback for an object that could not be converted. */
  readonly failed?: ((failure: FailedConversion) => void) | undefined;
}

/** Part of an object that conversions may change. */
interface Content {
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly labels?: unknown;
  readonly annotations?: unknown;
}

/** Kept fields by the version that has them. */
type KeptByVersion = Record<string, readonly KeptField[]>;

/** Spec of an object that could not be converted. */
const NO_SPEC = Object.freeze({});
const NO_TAGS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Converts an object of a kind to another of its versions.
 *
 * A function that throws, or returns what an object cannot be, does not fail the
 * conversion: the result has an empty spec, no status, and the whole content with
 * the reason in an annotation, from which converting back restores it.
 *
 * @param object Object as JSON; its spec, status and labels are frozen.
 * @param to Name of the version.
 * @returns A new object, or the same if it has the version.
 * @throws {TypeError} If the kind has not both versions.
 * @throws {RangeError} If what must be kept is too large for an annotation.
 */
export function convertObject(
  kind: DefinedKind,
  object: UntypedObject,
  to: string,
  { failed: report }: ConvertOptions = {},
): UntypedObject {
  const given = versionOf(object);
  if (given === to) return object;
  const { versions } = chainOf(kind);
  for (const version of [given, to]) {
    if (versions.includes(version)) continue;
    throw new TypeError(
      `Cannot convert ${kind.kind} ${object.metadata?.name}: there is no such version: received ${version}`,
    );
  }
  const { labels, annotations = NO_TAGS } = object.metadata;
  const kept = parsed(annotations[KEPT_ANNOTATION], isKept) ?? {};
  const failure = parsed(annotations[FAILED_ANNOTATION], isFailed);
  let content = deepFreeze({
    spec: object.spec,
    status: object.status,
    labels: orNone(labels),
    annotations: orNone(ownAnnotations(annotations)),
  }) as Content;
  let from = given;
  if (
    failure !== undefined && versions.includes(failure.version) &&
    isPlaceholder(content)
  ) {
    const { spec, status } = failure;
    content = plainCopy({ ...content, spec, status });
    from = failure.version;
  }
  const run = { kind, object, kept };
  const start = content;
  for (const step of stepsBetween(kind, from, to)) {
    try {
      content = converted(content, step, run);
    } catch (error) {
      const reason = messageWithCause(error).slice(0, LONGEST_REASON);
      report?.({ object, from, to, reason });
      return placeholder(run, start, { version: from, reason, to });
    }
  }
  return written(run, content, { to });
}

/** Annotations that are not of a conversion. */
function ownAnnotations(
  annotations: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isOwn = !Object.hasOwn(annotations, KEPT_ANNOTATION) &&
    !Object.hasOwn(annotations, FAILED_ANNOTATION);
  if (isOwn) return annotations;
  const { [KEPT_ANNOTATION]: _, [FAILED_ANNOTATION]: __, ...own } = annotations;
  return own;
}

/** Name of the version of an object, such as `v1` of `sample.example.com/v1`. */
export function versionOf({ apiVersion = "" }: UntypedObject): string {
  return apiVersion.slice(apiVersion.lastIndexOf("/") + 1);
}

/** Versions of a kind, oldest first, with the functions between neighbours. */
function chainOf(
  kind: DefinedKind,
): NonNullable<DefinedKind["conversion"]> {
  return kind.conversion ??
    { versions: kind.versions.map(({ name }) => name), steps: [] };
}

/** A step of a chain, in the direction of a conversion. */
interface DirectedStep {
  readonly from: string;
  readonly to: string;
  /** Functions there and back; undefined if both versions are alike. */
  readonly there: ((object: never) => unknown) | undefined;
  readonly back: ((object: never) => unknown) | undefined;
  /** Names of the functions, for reasons. */
  readonly names: readonly [there: string, back: string];
}

function stepsBetween(
  kind: DefinedKind,
  from: string,
  to: string,
): readonly DirectedStep[] {
  const { versions, steps } = chainOf(kind);
  const [first, last] = [versions.indexOf(from), versions.indexOf(to)];
  const isUp = first < last;
  const found: DirectedStep[] = [];
  for (let at = Math.min(first, last); at < Math.max(first, last); at++) {
    const [low = "", high = ""] = [versions[at], versions[at + 1]];
    const step: ConversionStep | undefined = steps[at];
    const names = [`up of ${low}`, `down of ${low}`] as const;
    found.push(
      isUp
        ? { from: low, to: high, there: step?.up, back: step?.down, names }
        : {
          from: high,
          to: low,
          there: step?.down,
          back: step?.up,
          names: [names[1], names[0]],
        },
    );
  }
  return isUp ? found : found.reverse();
}

interface Run {
  readonly kind: DefinedKind;
  readonly object: UntypedObject;
  /** Kept fields, which the steps take out and add to. */
  readonly kept: KeptByVersion;
}

/** Content after a step, with what was kept of it; keeps what the step loses. */
function converted(
  content: Content,
  { from, to, there, back, names }: DirectedStep,
  run: Run,
): Content {
  const { kept } = run;
  const call = (use: DirectedStep["there"], given: Content, name: string) =>
    use === undefined ? given : resultOf(use, given, { name, run });
  let result = call(there, content, names[0]);
  const fields = kept[to];
  if (fields !== undefined) {
    delete kept[to];
    result = deepFreeze(withKept(result, fields)) as Content;
  }
  if (there === undefined) return result;
  const returned = call(back, result, names[1]);
  const lost = lostFields(content, returned, contentSchema(run.kind, from));
  if (lost.length > 0) kept[from] = lost;
  return result;
}

/** Schema of the content of a version. */
function contentSchema(
  { versions }: DefinedKind,
  name: string,
): OpenApiSchema | undefined {
  return versions.find((version) => version.name === name)?.schema
    ?.openAPIV3Schema;
}

/** Fields that the result of a conversion may have. */
const RESULT_FIELDS: readonly string[] = [
  "apiVersion",
  "kind",
  "metadata",
  "spec",
  "status",
];

/**
 * Calls a function of a kind, and checks its result.
 *
 * @throws {Error} If it throws or the result is not one of a conversion.
 */
function resultOf(
  use: (object: never) => unknown,
  { spec, status, labels, annotations }: Content,
  { name, run: { object, kind } }: {
    readonly name: string;
    readonly run: Run;
  },
): Content {
  const metadata = Object.freeze({
    ...object.metadata,
    labels: labels ?? Object.freeze({}),
    annotations: annotations ?? Object.freeze({}),
  });
  const given = {
    kind: kind.kind,
    metadata,
    spec,
    ...status !== undefined && { status },
  };
  let result: unknown;
  try {
    result = use(Object.freeze(given) as never);
  } catch (error) {
    throw new Error(`${name} has thrown ${textWithCause(error)}`);
  }
  if (!isJsonObject(result) || !isJsonObject(result.spec)) {
    throw new Error(
      `${name} must return an object with a spec, and no promise`,
    );
  }
  const odd = Object.keys(result).find((key) => !RESULT_FIELDS.includes(key));
  if (odd !== undefined) {
    throw new Error(
      `${name} has returned "${odd}", which is no field of ${kind.kind}`,
    );
  }
  const tags = result.metadata === undefined || result.metadata === metadata
    ? { labels, annotations }
    : tagsOf(result.metadata, metadata, name);
  const next: Content = {
    ...tags,
    spec: result.spec,
    status: Object.hasOwn(result, "status") ? result.status : status,
  };
  try {
    return plainCopy(next);
  } catch (error) {
    throw new Error(`${name} has returned ${(error as Error).message}`);
  }
}

/** Labels and annotations of a result; nothing else of the metadata can change. */
function tagsOf(
  metadata: unknown,
  before: Readonly<Record<string, unknown>>,
  name: string,
): Pick<Content, "labels" | "annotations"> {
  if (!isJsonObject(metadata)) {
    throw new Error(`${name} has returned no metadata`);
  }
  for (const [field, value] of Object.entries(metadata)) {
    if (field === "labels" || field === "annotations") {
      const texts = isJsonObject(value) ? Object.values(value) : [value];
      if (
        value !== undefined && texts.some((text) => typeof text !== "string")
      ) throw new Error(`${name} has returned ${field} that are no texts`);
    } else if (value !== undefined && !jsonEquals(value, before[field])) {
      throw new Error(
        `${name} has changed metadata.${field}: only labels and annotations can change`,
      );
    }
  }
  const { labels = before.labels, annotations = before.annotations } = metadata;
  return { labels: orNone(labels), annotations: orNone(annotations) };
}

/** Labels or annotations; undefined if there are none. */
function orNone(tags: unknown): unknown {
  return isJsonObject(tags) && Object.keys(tags).length > 0 ? tags : undefined;
}

/** Object in the place of one that could not be converted. */
function placeholder(
  run: Run,
  { spec, status, ...tags }: Content,
  { version, reason, to }: {
    readonly version: string;
    readonly reason: string;
    readonly to: string;
  },
): UntypedObject {
  const failed: Failed = { version, reason, spec, status };
  // What the steps before the failed one have kept belongs to the result only.
  const kept = parsed(
    run.object.metadata.annotations?.[KEPT_ANNOTATION],
    isKept,
  );
  return written({ ...run, kept: kept ?? {} }, { ...tags, spec: NO_SPEC }, {
    to,
    failed,
  });
}

/** Object of a content, with its annotations. */
function written(
  { kind, object, kept }: Run,
  { spec, status, labels, annotations }: Content,
  { to, failed }: { readonly to: string; readonly failed?: Failed },
): UntypedObject {
  const all: Record<string, string> = {
    ...annotations as Record<string, string>,
  };
  if (Object.keys(kept).length > 0) all[KEPT_ANNOTATION] = JSON.stringify(kept);
  if (failed !== undefined) all[FAILED_ANNOTATION] = JSON.stringify(failed);
  checkSize(object, all);
  const metadata = { ...object.metadata };
  setTags(metadata, "labels", labels as Record<string, string> | undefined);
  setTags(
    metadata,
    "annotations",
    Object.keys(all).length > 0 ? all : undefined,
  );
  return {
    ...object,
    apiVersion: `${kind.group}/${to}`,
    kind: kind.kind,
    metadata,
    spec,
    status,
  };
}

function setTags(
  metadata: UntypedObject["metadata"],
  field: "labels" | "annotations",
  tags: Record<string, string> | undefined,
): void {
  if (tags !== undefined) metadata[field] = tags;
  else if (metadata[field] !== undefined) delete metadata[field];
}

/** Checks that a server takes the annotations, which are part of the object. */
function checkSize(
  { metadata: { name } }: UntypedObject,
  annotations: Readonly<Record<string, string>>,
): void {
  let characters = 0;
  for (const [key, text] of Object.entries(annotations)) {
    characters += key.length + text.length;
  }
  // A character has up to 3 bytes: most objects need no encoding.
  if (characters * 3 <= MOST_ANNOTATION_BYTES) return;
  const bytes = new TextEncoder().encode(
    Object.entries(annotations).flat().join(""),
  ).length;
  if (bytes <= MOST_ANNOTATION_BYTES) return;
  throw new RangeError(
    `Cannot convert ${name}: what the version cannot express does not fit into its annotations: received ${bytes} bytes for at most ${MOST_ANNOTATION_BYTES}`,
  );
}

function isKept(value: unknown): value is KeptByVersion {
  return isJsonObject(value) &&
    Object.values(value).every((fields) =>
      Array.isArray(fields) &&
      fields.every((field) =>
        isJsonObject(field) && Array.isArray(field.path) &&
        field.path.every((step) =>
          typeof step === "string" || isJsonObject(step)
        ) &&
        (field.items === undefined || Array.isArray(field.items) &&
            field.items.every((pair) => Array.isArray(pair)))
      )
    );
}
