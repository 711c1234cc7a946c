import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CacheEvent,
  type LogFields,
  type Logger,
  silentLogger,
} from "@coracle/operator/client";
import type { Widget } from "../../../support/fake_watch_call.ts";
import { withInformer } from "../../../support/informer_case.ts";

test("Informer delivers the new and the previous state, decoded when read [J61]", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    server.put("default/a", { size: 1 });
    const seen: unknown[] = [];
    informer.addHandler((event) => {
      seen.push([
        event.type,
        event.object.spec.size,
        event.previous?.spec.size,
        event.header.generation,
        event.previousHeader?.generation,
        Object.isFrozen(event.object.spec),
      ]);
    });
    await sync();
    server.put("default/a", { size: 2 });
    await settled();
    server.delete("default/a");
    await settled();
    assert.deepEqual(seen, [
      ["added", 1, undefined, 1, undefined, true],
      ["updated", 2, 1, 2, 1, true],
      ["deleted", 2, 2, 2, 2, true],
    ]);
  }));

test("Informer refuses misspelt options of handlers and loops", () =>
  withInformer(({ informer }) => {
    const wrong = { Name: "x", signals: [] } as never;
    assert.throws(() => informer.addHandler(() => {}, wrong), /option "Name"/);
    assert.throws(() => informer.events(wrong), /no option "Name"/);
    return Promise.resolve();
  }));

test("A handler that was added just before the informer stopped is not called", () =>
  withInformer(async ({ server, informer, sync }) => {
    for (let i = 0; i < 50; i++) server.put(`default/${i}`);
    await sync();
    let calls = 0;
    const { synced } = informer.addHandler(() => calls++);
    await informer.stop();
    await assert.rejects(synced, /Cannot sync: /);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.equal(calls, 0);
    assert.equal(informer.has("default/1"), true);
  }));

test("A handler that reads the cache sees the state after its event", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    const sizes: (number | undefined)[] = [];
    informer.addHandler(({ key }) => {
      sizes.push(informer.get(key)?.spec.size);
    });
    server.put("default/a", { size: 1 });
    await sync();
    server.put("default/a", { size: 2 });
    server.delete("default/a");
    await settled();
    assert.deepEqual(sizes, [1, 2, undefined]);
  }));

test("An event keeps its state while its handler begins writes of other objects", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    server.put("default/a", { size: 1 });
    server.put("default/b", { size: 2 });
    await sync();
    const seen: unknown[] = [];
    const late = informer.addHandler((event) => {
      for (const key of ["default/a", "default/b"]) late.beginWrite(key).fail();
      const { type, key, object, previous } = event;
      seen.push([type, key, object.spec.size, previous?.spec.size]);
    });
    await late.synced;
    server.put("default/a", { size: 3 });
    await settled();
    server.delete("default/b");
    await settled();
    assert.deepEqual(seen, [
      ["added", "default/a", 1, undefined],
      ["added", "default/b", 2, undefined],
      ["updated", "default/a", 3, 1],
      ["deleted", "default/b", 2, 2],
    ]);
  }));

test("An event keeps its state for a handler behind one that ends writes", () =>
  withInformer(async ({ server, informer, sync, settled, until }) => {
    for (const [i, name] of ["a", "b", "c"].entries()) {
      server.put(`default/${name}`, { size: i + 1 });
    }
    await sync();
    const author = informer.addHandler(() => {});
    let endOther = () => {};
    const begin = (from: typeof author, but: string) => {
      for (const key of ["default/a", "default/b", "default/c"]) {
        if (key !== but) from.beginWrite(key).fail();
      }
    };
    const first = informer.addHandler(({ key, initial }) => {
      begin(first, key);
      if (!initial) endOther();
    });
    const seen: unknown[] = [];
    const second = informer.addHandler((event) => {
      if (event.initial) return;
      if (event.key !== "default/b") begin(second, event.key);
      const { type, key, object, previous } = event;
      seen.push([type, key, object.spec.size, previous?.spec.size]);
    });
    await Promise.all([author.synced, first.synced, second.synced]);

    const [write, next, other] = ["default/a", "default/a", "default/b"]
      .map((key) => author.beginWrite(key));
    const b = server.put("default/b", { size: 20 });
    endOther = () => {
      endOther = () => {};
      other?.succeed(b);
    };
    write?.succeed(server.put("default/a", { size: 10 }));
    next?.succeed(server.put("default/a", { size: 11 }));
    assert.deepEqual(seen.splice(0), [
      ["updated", "default/b", 20, 2],
      ["updated", "default/a", 10, 1],
      ["updated", "default/a", 11, 10],
    ]);
    await settled();

    const held = second.beginWrite("default/a");
    server.put("default/a", { size: 12 });
    await settled();
    held.fail();
    assert.deepEqual(seen.splice(0), [["updated", "default/a", 12, 11]]);

    server.endWatches();
    server.delete("default/c");
    server.compact();
    await until("the relist arrived", () => seen.length > 0);
    assert.deepEqual(seen, [["deleted", "default/c", 3, 3]]);
  }));

