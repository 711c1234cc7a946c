import type { StatusCause } from "../../../core/api/api_error.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";

const { required, invalid, notSupported, forbidden } = fieldError;

const LIST_TYPES: readonly string[] = ["atomic", "set", "map"];
const MAP_TYPES: readonly string[] = ["atomic", "granular"];

/** Validates `x-kubernetes-list-type`, its keys and `x-kubernetes-map-type`; returns the violations. */
export function listTypeRuleCauses(
  schema: OpenApiSchema,
  path: string,
): StatusCause[] {
  const { type = "", items } = schema;
  const listType = schema["x-kubernetes-list-type"];
  const mapType = schema["x-kubernetes-map-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const at = (name: string) => childPath(path, name);
  const causes: StatusCause[] = [];
  const mustBe = (word: string, keyword: string) => {
    const why = `must be ${word} if ${keyword} is specified`;
    causes.push(
      type === "" ? required(at("type"), why) : invalid(at("type"), type, why),
    );
  };
  if (mapType !== undefined && type !== "object") {
    mustBe("object", "x-kubernetes-map-type");
  }
  if (mapType !== undefined && !MAP_TYPES.includes(mapType)) {
    causes.push(notSupported(at("x-kubernetes-map-type"), mapType, MAP_TYPES));
  }
  if (listType !== undefined && type !== "array") {
    mustBe("array", "x-kubernetes-list-type");
  } else if (listType === "set" && items) {
    causes.push(...setItemCauses(items, at("items")));
  }
  if (listType !== undefined && !LIST_TYPES.includes(listType)) {
    const field = at("x-kubernetes-list-type");
    causes.push(notSupported(field, listType, LIST_TYPES));
  }
  if (keys.length > 0 && listType !== "map") {
    const why = "must be map if x-kubernetes-list-map-keys is non-empty";
    const field = at("x-kubernetes-list-type");
    causes.push(
      listType === undefined
        ? required(field, why)
        : invalid(field, listType, why),
    );
  }
  return listType === "map" ? [...causes, ...keyCauses(schema, path)] : causes;
}

/** Checks that the items of a set are scalars or atomic. */
function setItemCauses(items: OpenApiSchema, path: string): StatusCause[] {
  const why =
    "must be atomic as item of a list with x-kubernetes-list-type=set";
  const listType = items["x-kubernetes-list-type"] ?? "atomic";
  if (items.type === "array" && listType !== "atomic") {
    const field = childPath(path, "x-kubernetes-list-type");
    return [invalid(field, listType, why)];
  }
  if (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic") {
    const field = childPath(path, "x-kubernetes-map-type");
    return [invalid(field, items["x-kubernetes-map-type"], why)];
  }
  return [];
}

function keyCauses(schema: OpenApiSchema, path: string): StatusCause[] {
  const { items } = schema;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const field = childPath(path, "x-kubernetes-list-map-keys");
  const causes: StatusCause[] = [];
  if (keys.length === 0) {
    const why = "must not be empty if x-kubernetes-list-type is map";
    causes.push(required(field, why));
  }
  if (items === undefined) {
    const why = "must have a schema if x-kubernetes-list-type is map";
    causes.push(required(childPath(path, "items"), why));
    return causes;
  }
  if (items.type !== "object") {
    causes.push(invalid(
      childPath(path, "items.type"),
      items.type ?? "",
      "must be object if parent array's x-kubernetes-list-type is map",
    ));
    return causes;
  }
  const wrongKeys = (why: string) => causes.push(invalid(field, keys, why));
  const seen = new Set<string>();
  for (const key of keys) {
    const property = items.properties?.[key];
    if (property === undefined) {
      wrongKeys("entries must all be names of item properties");
    } else if (property.type === "array" || property.type === "object") {
      causes.push(invalid(
        childPath(keyPath(childPath(path, "items.properties"), key), "type"),
        items.type,
        "must be a scalar type if parent array's x-kubernetes-list-type is map",
      ));
    }
    if (seen.has(key)) wrongKeys("must not contain duplicate entries");
    seen.add(key);
  }
  return causes;
}

/** Checks that items of sets and maps are not nullable, and that map keys are required or have defaults. */
export function listMapCauses(
  schema: OpenApiSchema,
  path: string,
): StatusCause[] {
  const { items } = schema;
  const listType = schema["x-kubernetes-list-type"];
  if (!items || (listType !== "set" && listType !== "map")) return [];
  const causes: StatusCause[] = [];
  if (items.nullable) {
    causes.push(forbidden(
      childPath(path, "items.nullable"),
      `cannot be nullable when x-kubernetes-list-type is ${listType}`,
    ));
  }
  if (listType === "set") return causes;
  for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
    const property = items.properties?.[key];
    if (property === undefined) continue;
    const field = keyPath(childPath(path, "items.properties"), key);
    if (!items.required?.includes(key) && property.default === undefined) {
      causes.push(required(
        childPath(field, "default"),
        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
      ));
    }
    if (property.nullable) {
      causes.push(forbidden(
        childPath(field, "nullable"),
        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
      ));
    }
  }
  return causes;
}
