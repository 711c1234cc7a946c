import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, Context } from "@coracle/operator/core";
import { accessByClient } from "@coracle/operator/workflows";
import { accessByContext } from "../../../workflows/conditions/shared_status.ts";
import { Release } from "../../support/release_kind.ts";

const key = { namespace: "default", name: "web" };
const { signal } = new AbortController();

/** Client or context that records the options of patches. */
function recorded(): { patches: unknown[]; patch: () => Promise<void> } {
  const patches: unknown[] = [];
  const patch = (...given: readonly unknown[]) =>
    Promise.resolve(void patches.push(given[3]));
  return { patches, patch };
}

test("accessByContext patches without a look at the cache", async () => {
  const { patches, patch } = recorded();
  const ctx = { key, patch, signal } as unknown as Context<Release>;
  const access = accessByContext(Release, ctx);
  await access.patch({}, "object");
  await access.patch({}, "status");
  assert.deepEqual(patches, [
    { type: "merge", match: false },
    { type: "merge", match: false, subresource: "status" },
  ]);
});

test("accessByClient patches object and status as the field manager", async () => {
  const object = recorded();
  const status = recorded();
  const client = { ...object, get() {}, status } as unknown as Client;
  const release = { metadata: key, spec: { version: "1" } } as Release;
  const access = accessByClient(Release, release, {
    client,
    fieldManager: "web",
    signal,
  });
  const expected = [{ type: "merge", fieldManager: "web", signal }];
  await access.patch({}, "object");
  assert.deepEqual([object.patches, status.patches], [expected, []]);
  await access.patch({}, "status");
  assert.deepEqual([object.patches, status.patches], [expected, expected]);
});
