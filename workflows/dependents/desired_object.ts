import { Buffer } from "node:buffer";
import { apiVersionOf, type Kind } from "../../core/api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";

/** What the server sets in metadata, which nobody can ask for. */
const SERVER_METADATA = [
  "creationTimestamp",
  "deletionTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
] as const;

/**
 * A desired object that has a name.
 *
 * @throws {TypeError} If it has none, or is no object.
 */
export function namedObject<T extends KubernetesObject>(
  kind: Kind<T>,
  desired: ApplyObject<T>,
): {
  readonly metadata: { readonly name: string; readonly namespace?: string };
} {
  if (!isJsonObject(desired)) {
    throw refusal(kind, "it must be an object", typeof desired);
  }
  const { metadata } = desired as { readonly metadata?: unknown };
  const name = isJsonObject(metadata) ? metadata["name"] : undefined;
  if (typeof name !== "string" || name === "") {
    throw refusal(kind, "it must have a name", name);
  }
  return desired as { metadata: { name: string; namespace?: string } };
}

function refusal(kind: Kind, why: string, value: unknown): TypeError {
  return new TypeError(
    `Cannot use a desired ${kind.kind}: ${why}: received ${value}`,
  );
}

/**
 * A desired object as it is compared and applied: with its apiVersion and kind,
 * without what only the server sets, and with the `stringData` of a Secret as
 * the `data` that it becomes.
 *
 * @throws {TypeError} If it is no object with a name, or carries a status, which
 * only its own controller may write.
 */
export function desiredObject<T extends KubernetesObject>(
  kind: Kind<T>,
  desired: ApplyObject<T>,
): ApplyObject<T> {
  const { metadata, status, stringData, ...rest } = namedObject(
    kind,
    desired,
  ) as ReturnType<typeof namedObject> & {
    readonly status?: unknown;
    readonly stringData?: unknown;
  };
  if (status !== undefined) {
    throw refusal(kind, "it must not have a status", "one");
  }
  const kept = Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) =>
      value !== undefined &&
      !(SERVER_METADATA as readonly string[]).includes(name)
    ),
  );
  // Undefined fields vanish as they would on the wire.
  const object = JSON.parse(JSON.stringify({
    ...rest,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: kept,
  }));
  if (isJsonObject(stringData)) {
    object.data = { ...object.data, ...encoded(stringData) };
  }
  return object;
}

function encoded(strings: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(
    Object.entries(strings).map(([name, value]) => [
      name,
      Buffer.from(String(value)).toString("base64"),
    ]),
  );
}
