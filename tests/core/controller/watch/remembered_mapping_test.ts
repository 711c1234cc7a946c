import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheEvent, KubernetesObject } from "@coracle/operator/client";
import { RememberedMapping } from "../../../../core/controller/watch/remembered_mapping.ts";

function eventOf(
  type: CacheEvent["type"],
  isPartial = false,
): CacheEvent<KubernetesObject> {
  const event = { type, key: "default/secondary", header: { isPartial } };
  return event as unknown as CacheEvent<KubernetesObject>;
}

test("RememberedMapping returns primaries of the previous and the new state", () => {
  const mapping = new RememberedMapping();
  const follow = (type: CacheEvent["type"], ...primaries: string[]) => [
    ...mapping.follow(eventOf(type), () => primaries),
  ];
  assert.deepEqual(follow("added", "one"), ["one"]);
  assert.deepEqual(follow("updated", "two"), ["one", "two"]);
  assert.deepEqual(follow("updated"), ["two"]);
  assert.deepEqual(follow("updated", "three"), ["three"]);
  assert.deepEqual(follow("deleted", "three"), ["three"]);
  assert.deepEqual(follow("added", "four"), ["four"]);
});

test("RememberedMapping does not map objects of which only the key is cached", () => {
  const mapping = new RememberedMapping();
  const never = () => assert.fail("there is nothing to map");
  mapping.set("default/secondary", ["one"]);
  assert.deepEqual([...mapping.follow(eventOf("updated", true), never)], [
    "one",
  ]);
  assert.deepEqual([...mapping.follow(eventOf("deleted", true), never)], [
    "one",
  ]);
  assert.deepEqual([...mapping.follow(eventOf("added", true), never)], []);
});
