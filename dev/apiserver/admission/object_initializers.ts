import {
  Duration,
  isMap,
  MessageValue,
  Optional,
  Timestamp,
  Uint,
} from "../cel/values.ts";
import { durationText, timeText } from "../cel/go_time.ts";
import { isInteger } from "../exact_json.ts";

/**
 * Problems of initializers whose names do not match the fields that they
 * initialize: `Object.spec{selector: Object.spec.wrong{}}`.
 */
export function initializerProblems(value: unknown): readonly string[] {
  return value instanceof MessageValue ? problemsAt(value, value.name) : [];
}

function problemsAt(value: unknown, expected: string): string[] {
  if (value instanceof Optional) return problemsAt(value.value, expected);
  if (Array.isArray(value)) {
    return value.flatMap((item) => problemsAt(item, expected));
  }
  if (value instanceof MessageValue) {
    const own = value.name === expected ? [] : [
      `unexpected type name ${JSON.stringify(value.name)}, expected ${
        JSON.stringify(expected)
      }, which matches field name path from root Object type`,
    ];
    return [...value.fields].reduce(
      (all, [name, field]) => [
        ...all,
        ...problemsAt(field, `${expected}.${name}`),
      ],
      own,
    );
  }
  return isMap(value)
    ? value.keys().flatMap((key) => problemsAt(value.find(key), expected))
    : [];
}

/** JSON value of a CEL value; absent optional values are left out. */
export function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") return integerOf(value);
  if (value instanceof Uint) return integerOf(value.value);
  if (value instanceof Optional) {
    return value.value === undefined ? undefined : jsonOf(value.value);
  }
  if (Array.isArray(value)) return value.map(jsonOf);
  if (value instanceof Timestamp) return timeText(value);
  if (value instanceof Duration) return durationText(value.nanos);
  if (value instanceof Uint8Array) return btoa(String.fromCharCode(...value));
  if (value instanceof MessageValue) return objectOf([...value.fields]);
  return isMap(value)
    ? objectOf(value.keys().map((key) => [key, value.find(key)] as const))
    : value;
}

/** Integer as JSON is read: a number if it is exact. */
function integerOf(value: bigint): number | bigint {
  return isInteger(Number(value)) ? Number(value) : value;
}

function objectOf(
  entries: readonly (readonly [unknown, unknown])[],
): Record<string, unknown> {
  return Object.fromEntries(
    entries.map(([key, inner]) => [String(key), jsonOf(inner)] as const)
      .filter(([, inner]) => inner !== undefined),
  );
}