test("CacheEvent keeps its state when it is detached", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    const kept: CacheEvent<Widget>[] = [];
    informer.addHandler((event) => {
      kept.push(event.detach());
    });
    server.put("default/a", { size: 1 });
    await sync();
    server.put("default/a", { size: 2 });
    server.put("default/a", { size: 3 });
    await settled();
    assert.deepEqual(
      kept.map((
        { object, previous },
      ) => [object.spec.size, previous?.spec.size]),
      [[1, undefined], [2, 1], [3, 2]],
    );
    assert.equal(kept[0]?.initial, true);
  }));

test("Informer continues after a handler that throws, and logs it", async () => {
  const errors: LogFields[] = [];
  const logger: Logger = {
    ...silentLogger,
    with: () => logger,
    error: (_message, fields) => void errors.push(fields ?? {}),
  };
  await withInformer(async ({ server, informer, events, sync, settled }) => {
    informer.addHandler(() => {
      throw new Error("thrown");
    }, { name: "thrower" });
    informer.addHandler(() => Promise.reject(new Error("rejected")), {
      name: "rejecter",
    });
    server.put("default/a");
    await sync();
    server.put("default/b");
    await settled();
    assert.deepEqual(events, ["added default/a initial", "added default/b"]);
    assert.deepEqual(
      errors.map(({ handler, error }) => `${handler} ${error}`).toSorted(),
      [
        "rejecter Error: rejected",
        "rejecter Error: rejected",
        "thrower Error: thrown",
        "thrower Error: thrown",
      ],
    );
  }, { logger });
});

test("Informer replays cached objects to a late handler, with changes in order", () =>
  withInformer(async ({ server, informer, sync, settled, until }) => {
    for (const name of ["a", "b", "c"]) server.put(`default/${name}`);
    await sync();
    const seen: string[] = [];
    const late = informer.addHandler(({ type, key, initial }) => {
      seen.push(`${type} ${key}${initial ? " initial" : ""}`);
    });
    assert.equal(late.hasSynced, false);
    await late.synced;
    assert.equal(late.hasSynced, true);
    assert.deepEqual(seen, [
      "added default/a initial",
      "added default/b initial",
      "added default/c initial",
    ]);
    server.delete("default/a");
    await settled();
    await until("the deletion arrived", () => seen.length === 4);
    assert.equal(seen.at(-1), "deleted default/a");
  }));

test("A removed handler is no longer called", () =>
  withInformer(async ({ server, informer, events, sync, settled }) => {
    let calls = 0;
    const registration = informer.addHandler(() => {
      calls++;
      registration.remove();
    });
    server.put("default/a");
    server.put("default/b");
    await sync();
    await settled();
    registration.remove();
    assert.equal(calls, 1);
    assert.equal(events.length, 2);
    await assert.rejects(registration.synced, /Cannot sync/);
  }));

test("Informer delivers events to a loop, which ends with it", () =>
  withInformer(async ({ server, informer, sync }) => {
    server.put("default/a");
    await sync();
    const seen: string[] = [];
    const loop = (async () => {
      for await (const { type, key, object } of informer) {
        seen.push(`${type} ${key} ${object.spec.size}`);
        if (seen.length === 1) server.put("default/a", { size: 7 });
        if (seen.length === 2) await informer.stop();
      }
    })();
    await loop;
    assert.deepEqual(seen, ["added default/a 1", "updated default/a 7"]);
  }));

