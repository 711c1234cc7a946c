import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "../../../core/api/object.ts";
import { createBuiltin } from "./create_builtin.ts";

/** A valid body in which one value is changed, or taken out. */
interface InvalidCase {
  readonly case: string;
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
  /** What a Kubernetes 1.32 server objected to: field, reason and message. */
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

/** A copy with another value at a path; without one if none is given. */
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

/** What the rules object to in a case. */
function received(one: InvalidCase): InvalidCase["causes"] {
  const body = bodies.get(one.case) ??
    assert.fail(`no such case: ${one.case}`);
  return createBuiltin(changed(body, one), CLUSTER).causes
    .map(({ field = "", reason = "", message = "" }) =>
      [field, reason, message] as const
    );
}

for (const [index, one] of lines<InvalidCase>("./invalid.ndjson").entries()) {
  const { case: name, path, causes } = one;
  test(`validateCreate refuses ${name} for its ${path.join(".")} as a real server does (${index})`, () => {
    assert.deepEqual(received(one), causes);
  });
}

// These were not recorded: the words are those of the source of Kubernetes 1.32.
for (
  const [index, one] of lines<InvalidCase>("./invalid_words.ndjson").entries()
) {
  const { case: name, path, causes } = one;
  test(`validateCreate has the words of Kubernetes for ${name} with another ${path.join(".")} (${index})`, () => {
    assert.deepEqual(received(one), causes);
  });
}
