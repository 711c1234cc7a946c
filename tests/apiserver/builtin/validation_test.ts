import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { createBuiltin } from "./create_builtin.ts";
import { changedBody, type InvalidCase } from "./invalid_case.ts";

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

/** Checks the causes of a case on servers of both versions. */
function checkCauses(testCase: InvalidCase): void {
  const { causes, earlier = causes } = testCase;
  const body = bodies.get(testCase.case) ??
    assert.fail(`no such case: ${testCase.case}`);
  for (
    const [version, expected] of [["1.37", causes], ["1.36", earlier]] as const
  ) {
    const found = createBuiltin(changedBody(body, testCase), CLUSTER, version)
      .causes.map(({ field = "", reason = "", message = "" }) =>
        [field, reason, message] as const
      );
    assert.deepEqual(found, expected, version);
  }
}

for (
  const [index, testCase] of lines<InvalidCase>("./invalid.ndjson").entries()
) {
  const { case: name, path } = testCase;
  test(`${name} with an invalid ${fieldOf(path)} is rejected (${index})`, () => {
    checkCauses(testCase);
  });
}

// Requests that were written from the source; the answers are recorded.
for (
  const [index, testCase] of lines<InvalidCase>("./invalid_words.ndjson")
    .entries()
) {
  const { case: name, path } = testCase;
  test(`${name} with another invalid ${fieldOf(path)} is rejected (${index})`, () => {
    checkCauses(testCase);
  });
}

test("A StatefulSet may mount the volumes of its claims, and no others", () => {
  const mounting = (name: string): UntypedObject => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "a", namespace: "default" },
    spec: {
      selector: { matchLabels: { app: "a" } },
      template: {
        metadata: { labels: { app: "a" } },
        spec: {
          containers: [{
            name: "main",
            image: "main",
            volumeMounts: [{ name, mountPath: "/data" }],
          }],
        },
      },
      volumeClaimTemplates: [{
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
        },
      }],
    },
  });
  assert.deepEqual(createBuiltin(mounting("data"), []).causes, []);
  assert.deepEqual(
    createBuiltin(mounting("other"), []).causes.map(({ message }) => message),
    ['Not found: "other"'],
  );
});
