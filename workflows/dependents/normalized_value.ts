import { Quantity } from "../../core/api/quantity.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";

/**
 * What the server fills in inside of values that are owned as a whole, by the
 * name of the field: there a field more than was asked for is no change.
 *
 * Sources: `fieldRef.apiVersion`, `resourceFieldRef.divisor`, the claim
 * templates of StatefulSets and the ports of NetworkPolicies, in Kubernetes'
 * defaults of apps/v1, core/v1 and networking/v1.
 */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  apiVersion: ["v1"],
  divisor: ["0"],
  kind: ["PersistentVolumeClaim"],
  protocol: ["TCP"],
  scheme: ["HTTP"],
  status: [{ phase: "Pending" }],
  volumeMode: ["Filesystem"],
};

/** The fields whose values are quantities, or maps of them. */
const QUANTITY_FIELDS: ReadonlySet<string> = new Set([
  "averageValue",
  "capacity",
  "default",
  "defaultRequest",
  "divisor",
  "hard",
  "limits",
  "max",
  "maxLimitRequestRatio",
  "min",
  "podFixed",
  "requests",
  "sizeLimit",
]);

/** Whether the server may leave a value out, since it says nothing. */
export function isEmptyValue(value: unknown): boolean {
  return value === undefined || value === null || value === "" ||
    (Array.isArray(value) && value.length === 0) ||
    (isJsonObject(value) && Object.values(value).every(isEmptyValue));
}

/**
 * What a field is to {@linkcode sameValue}: in a map of quantities it is what
 * the map is.
 */
export function fieldOf(name: string, parent: string): string {
  return QUANTITY_FIELDS.has(parent) ? parent : name;
}

/**
 * Whether a stored value is what was asked for, however the server spells it:
 * quantities by what they mean, and with what it fills in.
 *
 * Only fields that are known to hold quantities are read so: `1.0` and `1.00`
 * in a ConfigMap are two texts.
 *
 * @param desired What was asked for.
 * @param actual What is stored.
 * @param field The name of the field, or of the map that it is an entry of.
 */
export function sameValue(
  desired: unknown,
  actual: unknown,
  field: string = "",
): boolean {
  if (desired === actual) return true;
  if (isEmptyValue(desired) && isEmptyValue(actual)) return true;
  if (Array.isArray(desired)) {
    return Array.isArray(actual) && desired.length === actual.length &&
      desired.every((item, index) => sameValue(item, actual[index]));
  }
  if (isJsonObject(desired)) {
    if (!isJsonObject(actual)) return false;
    for (const [name, value] of Object.entries(desired)) {
      if (!sameValue(value, actual[name], fieldOf(name, field))) return false;
    }
    return Object.keys(actual).every((name) =>
      Object.hasOwn(desired, name) || isEmptyValue(actual[name]) ||
      isDefault(name, actual[name])
    );
  }
  return QUANTITY_FIELDS.has(field) && sameQuantity(desired, actual);
}

function isDefault(name: string, value: unknown): boolean {
  if (!Object.hasOwn(DEFAULTS, name)) return false;
  const text = JSON.stringify(value);
  return DEFAULTS[name]!.some((known) => JSON.stringify(known) === text);
}

function sameQuantity(desired: unknown, actual: unknown): boolean {
  const texts = [desired, actual].map(String);
  if (!texts.every(Quantity.is)) return false;
  const [a, b] = texts.map(Quantity.parse);
  return a!.equals(b!);
}
