import assert from "node:assert/strict";
import { test } from "node:test";
import {
  pageRequest,
  streamRequest,
} from "../../../../core/cache/watch/watch_requests.ts";
import { Widget } from "../../../support/fake_watch_call.ts";

const SHARD = "shardRange(object.metadata.uid, '0x0', '0x8')";
const TARGET = {
  kind: Widget,
  namespace: "one",
  labelSelector: "app=web",
  fieldSelector: "metadata.name=a",
  shardSelector: SHARD,
  metadataOnly: false,
};

/** Parameters of the query of a request. */
function query({ path }: { readonly path: string }): Record<string, string> {
  return Object.fromEntries(new URL(path, "http://server").searchParams);
}

const SELECTION = {
  labelSelector: "app=web",
  fieldSelector: "metadata.name=a",
  shardSelector: SHARD,
};

test("streamRequest asks for a state that is not older, or for changes alone", () => {
  const position = { resourceVersion: "5", timeoutSeconds: 30 };
  const initial = { ...position, initialEvents: true };
  const common = {
    ...SELECTION,
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: "5",
    timeoutSeconds: "30",
  };
  assert.deepEqual(query(streamRequest(TARGET, initial)), {
    ...common,
    resourceVersionMatch: "NotOlderThan",
    sendInitialEvents: "true",
  });
  const changes = { ...position, initialEvents: false };
  assert.deepEqual(query(streamRequest(TARGET, changes)), common);
  const { mayPause, mayRetry } = streamRequest(TARGET, changes);
  assert.deepEqual([mayPause, mayRetry], [true, false]);
});

test("pageRequest gives a version for the first page, and a token for others", () => {
  const position = { limit: 10, continueToken: "", resourceVersion: "0" };
  assert.deepEqual(query(pageRequest(TARGET, position)), {
    ...SELECTION,
    limit: "10",
    resourceVersion: "0",
  });
  const { mayPause, mayRetry } = pageRequest(TARGET, position);
  assert.deepEqual([mayPause, mayRetry], [true, false]);
  const next = { ...position, continueToken: "next" };
  assert.deepEqual(query(pageRequest(TARGET, next)), {
    ...SELECTION,
    limit: "10",
    continue: "next",
  });
  const newest = { ...position, limit: undefined, resourceVersion: "" };
  assert.deepEqual(query(pageRequest(TARGET, newest)), SELECTION);
});

test("Requests for metadata alone accept whole objects, too", () => {
  const target = { ...TARGET, metadataOnly: true };
  const position = { limit: 1, continueToken: "", resourceVersion: "" };
  const { headers } = pageRequest(target, position);
  assert.equal(
    headers["accept"],
    "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList,application/json",
  );
});
