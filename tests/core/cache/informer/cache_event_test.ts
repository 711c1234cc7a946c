import assert from "node:assert/strict";
import { test } from "node:test";
import {
  keyOfHeader,
  keyTextOf,
} from "../../../../core/cache/informer/cache_event.ts";
import type { ObjectHeader } from "../../../../core/json/object_header.ts";

test("Keys of headers have a namespace only where the object has one", () => {
  const node = { namespace: "", name: "n1" } as ObjectHeader;
  const pod = { namespace: "default", name: "a" } as ObjectHeader;
  assert.deepEqual([node, pod].map(keyOfHeader), [
    { name: "n1" },
    { namespace: "default", name: "a" },
  ]);
  assert.deepEqual([node, pod].map(keyTextOf), ["n1", "default/a"]);
});