test("Informer merges the events of an object while a loop does not read", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    server.put("default/a", { size: 1 });
    server.put("default/b", { size: 1 });
    server.put("default/d", { size: 1 });
    await sync();
    const abort = new AbortController();
    const loop = informer.events({ signal: abort.signal });
    for (let index = 0; index < 3; index++) await loop.next();
    for (let size = 2; size <= 5; size++) server.put("default/a", { size });
    server.put("default/c");
    server.delete("default/c");
    server.delete("default/b");
    server.put("default/b", { size: 9 });
    server.delete("default/d");
    server.put("default/d", { size: 2 });
    server.delete("default/d");
    server.put("default/end");
    await settled();
    const seen: unknown[] = [];
    for (;;) {
      const { value } = await loop.next();
      if (value.key === "default/end") break;
      seen.push([
        value.type,
        value.key,
        value.object.spec.size,
        value.previous?.spec.size,
      ]);
    }
    assert.deepEqual(seen, [
      ["updated", "default/a", 5, 1],
      ["deleted", "default/b", 1, 1],
      ["added", "default/b", 9, undefined],
      ["deleted", "default/d", 1, 1],
    ]);
    const next = loop.next();
    abort.abort();
    assert.deepEqual(await next, { done: true, value: undefined });
  }));

test("Informer gives a handler that was removed no namespace that is added", () =>
  withInformer(async ({ server, informer, events, sync, settled }) => {
    server.put("one/a");
    await sync();
    server.put("two/b");
    const seen: string[] = [];
    const registration = informer.addHandler(({ key }) => void seen.push(key));
    await registration.synced;
    registration.remove();
    events.length = seen.length = 0;
    await informer.changeNamespaces(["one", "two"]);
    await settled();
    assert.deepEqual(events, ["added two/b initial"]);
    assert.deepEqual(seen, []);
  }, { namespaces: ["one"] }));

test("Informer leaves nothing of a loop that ends on a signal that lives on", () =>
  withInformer(async ({ server, informer, sync }) => {
    const { signal } = new AbortController();
    server.put("default/a");
    await sync();
    for await (const { key } of informer.events({ signal })) {
      assert.equal(key, "default/a");
      break;
    }
  }));

test("Informer finds objects by indexes made before and after the start [J72]", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    informer.addIndex("app", { byLabel: "app" });
    server.put("default/a", { labels: { app: "web" }, size: 3 });
    server.put("other/b", { labels: { app: "web" }, size: 4 });
    server.put("other/c", { labels: { app: "db" }, size: 3 });
    await sync();
    informer.addIndex("size", {
      byFunction: ({ spec }) => [String(spec.size)],
    });
    const names = (index: string, value: string) =>
      informer.byIndex(index, value).map(({ metadata }) => metadata.name)
        .toSorted();
    assert.deepEqual(names("app", "web"), ["a", "b"]);
    assert.deepEqual(names("size", "3"), ["a", "c"]);
    server.put("other/b", { labels: { app: "db" } });
    await settled();
    assert.deepEqual(names("app", "web"), ["a"]);
    assert.throws(() => informer.byIndex("none", "x"), RangeError);
    assert.throws(() => informer.addIndex("app", { byLabel: "x" }), RangeError);
    assert.deepEqual(informer.list("other").length, 2);
    assert.deepEqual([...informer.keys()].toSorted(), [
      "default/a",
      "other/b",
      "other/c",
    ]);
    assert.equal(informer.has({ namespace: "other", name: "c" }), true);
  }));

test("A loop gets merged updates with the oldest previous state", () =>
  withInformer(async ({ server, informer, sync, settled }) => {
    server.put("default/a", { size: 1 });
    const loop = informer.events();
    await sync();
    const { value: added } = await loop.next();
    assert.equal(added.type, "added");
    server.put("default/a", { size: 2 });
    await settled();
    server.put("default/a", { size: 3 });
    await settled();
    const { value: updated } = await loop.next();
    assert.deepEqual({
      type: updated.type,
      previous: updated.previous?.spec.size,
      object: updated.object.spec.size,
    }, { type: "updated", previous: 1, object: 3 });
    await loop.return?.();
  }));
