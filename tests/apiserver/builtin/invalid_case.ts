import type { UntypedObject } from "@coracle/operator/client";

/** Valid body in which one value is changed or removed. */
export interface InvalidCase {
  readonly case: string;
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
  /** Causes returned by Kubernetes 1.37: field, reason and message. */
  readonly causes: readonly (readonly [string, string, string])[];
  /** Causes returned by Kubernetes 1.36, where they differ. */
  readonly earlier?: InvalidCase["causes"];
}

/** Copy with a changed value at a path; removes the value if none is given. */
export function changedBody(
  body: UntypedObject,
  { path, value }: Pick<InvalidCase, "path" | "value">,
): UntypedObject {
  const copy = structuredClone(body);
  const last = path.at(-1) as string;
  const parent = path.slice(0, -1).reduce(
    (inner, key) => inner[key] as Record<string, unknown>,
    copy as unknown as Record<string | number, unknown>,
  );
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy;
}
