import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { Client, systemClock } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { ApiServer } from "@coracle/dev/apiserver";
import { readCluster } from "../../../dev/testing/plan/read_cluster.ts";
import { mixedNote, Snapshot } from "../../../dev/testing/plan/snapshot.ts";

/** Objects of three pages. */
const OBJECTS = 1_001;

const server = await ApiServer.start({ port: false });
after(() => server.stop());
afterEach(() => server.faults.clear());
const namespace = "default";
const nameOf = (index: number) => `map-${String(index).padStart(4, "0")}`;
const names = Array.from({ length: OBJECTS }, (_, index) => nameOf(index));
for (const name of names) {
  await server.client.create(ConfigMap, { metadata: { namespace, name } });
}

/** Reads the ConfigMaps; `between` runs after each page of them. */
async function readMaps(between?: (page: number) => Promise<void>) {
  const { transport } = server;
  const client = new Client({ transport }, { clock: systemClock });
  const snapshot = new Snapshot();
  let page = 0;
  const info = await readCluster({ client, transport }, {
    async add(resource, items) {
      snapshot.add(resource, items);
      if (resource.plural === "configmaps") await between?.(page++);
    },
  }, {
    kinds: [{ group: "", kind: "ConfigMap" }],
    namespaces: [namespace],
    hidesSecrets: false,
    now: Date.now,
  });
  const objects = [...snapshot.end(info).objects("/configmaps")];
  const found = info.resources.find(({ plural }) => plural === "configmaps");
  assert.equal(found?.objects, objects.length);
  return {
    names: objects.map(({ object }) => object.metadata.name)
      .filter((name) => name.startsWith("map-")),
    note: mixedNote(info),
    unread: info.unread,
  };
}

const cutList = (skip: number, count: number) =>
  server.faults.add({
    verb: "list",
    resource: "configmaps",
    skip,
    count,
    effect: { cutAfter: 2_000 },
  });

test("cluster read while the connection breaks: each object once, of one state", async () => {
  const first = cutList(0, 2);
  const second = cutList(3, 4);
  const { note, unread, ...read } = await readMaps();
  assert.deepEqual([first.hits, second.hits], [2, 4]);
  assert.deepEqual(read.names, names);
  assert.deepEqual([note, unread], [undefined, []]);
});

test("cluster read while the connection breaks always: an error, no snapshot", async () => {
  const fault = cutList(1, 100);
  await assert.rejects(readMaps(), Error);
  assert.equal(fault.hits, 5);
});

test("cluster read, its state expires: the rest once, said to be newer", async () => {
  const passed = { namespace, name: nameOf(3) };
  const coming = { namespace, name: nameOf(700) };
  const { note, unread, ...read } = await readMaps(async (page) => {
    if (page !== 0) return;
    await server.client.delete(ConfigMap, passed);
    await server.client.delete(ConfigMap, coming);
    server.faults.compact();
  });
  for (const metadata of [passed, coming]) {
    await server.client.create(ConfigMap, { metadata });
  }
  assert.deepEqual(read.names, names.filter((name) => name !== coming.name));
  assert.match(
    note ?? "",
    /the later objects are of a newer one: configmaps\.$/,
  );
  assert.deepEqual(unread, []);
});

test("cluster read, its state expires without a remainder: read in part, by name", async () => {
  server.faults.add({
    verb: "list",
    resource: "configmaps",
    effect: { expired: true },
  });
  const { unread, ...read } = await readMaps();
  assert.deepEqual(read.names, names.slice(0, read.names.length));
  assert.equal(unread.length, 1);
  assert.equal(unread[0]?.resource, "configmaps");
  assert.match(unread[0]?.why ?? "", /^read in part, .* too old/);
});
