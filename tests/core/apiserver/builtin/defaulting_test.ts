import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "../../../../core/api/object.ts";
import { createBuiltin } from "./create_builtin.ts";

/** A body, and what a Kubernetes 1.32 server stored for it. */
interface DefaultingPair {
  readonly request: { readonly body: UntypedObject };
  readonly stored: UntypedObject;
}

const folder = new URL("./defaulting/", import.meta.url);

/** Values that a server draws at random, where recordings have placeholders. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g, '"<uid>"'],
  [/"\d{4}-\d\d-\d\dT00:00:00Z"/g, '"<time>"'],
  [/kube-api-access-[a-z0-9]{5}/g, "kube-api-access-<gen>"],
  [/"10\.\d+\.\d+\.\d+"/g, '"<address>"'],
  [/"nodePort":3\d{4}/g, '"nodePort":"<port>"'],
  [/"healthCheckNodePort":3\d{4}/g, '"healthCheckNodePort":"<port>"'],
];

/** An object without what differs from server to server, in one order. */
function comparable(object: UntypedObject): unknown {
  const { resourceVersion: _, ...metadata } = object.metadata;
  let text = JSON.stringify({ ...object, metadata });
  for (const [pattern, placeholder] of PLACEHOLDERS) {
    text = text.replace(pattern, placeholder);
  }
  return JSON.parse(text);
}

for (const file of readdirSync(folder).sort()) {
  const pair: DefaultingPair = JSON.parse(
    readFileSync(new URL(file, folder), "utf8"),
  );
  const { body } = pair.request;
  test(`builtinDefinitions stores a ${body.kind} as a real server does (${file})`, () => {
    const { object, causes } = createBuiltin(body);
    assert.deepEqual(causes, []);
    assert.deepEqual(comparable(object), comparable(pair.stored));
  });
}
