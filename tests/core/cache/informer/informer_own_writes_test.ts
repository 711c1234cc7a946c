import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheEvent, HandlerRegistration } from "@coracle/operator/client";
import type { Widget } from "../../../support/fake_watch_call.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";

/** A handler that writes, beside the one of the case, which only looks on. */
interface Writer {
  readonly registration: HandlerRegistration<Widget>;
  /** Type, previous size and new size of each delivered event. */
  readonly delivered: string[];
}

function addWriter({ informer }: InformerCase): Writer {
  const delivered: string[] = [];
  const line = ({ type, previous, object }: CacheEvent<Widget>) =>
    `${type} ${previous?.spec.size ?? "-"}→${object.spec.size}`;
  const registration = informer.addHandler((event) => {
    if (!event.initial) delivered.push(line(event));
  }, { name: "writer" });
  return { registration, delivered };
}

const KEY = "default/a";

async function begin(parts: InformerCase): Promise<Writer> {
  const writer = addWriter(parts);
  parts.server.put(KEY, { size: 1 });
  await parts.sync();
  await writer.registration.synced;
  parts.events.length = 0;
  return writer;
}

test("An own write is read immediately, and its echo delivered to others once [ReadOwnUpdatesIT]", () =>
  withInformer(async (parts) => {
    const { server, informer, events, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY, { size: 2 });
    write.succeed(answer);
    assert.equal(informer.get(KEY)?.spec.size, 2);
    assert.deepEqual(events, ["updated default/a"]);
    server.put("default/b");
    await settled();
    assert.deepEqual(delivered, ["added -→1"]);
    assert.deepEqual(events, ["updated default/a", "added default/b"]);
  }));

test("An own write that ends after the stop changes nothing that is read", () =>
  withInformer(async (parts) => {
    const { server, informer, events } = parts;
    const { registration } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const stopped = informer.stop();
    write.succeed(server.put(KEY, { size: 2 }));
    await stopped;
    assert.equal(informer.get(KEY)?.spec.size, 1);
    assert.deepEqual(events, []);
  }));

test("An own write suppresses an echo that arrives before the response [FilterPatchEventIT]", () =>
  withInformer(async (parts) => {
    const { server, events, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY, { size: 2 });
    await settled();
    assert.deepEqual(events, ["updated default/a"]);
    write.succeed(answer);
    assert.deepEqual(delivered, []);
  }));

test("A foreign change before an own write is delivered when the write ends [ExternalUpdateDuringOwnUpdateIT]", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    server.put(KEY, { size: 20 });
    const answer = server.put(KEY, { size: 2 });
    await settled();
    assert.deepEqual(delivered, []);
    write.succeed(answer);
    assert.deepEqual(delivered, ["updated 1→2"]);
  }));

test("A foreign change that arrives after the response is delivered [ExternalUpdateDuringOwnUpdateIT]", () =>
  withInformer(async (parts) => {
    const { server, informer, settled, events } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    server.put(KEY, { size: 20 });
    write.succeed(server.put(KEY, { size: 2 }));
    assert.equal(informer.get(KEY)?.spec.size, 2);
    server.put("default/b");
    await settled();
    assert.deepEqual(delivered, ["updated 1→2", "added -→1"]);
    // The other handler got both changes as one event with the response.
    assert.deepEqual(events, ["updated default/a", "added default/b"]);
  }));

test("A foreign change after an own write is delivered [J71]", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    write.succeed(server.put(KEY, { size: 2 }));
    server.put(KEY, { size: 3 });
    await settled();
    assert.deepEqual(delivered, ["updated 2→3"]);
  }));

test("A spec change is delivered during a status write without effect [SpecChangeDuringStatusPatchIT]", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    // The status patch changed nothing: the answer is the foreign state.
    const answer = server.put(KEY, { size: 2 });
    write.succeed(answer, { subresource: true });
    await settled();
    assert.deepEqual(delivered, ["updated 1→2"]);
  }));

test("A change is delivered during an apply without effect", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    // Somebody changed the size; the apply of the labels changed nothing.
    const answer = server.put(KEY, { size: 2 });
    write.succeed(answer, { sent: { metadata: { labels: {} } } });
    assert.deepEqual(delivered, ["updated 1→2"]);
    server.put("default/x");
    await settled();
    delivered.length = 0;
    const next = registration.beginWrite(KEY);
    next.succeed(server.put(KEY, { size: 3 }), { sent: { spec: { size: 3 } } });
    server.put("default/b");
    await settled();
    assert.deepEqual(delivered, ["added -→1"]);
  }));

test("A change that arrived before an apply without effect is delivered", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY, { size: 2 });
    await settled();
    assert.deepEqual(delivered, []);
    write.succeed(answer, { sent: { metadata: { labels: {} } } });
    assert.deepEqual(delivered, ["updated 1→2"]);
  }));

test("A failed own write holds no event back [J70]", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    server.put(KEY, { size: 2 });
    await settled();
    write.fail();
    write.fail();
    assert.deepEqual(delivered, ["updated 1→2"]);
  }));

test("An own write with a malformed response holds no event back", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    server.put(KEY, { size: 2 });
    await settled();
    assert.throws(() => write.succeed(null as unknown as Widget));
    assert.deepEqual(delivered, ["updated 1→2"]);
    server.put(KEY, { size: 3 });
    await settled();
    assert.deepEqual(delivered, ["updated 1→2", "updated 2→3"]);
  }));

test("An own write of an object deleted during it does not restore it [DeletionDuringStatusUpdateIT]", () =>
  withInformer(async (parts) => {
    const { server, informer, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY, { size: 2 });
    server.delete(KEY);
    await settled();
    assert.deepEqual(delivered, ["deleted 2→2"]);
    write.succeed(answer);
    assert.equal(informer.has(KEY), false);
    server.put("default/b");
    await settled();
    assert.deepEqual(delivered, ["deleted 2→2", "added -→1"]);
  }));

