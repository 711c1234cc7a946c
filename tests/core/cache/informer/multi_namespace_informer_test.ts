import assert from "node:assert/strict";
import { test } from "node:test";
import { Informer } from "@coracle/operator/client";
import { type Fault, Widget } from "../../../support/fake_watch_call.ts";
import { inTime } from "../../../support/in_time.ts";
import { withInformer } from "../../../support/informer_case.ts";
import { refuse } from "../../../support/watch_faults.ts";

test("A hand-over of namespaces delivers what the former watch missed, once", () =>
  withInformer(async ({ server, informer, events, until }) => {
    for (const name of ["same", "changed", "deleted", "recreated"]) {
      server.put(`one/${name}`);
    }
    await informer.start().synced;
    await until("all were delivered", () => events.length === 4);
    events.length = 0;
    // The former watch is lost; its next attempt waits for the clock.
    server.endWatches("reset");
    server.put("one/changed");
    server.delete("one/deleted");
    server.delete("one/recreated");
    server.put("one/recreated", { uid: "another" });
    server.put("two/new");
    await informer.open(undefined);
    assert.equal(informer.has("two/new"), false, "a former watch is attached");
    await informer.attach(undefined);
    assert.deepEqual(events.toSorted(), [
      "added one/recreated initial",
      "added two/new initial",
      "deleted one/recreated unknown",
      "updated one/changed initial relist",
    ]);
    const keys = [...informer.keys()].toSorted();
    assert.deepEqual(
      keys,
      informer.list().map(({ metadata }) =>
        `${metadata.namespace}/${metadata.name}`
      ).toSorted(),
    );
    assert.equal(informer.size, new Set(keys).size);
    events.length = 0;
    const left: string[] = [];
    await informer.keep(undefined, { onLeft: (key) => left.push(key) });
    assert.deepEqual({ events, left }, {
      events: ["deleted one/deleted unknown"],
      left: [],
    });
    await informer.keep(["two"], { onLeft: (key) => left.push(key) });
    assert.deepEqual(left.toSorted(), [
      "one/changed",
      "one/recreated",
      "one/same",
      "two/new",
    ]);
  }, { namespaces: ["one"] }));

test("Informer names its namespaces, and none for all of them", () =>
  withInformer(async ({ client, informer }) => {
    assert.deepEqual(informer.namespaces, ["one", "two"]);
    const all = new Informer(client, Widget);
    assert.equal(all.namespaces, undefined);
    assert.equal(all.hasSynced, false);
    await all.close();
    for (const namespaces of [[], [""], ["one", ""]]) {
      const refused = informer.changeNamespaces(namespaces);
      await assert.rejects(refused, /^RangeError: Cannot watch .*"namespaces"/);
    }
    assert.deepEqual(informer.namespaces, ["one", "two"]);
    const opened = informer.open(["three"]);
    await informer.stop();
    await assert.rejects(opened, /the informer was stopped/);
    await informer.close();
    assert.equal(informer.hasSynced, false);
  }, { namespaces: ["one", "two"] }));

test("Informer is healthy until the third failure in a row", () =>
  withInformer(async ({ server, informer, sync, until }) => {
    assert.equal(informer.health().healthy, false, "it was not started");
    await sync();
    assert.equal(informer.health().healthy, true);
    const failures = Array<Fault>(4).fill(refuse(500, "InternalError"));
    server.script("watch", ...failures);
    server.endWatches("reset");
    const seen = new Map<number, boolean>();
    await until("it has failed four times", () => {
      const { healthy, watches } = informer.health();
      const [watch] = watches;
      if (watch?.state === "waiting") {
        seen.set(watch.consecutiveFailures, healthy);
      }
      return (watch?.consecutiveFailures ?? 0) >= 4;
    });
    for (const [count, healthy] of seen) assert.equal(healthy, count < 3);
    assert.ok(seen.has(2) && seen.has(3), [...seen.keys()].join());
  }));

test("An own write under way is carried over in a hand-over of namespaces", () =>
  withInformer(async ({ server, informer, until }) => {
    server.put("one/a");
    const seen: string[] = [];
    const registration = informer.addHandler(({ type, object }) => {
      seen.push(`${type} ${object.spec.size}`);
    });
    await informer.start().synced;
    await registration.synced;
    const write = registration.beginWrite("one/a");
    await informer.open(undefined);
    await informer.attach(undefined);
    await informer.keep(undefined);
    const response = server.put("one/a");
    server.put("one/b", { size: 9 });
    await until("the next object arrived", () => informer.has("one/b"));
    write.succeed(response);
    assert.deepEqual(seen, ["added 1", "added 9"]);
  }, { namespaces: ["one"] }));

