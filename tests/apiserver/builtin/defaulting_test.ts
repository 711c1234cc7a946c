import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { createBuiltin } from "./create_builtin.ts";

/** Request body with the object that kube-apiserver stored for it. */
interface DefaultingPair {
  readonly request: { readonly body: UntypedObject };
  readonly stored: UntypedObject;
  /** What Kubernetes 1.36 stored, where it differs. */
  readonly earlier?: UntypedObject;
}

const folder = new URL("./defaulting/", import.meta.url);

/** Random values of a server, which are placeholders in the recordings. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g, '"<uid>"'],
  [/"\d{4}-\d\d-\d\dT00:00:00Z"/g, '"<time>"'],
  [/kube-api-access-[a-z0-9]{5}/g, "kube-api-access-<gen>"],
  [/"10\.\d+\.\d+\.\d+"/g, '"<address>"'],
  [/"nodePort":3\d{4}/g, '"nodePort":"<port>"'],
  [/"healthCheckNodePort":3\d{4}/g, '"healthCheckNodePort":"<port>"'],
];

/** Object without values that differ between servers, with sorted keys. */
function comparable(object: UntypedObject): unknown {
  const { resourceVersion: _, ...metadata } = object.metadata;
  let text = JSON.stringify({ ...object, metadata });
  for (const [pattern, placeholder] of PLACEHOLDERS) {
    text = text.replace(pattern, placeholder);
  }
  return JSON.parse(text);
}

/** Existing objects to which the recordings refer. */
const CLUSTER: readonly UntypedObject[] = [{
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name: "sa", namespace: "h6" },
}];

function check(
  name: string,
  { request: { body }, stored, earlier = stored }: DefaultingPair,
): void {
  test(`a ${body.kind} is stored as recorded (${name})`, () => {
    for (
      const [version, expected] of [["1.37", stored], [
        "1.36",
        earlier,
      ]] as const
    ) {
      const { object, causes } = createBuiltin(body, CLUSTER, version);
      assert.deepEqual(causes, []);
      assert.deepEqual(comparable(object), comparable(expected), version);
    }
  });
}

for (const file of readdirSync(folder).sort()) {
  const text = readFileSync(new URL(file, folder), "utf8");
  if (file.endsWith(".json")) check(file, JSON.parse(text));
  else {
    for (const line of text.trimEnd().split("\n")) {
      const pair = JSON.parse(line);
      check(pair.name, pair);
    }
  }
}