test("An own write of an object that a relist does not show gives deleted [J64]", () =>
  withInformer(async (parts) => {
    const { server, informer, settled } = parts;
    const { registration, delivered } = await begin(parts);
    server.endWatches("reset");
    const write = registration.beginWrite("default/new");
    write.succeed(server.put("default/new", { size: 5 }));
    assert.equal(informer.has("default/new"), true);
    server.delete("default/new");
    server.compact();
    await settled();
    assert.deepEqual(delivered, ["deleted 5→5"]);
  }));

test("An own write during a relist is not removed by an older list [J69]", () =>
  withInformer(async (parts) => {
    const { server, informer, events, settled, until } = parts;
    const { registration, delivered } = await begin(parts);
    server.watchList = "refused";
    server.script("list", (call) => {
      call.serve();
      // Made after the list was answered, known here before it was read.
      const write = registration.beginWrite("default/new");
      write.succeed(server.put("default/new", { size: 5 }));
    });
    server.endWatches();
    server.put("default/x");
    server.delete("default/x");
    server.compact();
    await until("it lists again", () => events.length > 0);
    await settled();
    assert.equal(informer.get("default/new")?.spec.size, 5);
    assert.deepEqual(events.filter((line) => line.includes("new")), [
      "added default/new",
    ]);
    assert.deepEqual(delivered.filter((line) => line.includes("5")), []);
  }));

test("A relist that may hide a foreign change gives an event of an own write [OnRelistFilterIT]", () =>
  withInformer(async (parts) => {
    const { server, settled, informer, until } = parts;
    const { registration, delivered } = await begin(parts);
    server.endWatches("reset");
    const write = registration.beginWrite(KEY);
    server.put(KEY, { size: 20 });
    write.succeed(server.put(KEY, { size: 2 }));
    server.compact();
    await until("it lists again", () => delivered.length > 0);
    await settled();
    assert.equal(informer.health().watches[0]?.relists, 1);
    assert.deepEqual(delivered, ["updated 1→2"]);
  }));

test("An own write suppresses its echo after a relist that ended before [OnRelistFilterIT]", () =>
  withInformer(async (parts) => {
    const { server, settled, informer } = parts;
    const { registration, delivered } = await begin(parts);
    server.endWatches("reset");
    server.put("default/b");
    server.compact();
    await settled();
    assert.equal(informer.health().watches[0]?.relists, 1);
    delivered.length = 0;
    registration.beginWrite(KEY).succeed(server.put(KEY, { size: 2 }));
    server.put("default/b", { size: 9 });
    await settled();
    assert.deepEqual(delivered, ["updated 1→9"]);
  }));

test("An own write of a lost history hides nothing of the next one", () =>
  withInformer(async (parts) => {
    const { server, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    const stored = server.put(KEY, { size: 2 });
    await settled();
    const metadata = { ...stored.metadata, resourceVersion: "120" };
    write.succeed({ ...stored, metadata, spec: { size: 3 } });
    server.loseData();
    server.endWatches("reset");
    // As after a backup was restored, the object is the same.
    server.put(KEY, { size: 4, uid: stored.metadata.uid as string });
    await settled();
    while (server.version !== "119") server.put(KEY, { size: 4 });
    await settled();
    delivered.length = 0;
    server.put(KEY, { size: 5 });
    assert.equal(server.version, "120");
    await settled();
    assert.deepEqual(delivered, ["updated 4→5"]);
  }));

test("An own write of an object created again gives deleted and added [J68]", () =>
  withInformer(async (parts) => {
    const { server, events, informer, settled } = parts;
    const { registration, delivered } = await begin(parts);
    const write = registration.beginWrite(KEY);
    server.delete(KEY);
    const answer = server.put(KEY, { size: 7 });
    write.succeed(answer);
    assert.deepEqual(events, ["deleted default/a unknown", "added default/a"]);
    assert.equal(informer.get(KEY)?.spec.size, 7);
    server.put("default/b");
    await settled();
    assert.deepEqual(delivered, ["deleted 1→1", "added -→1"]);
    assert.equal(informer.get(KEY)?.spec.size, 7);
  }));

test("An own write of a former object does not change the next one in a list", () =>
  withInformer(async (parts) => {
    const { server, informer, sync } = parts;
    const delivered: string[] = [];
    const registration = informer.addHandler(({ type, object }) => {
      delivered.push(`${type} ${object.spec.size}`);
    });
    const write = registration.beginWrite(KEY);
    const answer = server.put(KEY, { size: 1 });
    server.delete(KEY);
    server.put(KEY, { size: 2 });
    // The response arrives while the list is read, just behind the object.
    informer.addHandler(() => write.succeed(answer));
    await sync();
    assert.deepEqual(delivered, ["added 2"]);
    assert.equal(informer.get(KEY)?.spec.size, 2);
  }));

test("An own write of an object that is not selected does not change the cache [J58]", () =>
  withInformer(async ({ server, informer, sync }) => {
    const registration = informer.addHandler(() => {});
    await sync();
    const labels = { app: "db" };
    registration.beginWrite(KEY).succeed(server.put(KEY, { labels }));
    assert.equal(informer.has(KEY), false);
    registration.beginWrite("other/b").succeed(
      server.put("other/b", { labels: { app: "web" } }),
    );
    assert.equal(informer.has("other/b"), false);
    registration.beginWrite("default/b").succeed(
      server.put("default/b", { labels: { app: "web" } }),
    );
    assert.equal(informer.has("default/b"), true);
  }, {
    labelSelector: { matchLabels: { app: "web" } },
    namespaces: ["default"],
  }));
