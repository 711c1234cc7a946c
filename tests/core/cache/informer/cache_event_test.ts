import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
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

const READER = {
  number: 1,
  find: () => undefined,
  keyAt: () => assert.fail("The event has a header"),
  headerAt: () => assert.fail("The event has a header"),
  decode: (header: unknown) => ({
    metadata: { name: "a", resourceVersion: versionOf(header) },
  }),
};

function versionOf(header: unknown): string {
  return (header as { readonly resourceVersion: string }).resourceVersion;
}

function json(resourceVersion: string) {
  return wholeRange(
    JSON.stringify({ metadata: { name: "a", resourceVersion } }),
  );
}

function scanned(resourceVersion: string) {
  return new EventScanner().scanObject(json(resourceVersion));
}

test("CurrentEvent has the states of the change that it was set to last", () => {
  const event = new CurrentEvent(READER, {
    type: "added",
    header: scanned("1"),
  });
  const versions = () => [
    event.previousHeader?.resourceVersion,
    event.previous?.metadata?.resourceVersion,
    event.object.metadata?.resourceVersion,
  ];
  assert.deepEqual(versions(), [undefined, undefined, "1"]);
  for (const [before, after] of [["1", "2"], ["2", "3"]] as const) {
    event.set({
      type: "updated",
      header: scanned(after),
      previous: json(before),
    });
    assert.deepEqual(versions(), [before, before, after]);
    assert.equal(event.hasSameMetadata, false, "it is not known to be regular");
  }
  event.set({ type: "added", header: scanned("4") });
  assert.deepEqual(versions(), [undefined, undefined, "4"]);
});

test("CurrentEvent is merged with a later one as if both were one change", () => {
  const of = (type: EventFacts["type"], parts: Partial<EventFacts> = {}) =>
    new CurrentEvent(READER, { type, header: scanned("2"), ...parts });
  const merged = (
    first: CurrentEvent<KubernetesObject>,
    later: CurrentEvent<KubernetesObject>,
  ) => {
    const { type, initial, relist, finalStateUnknown } = first.mergedWith(
      later,
    );
    const flags = { initial, relist, finalStateUnknown };
    return [
      type,
      ...Object.entries(flags).filter(([, is]) => is).map(([name]) => name),
    ].join(" ");
  };
  const [initial, relist] = [{ initial: true }, { relist: true }];
  const added = of("added", initial);
  assert.equal(merged(added, of("updated")), "added");
  assert.equal(merged(added, of("updated", initial)), "added initial");
  assert.equal(merged(of("updated", relist), of("updated")), "updated relist");
  assert.equal(merged(of("updated"), of("updated", relist)), "updated relist");
  const lost = { finalStateUnknown: true };
  assert.equal(
    merged(of("updated"), of("deleted", lost)),
    "deleted finalStateUnknown",
  );
  assert.equal(merged(of("deleted", lost), of("deleted")), "deleted");
  const first = of("updated", { previous: json("1") });
  const both = first.mergedWith(
    of("updated", { header: scanned("3"), previous: json("2") }),
  );
  assert.equal(both.previousHeader?.resourceVersion, "1");
  assert.equal(both.header.resourceVersion, "3");
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
    ...READER,
    decode: () => ({ metadata: { name: "a" } }),
  };
  const event = new CurrentEvent(reader, change("web", "web"));
  assert.equal(event.hasSameMetadata, true);
  assert.equal(event.set(change("web", "api")).hasSameMetadata, false);
  assert.equal(event.set(change("api", "api")).hasSameMetadata, true);
});
