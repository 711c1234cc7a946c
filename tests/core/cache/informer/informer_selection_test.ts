import assert from "node:assert/strict";
import { test } from "node:test";
import { Informer } from "@coracle/operator/client";
import { Widget } from "../../../support/fake_watch_call.ts";
import { withInformer } from "../../../support/informer_case.ts";

test("Informer watches several namespaces with one watch each", () =>
  withInformer(async ({ server, informer, events, until }) => {
    server.put("one/a");
    server.put("two/a");
    server.put("three/a");
    informer.start();
    await informer.synced;
    assert.equal(server.watches, 2);
    assert.deepEqual([...informer.keys()].toSorted(), ["one/a", "two/a"]);
    server.put("two/b");
    server.put("three/b");
    server.delete("one/a");
    await until("the changes arrived", () => events.length === 4);
    assert.deepEqual([...informer.keys()].toSorted(), ["two/a", "two/b"]);
    assert.equal(informer.get("three/a"), undefined);
    assert.deepEqual(
      informer.health().watches.map((
        { namespace, state },
      ) => [namespace, state]),
      [["one", "watching"], ["two", "watching"]],
    );
  }, { namespaces: ["one", "two"] }));

test("Informer relists one namespace without events of the others", () =>
  withInformer(async ({ server, informer, events, until }) => {
    server.put("one/a");
    server.put("two/a");
    informer.start();
    await informer.synced;
    events.length = 0;
    server.delete("one/a");
    server.delete("two/a");
    await until("both were deleted", () => informer.size === 0);
    assert.deepEqual(events.toSorted(), ["deleted one/a", "deleted two/a"]);
  }, { namespaces: ["one", "two"] }));

test("Informer changes its namespaces while it runs [J73]", () =>
  withInformer(async ({ server, informer, events, until }) => {
    server.put("one/a");
    server.put("two/a");
    server.put("three/a");
    informer.start();
    await informer.synced;
    events.length = 0;
    await informer.changeNamespaces(["two", "three"]);
    assert.deepEqual(events, ["added three/a initial"]);
    assert.deepEqual([...informer.keys()].toSorted(), ["three/a", "two/a"]);
    await until(
      "the watch of the left namespace is closed",
      () => server.watches === 2,
    );
    server.put("one/b");
    server.put("two/b");
    await until("the change arrived", () => events.length === 2);
    assert.equal(events.at(-1), "added two/b");
  }, { namespaces: ["one", "two"] }));

test("A wait for the first sync ends whatever the namespaces become", () =>
  withInformer(async ({ server, informer }) => {
    server.put("two/a");
    const first = informer.start().synced;
    const second = informer.changeNamespaces(["two"]);
    const third = informer.changeNamespaces(["three"]);
    await Promise.all([first, second, third]);
    assert.deepEqual([...informer.keys()], []);
    await informer.changeNamespaces(["two"]);
    assert.deepEqual([...informer.keys()], ["two/a"]);
  }, { namespaces: ["one"] }));

test("An index that was removed can be added again, also for new namespaces", () =>
  withInformer(async ({ server, informer }) => {
    server.put("one/a", { labels: { app: "web" } });
    server.put("two/b", { labels: { app: "web" } });
    informer.addIndex("by", { byLabel: "team" });
    await informer.start().synced;
    informer.removeIndex("by");
    assert.throws(() => informer.byIndex("by", "web"), RangeError);
    await informer.changeNamespaces(["one", "two"]);
    informer.addIndex("by", { byLabel: "app" });
    const found = informer.byIndex("by", "web");
    assert.deepEqual(found.map(({ metadata }) => metadata.name), ["a", "b"]);
  }, { namespaces: ["one"] }));

test("Informer holds only objects with matching labels", () =>
  withInformer(async ({ server, informer, events, sync, until }) => {
    server.put("default/a", { labels: { app: "web" } });
    server.put("default/b", { labels: { app: "db" } });
    informer.start();
    await informer.synced;
    assert.deepEqual([...informer.keys()], ["default/a"]);
    server.put("default/a", { labels: { app: "db" } });
    server.put("default/b", { labels: { app: "web" } });
    await until("both changed", () => events.length === 3);
    assert.deepEqual(events.slice(1), ["deleted default/a", "added default/b"]);
    void sync;
  }, { labelSelector: "app=web" }));

test("Informer holds only the metadata with metadataOnly", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    const kinds: (string | undefined)[] = [];
    informer.addHandler(({ object }) => {
      kinds.push(object.kind);
    });
    server.put("default/a");
    await sync();
    server.put("default/a");
    await settled();
    server.delete("default/a");
    await settled();
    assert.deepEqual(kinds, ["Widget", "Widget", "Widget"]);
    assert.match(
      server.calls[0]?.accept ?? "",
      /^application\/json;g=meta\.k8s\.io;v=v1;as=PartialObjectMetadata,/,
    );
    server.put("default/b");
    await settled();
    const object = informer.get("default/b");
    assert.deepEqual(Object.keys(object ?? {}).toSorted(), [
      "apiVersion",
      "kind",
      "metadata",
    ]);
  }, { metadataOnly: true }));

test("Informer reduces objects to metadata where the server sends all of them", () =>
  withInformer(async ({ server, informer, sync }) => {
    server.watchList = "refused";
    server.put("default/a");
    await sync();
    assert.equal(informer.get("default/a")?.spec, undefined);
    assert.equal(informer.get("default/a")?.metadata.name, "a");
  }, { metadataOnly: true }));

test("Informer rejects invalid options", () => {
  const client = {
    request: () => Promise.reject(new Error("not used")),
    resolve: () => Promise.reject(new Error("not used")),
  };
  const make = (options: ConstructorParameters<typeof Informer>[2]) => () =>
    new Informer(client, Widget, options);
  assert.throws(
    make({ namespaces: [] }),
    /"namespaces" must name at least one/,
  );
  assert.throws(make({ namespaces: [""] }), RangeError);
  assert.throws(make({ reconnect: { pageSize: 0.5 } }), RangeError);
  assert.throws(make({ reconnect: { grace: -1 } }), RangeError);
  assert.throws(make({ reconnect: { graze: 1 } as never }), TypeError);
  assert.throws(make({ labelSelector: "a in (" }), SyntaxError);
});
