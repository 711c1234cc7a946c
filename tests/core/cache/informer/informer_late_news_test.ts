import assert from "node:assert/strict";
import { test } from "node:test";
import type { HandlerRegistration } from "@coracle/operator/client";
import {
  type Call,
  sendEvent,
  type Widget,
} from "../../../support/fake_watch_call.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";

/** Handler of a writer, with the type and size of each delivered event. */
function addWriter(
  { informer }: InformerCase,
): { registration: HandlerRegistration<Widget>; delivered: string[] } {
  const delivered: string[] = [];
  const registration = informer.addHandler(({ type, object }) => {
    delivered.push(`${type} ${object.spec.size}`);
  });
  return { registration, delivered };
}

const KEY = "default/a";
const ON = { color: "on" };
const OFF = { color: "off" };

test("An own write that selects an object again survives a late deletion event", () =>
  withInformer(async (parts) => {
    const { server, informer, events, sync, settled } = parts;
    const { registration, delivered } = addWriter(parts);
    server.put(KEY, { labels: ON });
    await sync();
    const write = registration.beginWrite(KEY);
    server.put(KEY, { labels: OFF });
    write.succeed(server.put(KEY, { labels: ON }));
    assert.equal(informer.get(KEY)?.spec.size, 3);
    server.put("default/b", { labels: ON });
    await settled();
    assert.deepEqual(events.slice(1), [
      "updated default/a",
      "added default/b",
    ]);
    assert.deepEqual(delivered, ["added 1", "updated 3", "added 1"]);
  }, { labelSelector: "color=on" }));

test("An own write does not restore an object deleted within an initial stream", () =>
  withInformer(async (parts) => {
    const { server, informer, events, until, settled } = parts;
    const { registration } = addWriter(parts);
    let stream: Call | undefined;
    server.script("watch", (call) => {
      stream = call;
      call.response.writeHead(200, { "content-type": "application/json" });
      call.response.flushHeaders();
    });
    informer.start();
    await until("a stream is asked for", () => stream !== undefined);
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY);
    server.delete(KEY);
    const { version: resourceVersion } = server;
    const metadata = { ...answer.metadata, resourceVersion };
    sendEvent(stream as Call, "ADDED", answer);
    sendEvent(stream as Call, "DELETED", { ...answer, metadata });
    await until("it was deleted", () => events.length === 2);
    write.succeed(answer);
    assert.equal(informer.has(KEY), false);
    stream?.response.reset();
    await settled();
    assert.deepEqual(events, ["added default/a initial", "deleted default/a"]);
  }));

test("An own write ahead of the stream is dropped with its history", () =>
  withInformer(async (parts) => {
    const { server, informer, sync, settled } = parts;
    const { registration } = addWriter(parts);
    server.put("default/b");
    await sync();
    server.endWatches("reset");
    const write = registration.beginWrite(KEY);
    write.succeed(server.put(KEY));
    assert.equal(informer.has(KEY), true);
    server.loseData();
    server.put("default/c");
    await settled();
    assert.deepEqual([...informer.keys()], ["default/c"]);
  }));

test("An own write suppresses its echo when its object was created again since", () =>
  withInformer(async (parts) => {
    const { server, sync, settled } = parts;
    const { registration, delivered } = addWriter(parts);
    server.put(KEY);
    await sync();
    registration.beginWrite(KEY).succeed(server.put(KEY));
    server.delete(KEY);
    registration.beginWrite(KEY).succeed(server.put(KEY, { size: 7 }));
    server.put("default/b", { size: 9 });
    await settled();
    assert.deepEqual(delivered, ["added 1", "deleted 2", "added 9"]);
  }));

test("An own write that ends after its namespace was removed and added gives one event", () =>
  withInformer(async (parts) => {
    const { server, informer, events, sync, settled } = parts;
    const { registration, delivered } = addWriter(parts);
    await sync();
    const write = registration.beginWrite("one/a");
    server.put("one/a");
    await settled();
    assert.deepEqual({ events, delivered }, {
      events: ["added one/a"],
      delivered: [],
    });
    await informer.changeNamespaces(["two"]);
    await informer.changeNamespaces(["one"]);
    assert.deepEqual(delivered, []);
    write.fail();
    assert.deepEqual(delivered, ["added 1"]);
  }, { namespaces: ["one"] }));
