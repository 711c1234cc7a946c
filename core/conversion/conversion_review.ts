import type { UntypedObject } from "../api/object.ts";
import { typeText } from "../api/options.ts";
import { nextTurn } from "../clock.ts";
import type { DefinedKind } from "../crd/kind_definition.ts";
import { messageWithCause, shortText } from "../error_text.ts";
import { isJsonObject } from "../patch/json_value.ts";
import { convertObject, type ConvertOptions } from "./convert_object.ts";

/** Objects that are converted before other work of the process has its turn. */
const OBJECTS_PER_TURN = 100;

/** Maximum length of a UID, in characters. */
const MAX_UID = 256;

/** Maximum length of the reason of a failure, in characters. */
const MAX_TEXT = 500;

/** Answer of a conversion webhook, for `apiextensions.k8s.io/v1`. */
export interface ConversionAnswer {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "ConversionReview";
  readonly response: {
    readonly uid: string;
    readonly result: {
      readonly status: "Success" | "Failure";
      readonly message?: string | undefined;
    };
    readonly convertedObjects?: readonly UntypedObject[] | undefined;
  };
}

/** Handler of the ConversionReviews of an API server. */
export type ConversionHandler = (
  review: unknown,
  signal?: AbortSignal,
) => Promise<ConversionAnswer>;

/**
 * Returns a handler that converts the objects of reviews by the functions of
 * their kinds. A list of any length is converted in one review, and reviews at
 * the same time take turns. An object whose conversion fails does not fail the
 * others: an API server would refuse the whole list or watch.
 *
 * @param kinds Kinds with `versions` that have functions.
 */
export function conversionHandler(
  kinds: readonly DefinedKind[],
  options: ConvertOptions = {},
): ConversionHandler {
  const known = new Map(
    kinds.map((kind) => [keyOf(kind.group, kind.kind), kind]),
  );
  return async (review, signal) => {
    const uid = uidOf(review);
    try {
      const { objects, version, group } = requestOf(review);
      const converted: UntypedObject[] = [];
      for (const [index, object] of objects.entries()) {
        if (index % OBJECTS_PER_TURN === OBJECTS_PER_TURN - 1) await nextTurn();
        signal?.throwIfAborted();
        const kind = known.get(keyOf(group, object.kind ?? ""));
        if (kind === undefined) {
          throw new TypeError(
            `Cannot convert ${object.metadata.name}: this operator has no conversion for its kind: received ${object.apiVersion} ${object.kind}`,
          );
        }
        converted.push(convertObject(kind, object, version, options));
      }
      return answer(uid, {
        result: { status: "Success" },
        convertedObjects: converted,
      });
    } catch (error) {
      const message = shortText(messageWithCause(error), MAX_TEXT);
      return answer(uid, { result: { status: "Failure", message } });
    }
  };
}

function answer(
  uid: string,
  response: Omit<ConversionAnswer["response"], "uid">,
): ConversionAnswer {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    response: { uid, ...response },
  };
}

function keyOf(group: string, kind: string): string {
  return `${kind}.${group}`;
}

function uidOf(review: unknown): string {
  const request = isJsonObject(review) ? review.request : undefined;
  const uid = isJsonObject(request) ? request.uid : undefined;
  return typeof uid === "string" && uid.length <= MAX_UID ? uid : "";
}

interface ConversionRequest {
  readonly objects: readonly UntypedObject[];
  readonly group: string;
  readonly version: string;
}

/**
 * Reads a review.
 *
 * @throws {TypeError} If it is not a review of `apiextensions.k8s.io/v1`.
 */
function requestOf(review: unknown): ConversionRequest {
  const problem = (why: string, received: unknown) =>
    new TypeError(
      `Cannot convert objects: ${why}: received ${
        typeof received === "string" ? received : typeText(received)
      }`,
    );
  if (
    !isJsonObject(review) || review.kind !== "ConversionReview" ||
    review.apiVersion !== "apiextensions.k8s.io/v1"
  ) {
    const received = isJsonObject(review)
      ? `${review.apiVersion} ${review.kind}`
      : review;
    throw problem(
      "the body must be a ConversionReview of apiextensions.k8s.io/v1",
      received,
    );
  }
  const { request } = review;
  if (!isJsonObject(request)) throw problem("it has no request", request);
  const { uid, desiredAPIVersion, objects } = request;
  if (uidOf(review) === "") {
    throw problem(`it has no uid of up to ${MAX_UID} characters`, uid);
  }
  const [group = "", version = "", more] = String(desiredAPIVersion).split("/");
  if (version === "" || more !== undefined) {
    throw problem("'desiredAPIVersion' has no version", desiredAPIVersion);
  }
  if (!Array.isArray(objects)) throw problem("it has no objects", objects);
  for (const object of objects) {
    if (!isObject(object)) throw problem("an object has no metadata", object);
  }
  return { objects, group, version };
}

function isObject(value: unknown): value is UntypedObject {
  if (!isJsonObject(value) || typeof value.apiVersion !== "string") {
    return false;
  }
  const { metadata } = value;
  if (!isJsonObject(metadata)) return false;
  const { annotations = {}, labels = {} } = metadata;
  return isJsonObject(annotations) && isJsonObject(labels);
}
