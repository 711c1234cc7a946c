import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { until } from "../../support/until.ts";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";

/** A watch whose events are gathered as `TYPE name`. */
async function watch(server: TestServer, query: string, collection = C) {
  const controller = new AbortController();
  const response = await server.transport.send({
    method: "GET",
    path: `${collection}?watch=1&${query}`,
    headers: { authorization: "Bearer secret" },
    signal: controller.signal,
  });
  const events: string[] = [];
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  const objects: any[] = [];
  const done = (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body) {
      const lines = (rest + decoder.decode(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { type, object } = JSON.parse(line);
        events.push(
          `${type} ${object.metadata?.name ?? object.code ?? ""}`.trim(),
        );
        objects.push(object);
      }
    }
  })().catch(() => {});
  return {
    status: response.status,
    events,
    objects,
    done,
    /** What came since the last look, once it is there. */
    async next(): Promise<string[]> {
      await new Promise((resolve) => setImmediate(resolve));
      return events.splice(0);
    },
    async stop() {
      controller.abort();
      await done;
    },
  };
}

function put(server: TestServer, name: string, labels: Record<string, string>) {
  return server.send("PUT", `${C}/${name}`, { metadata: { name, labels } })
    .then(async ({ status, body }) =>
      status === 404
        ? (await server.send("POST", C, { metadata: { name, labels } })).body
        : body
    );
}

test("a watch shows objects that enter and leave its selector", async () => {
  const server = new TestServer();
  const seen = await watch(server, "labelSelector=on");
  await put(server, "a", {});
  await put(server, "a", { on: "1" });
  await put(server, "a", { on: "2" });
  await put(server, "a", {});
  await put(server, "a", { on: "3" });
  await server.send("DELETE", `${C}/a`);
  assert.deepEqual(await seen.next(), [
    "ADDED a",
    "MODIFIED a",
    "DELETED a",
    "ADDED a",
    "DELETED a",
  ]);
  const [, changed, left] = seen.objects;
  assert.deepEqual(left.metadata.labels, { on: "2" });
  assert.ok(left.metadata.resourceVersion > changed.metadata.resourceVersion);
  await seen.stop();
  server.stop();
});

test("a watch resumes after a revision and misses nothing", async () => {
  const server = new TestServer();
  const { metadata } = await put(server, "a", {});
  await put(server, "b", {});
  await server.send("DELETE", `${C}/a`);
  const seen = await watch(
    server,
    `resourceVersion=${metadata.resourceVersion}`,
  );
  await put(server, "c", {});
  assert.deepEqual(await seen.next(), ["ADDED b", "DELETED a", "ADDED c"]);
  await seen.stop();
  server.stop();
});

test("a watch from a compacted revision ends with 410", async () => {
  const server = new TestServer();
  const { metadata } = await put(server, "a", {});
  await put(server, "b", {});
  server.instance.context.store.compact();
  const seen = await watch(
    server,
    `resourceVersion=${metadata.resourceVersion}`,
  );
  await seen.done;
  assert.equal(seen.status, 200);
  assert.deepEqual(seen.events, ["ERROR 410"]);
  assert.equal(server.instance.context.watches.counts.open, 0);
  server.stop();
});

test("a watch receives bookmarks every minute and ends at its timeout", async () => {
  const clock = new VirtualClock();
  const server = new TestServer({ clock });
  await clock.settle();
  const seen = await watch(
    server,
    "resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=150",
  );
  await seen.next();
  await clock.advance(149_000);
  assert.deepEqual(await seen.next(), ["BOOKMARK", "BOOKMARK"]);
  await clock.advance(2_000);
  await seen.done;
  server.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("initial events end with a bookmark if requested", async () => {
  const server = new TestServer();
  await put(server, "a", {});
  const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const marked = await watch(
    server,
    `${initial}&allowWatchBookmarks=true&labelSelector=none`,
  );
  assert.deepEqual(await marked.next(), ["BOOKMARK"]);
  const { annotations } = marked.objects[0].metadata;
  assert.equal(annotations["k8s.io/initial-events-end"], "true");
  const unmarked = await watch(server, initial);
  assert.ok(
    (await unmarked.next()).every((event) => !event.startsWith("BOOKMARK")),
  );
  await marked.stop();
  await unmarked.stop();
  server.stop();
});

test("a watch whose client never reads is disconnected and counted", async () => {
  const server = new TestServer();
  const response = await server.transport.send({
    method: "GET",
    path: `${C}?watch=1`,
    headers: { authorization: "Bearer secret" },
  });
  const value = "x".repeat(1_000_000);
  for (let round = 0; round < 20; round++) {
    await server.send("POST", C, {
      metadata: { name: `big-${round}` },
      data: { value },
    });
  }
  const { counts } = server.instance.context.watches;
  assert.equal(counts.dropped, 1);
  assert.equal(counts.open, 0);
  await assert.rejects(async () => {
    for await (const _ of response.body);
  }, /broken/);
  server.stop();
});

test("a watch may start with more than its client may lag behind later", async () => {
  const server = new TestServer();
  const value = "x".repeat(1_000_000);
  const change = async (names: string) => {
    for (let round = 0; round < 18; round++) {
      await server.send("POST", C, {
        metadata: { name: `${names}-${round}` },
        data: { value },
      });
    }
  };
  await change("first");
  const query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const idle = await server.transport.send({
    method: "GET",
    path: `${C}?watch=1&${query}`,
    headers: { authorization: "Bearer secret" },
  });
  const seen = await watch(server, `${query}&allowWatchBookmarks=true`);
  await until(
    "the end of the initial events",
    () => seen.events.at(-1) === "BOOKMARK",
  );
  assert.equal(seen.events.filter((one) => /first-/.test(one)).length, 18);
  const { counts } = server.instance.context.watches;
  assert.deepEqual({ ...counts, events: 0 }, {
    open: 2,
    dropped: 0,
    events: 0,
  });
  await change("later");
  await until(
    "the last event",
    () => seen.events.at(-1) === "ADDED later-17",
  );
  assert.deepEqual({ ...counts, events: 0 }, {
    open: 1,
    dropped: 1,
    events: 0,
  });
  await seen.stop();
  await idle.cancel();
  server.stop();
});

test("a watch is released when its client leaves", async () => {
  const server = new TestServer();
  const seen = await watch(server, "");
  assert.equal(server.instance.context.watches.counts.open, 1);
  await seen.stop();
  assert.equal(server.instance.context.watches.counts.open, 0);
  server.stop();
});
