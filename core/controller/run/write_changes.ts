/**
 * Readable fields that a write changed: `coracle dev` shows them with each run.
 *
 * @module
 */
import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  diffJsonPatch,
  type JsonPatchOperation,
  pointerSteps,
} from "../../patch/json_patch.ts";

/** Maximum number of fields that are shown for a write. */
const MAX_FIELDS = 20;
/** Maximum length of a value that is shown, in UTF-16 code units. */
const MAX_VALUE = 120;
/** Metadata that every write changes. */
export const BOOKKEEPING: ReadonlySet<string> = new Set([
  "generation",
  "managedFields",
  "resourceVersion",
]);
/**
 * Pattern of fields of Secrets with hidden values; `kubectl apply` keeps the
 * data in an annotation, too.
 */
const SECRET_FIELD = /^\/(data|stringData|metadata\/annotations)(\/|$)/;

/**
 * Fields that a write changed, as texts such as `spec.replicas: 1 → 2`: at most
 * twenty, without those that every write changes. Values of Secrets are hidden, and
 * long values are cut.
 */
export function writeChanges(
  kind: Kind,
  before: KubernetesObject,
  after: KubernetesObject,
): readonly string[] {
  const isSecret = kindText(kind) === "v1 Secret";
  const old = withoutBookkeeping(before);
  return diffJsonPatch(old, withoutBookkeeping(after)).slice(0, MAX_FIELDS)
    .map((operation) => {
      const { op, path } = operation;
      const text = (value: unknown) =>
        isSecret && SECRET_FIELD.test(path) ? "(hidden)" : shown(value);
      const was = op === "add" ? "" : text(valueAt(old, path));
      const is = "value" in operation ? text(operation.value) : "";
      return `${fieldOf(path)}: ${
        op === "add"
          ? `+ ${is}`
          : op === "remove"
          ? `- ${was}`
          : `${was} → ${is}`
      }`;
    });
}

/** Paths of the fields that differ, without those that every write changes. */
export function changedFields(
  before: KubernetesObject,
  after: KubernetesObject,
): readonly string[] {
  const paths = diffJsonPatch(
    withoutBookkeeping(before),
    withoutBookkeeping(after),
  ).map(({ path }) => fieldOf(path));
  return [...new Set(paths)];
}

/** Converts a JSON pointer to a readable path. */
export function fieldOf(pointer: string): string {
  return pointerSteps(pointer).join(".");
}

/** Values that a JSON Patch sets, by readable path. */
export function valuesOf(
  patch: readonly JsonPatchOperation[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    patch.flatMap((one) =>
      "value" in one ? [[fieldOf(one.path), one.value]] : []
    ),
  );
}

/** Value at a JSON pointer; undefined if absent. */
export function valueAt(value: unknown, pointer: string): unknown {
  return pointerSteps(pointer).reduce<unknown>(
    (part, step) => (part as Record<string, unknown> | undefined)?.[step],
    value,
  );
}

/** Object without the fields that every write changes, or that no cache keeps. */
function withoutBookkeeping(object: KubernetesObject): object {
  const metadata = Object.entries(object.metadata).filter(([name]) =>
    !BOOKKEEPING.has(name)
  );
  return { ...object, metadata: Object.fromEntries(metadata) };
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
