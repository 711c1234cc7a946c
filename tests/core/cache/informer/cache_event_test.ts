import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CurrentEvent,
  type EventFacts,
  keyOfHeader,
} from "../../../../core/cache/informer/cache_event.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";

test("Keys of headers have a namespace only where the object has one", () => {
  const headerOf = (metadata: object) =>
    new EventScanner().scanObject(wholeRange(JSON.stringify({ metadata })));
  const node = headerOf({ name: "n1" });
  const pod = headerOf({ namespace: "default", name: "a" });
  assert.deepEqual([node, pod].map(keyOfHeader), [
    { name: "n1" },
    { namespace: "default", name: "a" },
  ]);
  const texts = [node, pod, pod.copy()].map(({ keyText }) => keyText);
  assert.deepEqual(texts, ["n1", "default/a", "default/a"]);
});

test("CurrentEvent compares the metadata of each change that it is used for", () => {
  const json = (resourceVersion: string, app: string) =>
    wholeRange(JSON.stringify({
      metadata: { name: "a", resourceVersion, labels: { app } },
    }));
  const change = (before: string, after: string): EventFacts => ({
    type: "updated",
    header: new EventScanner().scanObject(json("18", after)),
    previous: json("17", before),
    isRegular: true,
  });
  const reader = {
    find: () => undefined,
    decode: () => ({ metadata: { name: "a" } }),
  };
  const event = new CurrentEvent(reader, change("web", "web"));
  assert.equal(event.hasSameMetadata, true);
  assert.equal(event.set(change("web", "api")).hasSameMetadata, false);
  assert.equal(event.set(change("api", "api")).hasSameMetadata, true);
});
