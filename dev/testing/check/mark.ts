/**
 * Mark that another writer puts on an object of an operator: an annotation and a
 * label, as tools and people add them, which must stay there.
 *
 * @module
 */
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import { metadataOf } from "./state.ts";

const NAME = "check.coracle.dev/mark";
const PLACES = ["annotations", "labels"] as const;
/** Value of the annotation and of the label. */
const VALUE = "kept";

/** Merge patch of `metadata` that puts the mark on an object. */
export const MARK: JsonObject = Object.fromEntries(
  PLACES.map((place) => [place, { [NAME]: VALUE }]),
);

/** Places in which an object has no mark: `annotations`, `labels`, or both. */
export function unmarkedPlaces(object: JsonObject): readonly string[] {
  const metadata = metadataOf(object);
  return PLACES.filter((place) => {
    const found = metadata[place];
    return !isJsonObject(found) || found[NAME] !== VALUE;
  });
}

/** Copy of an object without the mark. */
export function withoutMark(object: JsonObject): JsonObject {
  if (unmarkedPlaces(object).length === PLACES.length) return object;
  const metadata = { ...metadataOf(object) };
  for (const place of PLACES) {
    const found = metadata[place];
    if (!isJsonObject(found)) continue;
    const { [NAME]: _, ...others } = found;
    if (Object.keys(others).length > 0) metadata[place] = others;
    else delete metadata[place];
  }
  return { ...object, metadata };
}