test("An own write whose response is malformed holds back no event of a hand-over", () =>
  withInformer(async ({ server, informer, until }) => {
    server.put("one/a", { size: 1 });
    const seen: string[] = [];
    const registration = informer.addHandler(({ type, object }) => {
      seen.push(`${type} ${object.spec.size}`);
    });
    await informer.start().synced;
    await registration.synced;
    const write = registration.beginWrite("one/a");
    await informer.open(undefined);
    await informer.attach(undefined);
    assert.throws(() => write.succeed(new TextEncoder().encode("{")));
    write.fail();
    await informer.keep(undefined);
    seen.length = 0;
    server.put("one/a", { size: 2 });
    await until("the change was delivered", () => seen.length > 0);
    assert.deepEqual(seen, ["updated 2"]);
  }, { namespaces: ["one"] }));

test("A hand-over of namespaces delivers events that were held back", () =>
  withInformer(async ({ server, informer, until }) => {
    server.put("one/a", { size: 1 });
    const seen: string[] = [];
    const registration = informer.addHandler(({ type, object, previous }) => {
      seen.push(`${type} ${previous?.spec.size} ${object.spec.size}`);
    });
    await informer.start().synced;
    await registration.synced;
    const writes = ["one/a", "one/b"].map((key) =>
      registration.beginWrite(key)
    );
    server.put("one/a", { size: 2 });
    server.put("one/b", { size: 3 });
    await until("the changes arrived", () => informer.has("one/b"));
    await informer.open(undefined);
    await informer.attach(undefined);
    await informer.keep(undefined);
    for (const write of writes) write.fail();
    assert.deepEqual(seen, [
      "added undefined 1",
      "updated 1 2",
      "added undefined 3",
    ]);
  }, { namespaces: ["one"] }));

test("A hand-over of namespaces to a watch that is behind loses no own write", () =>
  withInformer(async ({ server, informer, events, until }) => {
    server.put("one/a", { size: 1 });
    const registration = informer.addHandler(() => {});
    await informer.start().synced;
    await until("it was delivered", () => events.length === 1);
    await informer.open(undefined);
    const sizes = () =>
      ["one/a", "one/b"].map((key) => informer.get(key)?.spec.size);
    for (const [name, size] of [["one/a", 2], ["one/b", 3]] as const) {
      const write = registration.beginWrite(name);
      write.succeed(server.put(name, { size }));
    }
    // No event of these writes has arrived so far.
    const done = [informer.attach(undefined), informer.keep(undefined)];
    assert.deepEqual(sizes(), [2, 3]);
    await Promise.all(done);
    server.delete("one/b");
    await until("the deletion arrived", () => !informer.has("one/b"));
    assert.deepEqual(sizes(), [2, undefined]);
    assert.equal(events.filter((one) => one.startsWith("deleted")).length, 1);
  }, { namespaces: ["one"] }));

test("An own write under way does not enter the cache of another namespace", () =>
  withInformer(async ({ server, informer }) => {
    server.put("one/a", { size: 1 });
    server.put("two/b", { size: 1 });
    const registration = informer.addHandler(() => {});
    await informer.start().synced;
    const write = registration.beginWrite("one/a");
    await informer.changeNamespaces(["one", "two"]);
    write.succeed(server.put("one/a", { size: 2 }));
    assert.deepEqual([...informer.keys()].toSorted(), ["one/a", "two/b"]);
    assert.equal(informer.size, 2);
    assert.equal(informer.get("one/a")?.spec.size, 2);
  }, { namespaces: ["one"] }));

test("A change of namespaces waits for the new ones, a second time, too", () =>
  withInformer(async ({ server, informer }) => {
    for (const name of ["one", "two", "three"]) server.put(`${name}/a`);
    await informer.start().synced;
    for (const name of ["two", "three"]) {
      const changed = informer.changeNamespaces([name]);
      assert.equal(informer.hasSynced, false);
      await changed;
      assert.deepEqual([...informer.keys()], [`${name}/a`]);
      await informer.synced;
      assert.equal(informer.hasSynced, true);
    }
  }, { namespaces: ["one"] }));

test("A wait for one change of namespaces ends although another one follows", () =>
  withInformer(async ({ server, informer }) => {
    for (const name of ["one", "two", "three"]) server.put(`${name}/a`);
    await informer.start().synced;
    const changes = [informer.changeNamespaces(["two"])];
    const { synced } = informer;
    changes.push(informer.changeNamespaces(["three"]));
    const all = Promise.all([synced, ...changes]);
    await inTime("all changes have ended", all);
    assert.deepEqual([...informer.keys()], ["three/a"]);
  }, { namespaces: ["one"] }));

test("A handler has synced when the objects of all namespaces were delivered", () =>
  withInformer(async ({ server, informer }) => {
    for (const name of ["one", "two"]) server.put(`${name}/a`);
    await informer.start().synced;
    const seen: string[] = [];
    const registration = informer.addHandler(({ key }) => {
      assert.equal(registration.hasSynced, false);
      seen.push(key);
    });
    await registration.synced;
    assert.deepEqual(seen.toSorted(), ["one/a", "two/a"]);
  }, { namespaces: ["one", "two"] }));

