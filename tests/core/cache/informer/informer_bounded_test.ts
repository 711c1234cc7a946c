import assert from "node:assert/strict";
import { test } from "node:test";
import { type InformerOptions, MemoryBudget } from "@coracle/operator/client";
import { PAGE_OBJECTS } from "../../../../core/cache/store/tiers.ts";
import { stateOf } from "../../../support/fake_watch_call.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";

/** Pages of objects are given up: a rest of less would stay as bytes. */
const MANY = 3 * PAGE_OBJECTS;

/** Runs a test with an informer that has given every object up. */
function withKeysAlone(
  play: (parts: InformerCase, name: string) => Promise<void>,
  options: InformerOptions = {},
): Promise<void> {
  const { budget = new MemoryBudget("1GiB") } = options;
  return withInformer(async (parts) => {
    const { server, informer, sync } = parts;
    for (let i = 0; i < MANY; i++) {
      server.put(`default/web-${i}`, { size: i, labels: { n: `${i % 10}` } });
    }
    informer.addIndex("n", { byLabel: "n" });
    await sync();
    budget.limit = 1;
    budget.settle();
    assert.equal(informer.usage().keyOnly.objects, MANY);
    await play(parts, "default/web-7");
  }, { ...options, bounded: true, budget });
}

test("Informer fetches evicted objects, and reads that do not wait throw", () =>
  withKeysAlone(async ({ server, informer }, name) => {
    assert.equal(informer.size, MANY);
    assert.ok(informer.has(name));
    assert.throws(
      () => informer.get(name),
      /Cannot get Widget default\/web-7 synchronously: only its key is stored/,
    );
    assert.throws(() => informer.list(), /only its key is stored/);
    assert.throws(() => informer.byIndex("n", "7"), /only its key is stored/);
    const calls = () =>
      server.calls.filter(({ verb }) => verb === "get").length;
    const [one, two] = await Promise.all([
      informer.read(name),
      informer.read(name),
    ]);
    assert.equal(one?.spec.size, 7);
    assert.equal(one, two);
    assert.equal(calls(), 1);
    assert.ok(Object.isFrozen(one?.spec));
    const found = await informer.readByIndex("n", "7");
    assert.deepEqual(
      found.map(({ spec }) => spec.size).toSorted((a, b) => a - b),
      Array.from({ length: MANY }, (_, i) => i).filter((i) => i % 10 === 7),
    );
    assert.deepEqual(stateOf(await informer.readList("default")), server.state);
    assert.deepEqual(await informer.readList("other"), []);
    assert.equal(await informer.read("default/none"), undefined);
  }));

test("Informer fetches an object again that changed and was evicted again", () => {
  const budget = new MemoryBudget("1GiB");
  return withKeysAlone(async ({ server, informer, events, until }, name) => {
    assert.equal((await informer.read(name))?.spec.size, 7);
    events.length = 0;
    budget.limit = "1GiB";
    for (let i = 0; i < MANY; i++) {
      server.put(`default/web-${i}`, { size: 1_000 + i });
    }
    await until("all changes arrived", () => events.length === MANY);
    budget.limit = 1;
    budget.settle();
    assert.equal(informer.usage().keyOnly.objects, MANY);
    assert.equal((await informer.read(name))?.spec.size, 1_007);
  }, { budget });
});

test("Informer delivers every change of evicted objects", () =>
  withKeysAlone(async ({ server, informer, events, until }, name) => {
    const seen: unknown[] = [];
    const late = informer.addHandler((event) => {
      if (event.initial) return;
      seen.push([event.type, event.object.spec?.size, event.previousHeader]);
    });
    await late.synced;
    events.length = 0;
    server.put(name, { size: 1000 });
    await until("the change arrived", () => events.length === 1);
    server.delete("default/web-8");
    await until("the deletion arrived", () => events.length === 2);
    // It is deleted while the watch is down; only its key is known.
    server.endWatches();
    server.delete("default/web-9");
    server.compact();
    await until("the relist arrived", () => events.length === 3);
    assert.deepEqual(events, [
      "updated default/web-7",
      "deleted default/web-8",
      "deleted default/web-9 relist unknown",
    ]);
    assert.deepEqual(seen, [
      ["updated", 1000, undefined],
      ["deleted", 8, undefined],
      ["deleted", undefined, undefined],
    ]);
    assert.equal(informer.has("default/web-9"), false);
  }));

test("Informer replays the keys of evicted objects to a late handler", () =>
  withKeysAlone(async ({ informer }) => {
    const partial: boolean[] = [];
    let message = "";
    const late = informer.addHandler((event) => {
      partial.push(event.header.isPartial);
      try {
        void event.object;
      } catch (error) {
        message = String(error);
      }
    });
    await late.synced;
    assert.deepEqual(partial, Array.from({ length: MANY }, () => true));
    assert.match(
      message,
      /Cannot read the object default\/web-9 of an event: only its key/,
    );
  }));

test("Informer fetches only the metadata with metadataOnly", () =>
  withKeysAlone(async ({ server, informer }, name) => {
    const object = await informer.read(name);
    assert.deepEqual(Object.keys(object ?? {}), [
      "apiVersion",
      "kind",
      "metadata",
    ]);
    assert.equal(object?.kind, "Widget");
    const [call] = server.calls.filter(({ verb }) => verb === "get");
    assert.match(call?.accept ?? "", /as=PartialObjectMetadata,/);
  }, { metadataOnly: true }));

test("Informer reads nothing for a deleted evicted object, and nothing after stop", () =>
  withKeysAlone(async ({ server, informer }, name) => {
    server.script("get", (call) => {
      server.delete(name);
      call.serve();
    });
    assert.equal(await informer.read(name), undefined);
    await informer.stop();
    await assert.rejects(informer.read("default/web-8"), /was stopped/);
  }));
