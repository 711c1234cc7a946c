import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "../../../core/api/object.ts";
import { createBuiltin } from "./create_builtin.ts";

/** Valid body in which one value is changed or removed. */
interface InvalidCase {
  readonly case: string;
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
  /** Causes returned by Kubernetes 1.32: field, reason and message. */
  readonly causes: readonly (readonly [string, string, string])[];
}

function lines<T>(file: string): T[] {
  return readFileSync(new URL(file, import.meta.url), "utf8")
    .trimEnd().split("\n").map((line) => JSON.parse(line));
}

const bodies = new Map(
  lines<{ name: string; request: { body: UntypedObject } }>(
    "./defaulting/rich.ndjson",
  ).map(({ name, request }) => [name, request.body]),
);

const CLUSTER: readonly UntypedObject[] = [{
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name: "sa", namespace: "h6" },
}];

/** Innermost named field of a path. */
function fieldOf(path: InvalidCase["path"]): string {
  return String(path.findLast((step) => Number.isNaN(Number(step))));
}

/** Copy with a changed value at a path; removes the value if none is given. */
function changed(
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

/** Causes of a case. */
function received(testCase: InvalidCase): InvalidCase["causes"] {
  const body = bodies.get(testCase.case) ??
    assert.fail(`no such case: ${testCase.case}`);
  return createBuiltin(changed(body, testCase), CLUSTER).causes
    .map(({ field = "", reason = "", message = "" }) =>
      [field, reason, message] as const
    );
}

for (
  const [index, testCase] of lines<InvalidCase>("./invalid.ndjson").entries()
) {
  const { case: name, path, causes } = testCase;
  test(`${name} with an invalid ${fieldOf(path)} is rejected (${index})`, () => {
    assert.deepEqual(received(testCase), causes);
  });
}

// These messages are from the source of Kubernetes 1.32; they were not recorded.
for (
  const [index, testCase] of lines<InvalidCase>("./invalid_words.ndjson")
    .entries()
) {
  const { case: name, path, causes } = testCase;
  test(`${name} with an unrecorded ${fieldOf(path)} is rejected (${index})`, () => {
    assert.deepEqual(received(testCase), causes);
  });
}