test("An informer has synced once it gives up a namespace that it cannot read", () =>
  withInformer(async ({ server, informer, until }) => {
    server.put("one/a");
    const unanswered: Fault = (call) => {
      if (call.namespace !== "two") call.serve();
    };
    server.script("watch", unanswered, unanswered);
    informer.start();
    const registration = informer.addHandler(() => {});
    await until("one is complete", () => informer.has("one/a"));
    assert.equal(informer.hasSynced, false);
    await informer.keep(["one"]);
    const synced = Promise.all([informer.synced, registration.synced]);
    await inTime("it has synced", synced);
  }, { namespaces: ["one", "two"] }));

test("A stopped informer opens no namespace", () =>
  withInformer(async ({ informer }) => {
    await informer.stop();
    await assert.rejects(informer.open(["two"]), /it was stopped/);
  }, { namespaces: ["one"] }));

test("A hand-over of namespaces that is given up delivers nothing", () =>
  withInformer(async ({ server, informer, events, until }) => {
    server.put("one/a");
    await informer.start().synced;
    await until("it was delivered", () => events.length === 1);
    events.length = 0;
    // The attached watch is lost; its next attempt waits for the clock.
    server.endWatches("reset");
    server.put("one/new");
    server.put("two/b");
    await informer.open(undefined);
    const left: string[] = [];
    await informer.keep(["one"], { onLeft: (key) => left.push(key) });
    assert.deepEqual({ events, left }, { events: [], left: [] });
    assert.deepEqual([...informer.keys()], ["one/a"]);
  }, { namespaces: ["one"] }));

test("An informer is healthy from its start to its stop", () =>
  withInformer(async ({ informer }) => {
    const seen = [informer.health().healthy];
    await informer.start().synced;
    seen.push(informer.health().healthy);
    await informer.stop();
    seen.push(informer.health().healthy);
    assert.deepEqual(seen, [false, true, false]);
  }, { namespaces: ["one", "two"] }));

test("An informer reads nothing in a namespace that it does not watch", () =>
  withInformer(async ({ server, informer }) => {
    server.put("two/a");
    await informer.start().synced;
    const read = informer.read("two/a");
    assert.ok(read instanceof Promise);
    assert.equal(await read, undefined);
  }, { namespaces: ["one"] }));

test("A loop over the events of a stopped informer ends at once", () =>
  withInformer(async ({ informer }) => {
    await informer.start().synced;
    await informer.stop();
    const { done } = await inTime("it ends", informer.events().next());
    assert.equal(done, true);
  }));

test("An index has the objects of namespaces that are opened later", () =>
  withInformer(async ({ server, informer }) => {
    const labels = { app: "web" };
    server.put("one/a", { labels });
    server.put("two/b", { labels });
    informer.addIndex("app", { byLabel: "app" });
    await informer.start().synced;
    await informer.open(["one", "two"]);
    await informer.attach(["one", "two"]);
    const names = (objects: readonly Widget[]) =>
      objects.map(({ metadata }) => metadata.name).toSorted();
    assert.deepEqual(names(informer.byIndex("app", "web")), ["a", "b"]);
    assert.deepEqual(names(await informer.readByIndex("app", "web")), [
      "a",
      "b",
    ]);
    assert.deepEqual(names(await informer.readList()), ["a", "b"]);
    assert.deepEqual(names(await informer.readList("two")), ["b"]);
  }, { namespaces: ["one"] }));

test("Informer gives each object a place, which moves with its watch", () =>
  withInformer(async ({ server, informer, until, events }) => {
    server.put("one/a");
    server.put("two/b");
    await informer.start().synced;
    await until("all were delivered", () => events.length === 2);
    const place = informer.placeOf("one/a");
    assert.notEqual(place, informer.placeOf("two/b"));
    assert.equal(informer.keyAt(place), "one/a");
    assert.equal(informer.placeOf("one/absent"), -1);
    assert.equal(informer.keyAt(place + 1), undefined);
    assert.equal(informer.keyAt(0), undefined);
    await informer.open(undefined);
    await informer.attach(undefined);
    const moved: [number, number][] = [];
    await informer.keep(undefined, {
      onMoved: (from, to) => moved.push([from, to]),
      onLeft: () => assert.fail("all are covered"),
    });
    assert.deepEqual(moved.map(([, to]) => informer.keyAt(to)).toSorted(), [
      "one/a",
      "two/b",
    ]);
    assert.equal(
      moved.find(([from]) => from === place)?.[1],
      informer.placeOf("one/a"),
    );
    assert.equal(informer.keyAt(place), undefined);
    const left = new Map<string, number>();
    const places = ["one/a", "two/b"].map((key) => informer.placeOf(key));
    await informer.keep([], { onLeft: (key, at) => left.set(key, at) });
    assert.deepEqual(["one/a", "two/b"].map((key) => left.get(key)), places);
  }, { namespaces: ["one", "two"] }));
