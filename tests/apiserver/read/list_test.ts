import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { ConfigMap } from "@coracle/operator/kinds";
import { fc } from "../../support/property.ts";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";
const OWN = "labelSelector=own";

async function fill(server: TestServer, names: readonly string[]) {
  for (const name of names) {
    await server.send("POST", C, { metadata: { name, labels: { own: "1" } } });
  }
}

async function namesOf(server: TestServer, path: string): Promise<string[]> {
  const { body } = await server.send("GET", path);
  return body.items.map((item: { metadata: { name: string } }) =>
    item.metadata.name
  );
}

test("a paged list shows one revision despite concurrent writes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.constantFrom("a", "c", "e", "m", "z"), { maxLength: 6 }),
      async (limit, writes) => {
        const server = new TestServer();
        await fill(server, ["a", "b", "c", "d", "e"]);
        const first = await server.send(
          "GET",
          `/api/v1/configmaps?limit=${limit}`,
        );
        const all = await namesOf(server, "/api/v1/configmaps");
        const seen: string[] = [];
        let page = first.body;
        for (;;) {
          for (const item of page.items) seen.push(item.metadata.name);
          for (const name of writes.splice(0, 2)) {
            const { status } = await server.send("DELETE", `${C}/${name}`);
            if (status === 404) await fill(server, [name]);
          }
          assert.equal(
            page.metadata.resourceVersion,
            first.body.metadata.resourceVersion,
          );
          if (!page.metadata.continue) break;
          const token = encodeURIComponent(page.metadata.continue);
          ({ body: page } = await server.send(
            "GET",
            `/api/v1/configmaps?limit=${limit}&continue=${token}`,
          ));
        }
        assert.deepEqual(seen, all);
        server.stop();
      },
    ),
    { numRuns: 25 },
  );
});

test("an expired continue token returns one for an inconsistent list", async () => {
  const server = new TestServer();
  await fill(server, ["a", "b", "c"]);
  const { body } = await server.send("GET", `${C}?limit=1`);
  await fill(server, ["bb"]);
  server.instance.context.store.compact();
  const token = encodeURIComponent(body.metadata.continue);
  const expired = await server.send("GET", `${C}?limit=2&continue=${token}`);
  assert.equal(expired.status, 410);
  assert.equal(expired.body.reason, "Expired");
  const next = encodeURIComponent(expired.body.metadata.continue);
  assert.deepEqual(
    await namesOf(server, `${C}?limit=2&continue=${next}`),
    ["b", "bb"],
  );
  server.stop();
});

test("a list at a compacted revision answers 410", async () => {
  const server = new TestServer();
  await fill(server, ["a"]);
  const { body } = await server.send("GET", C);
  await fill(server, ["b"]);
  const at =
    `resourceVersion=${body.metadata.resourceVersion}&resourceVersionMatch=Exact&${OWN}`;
  assert.deepEqual(await namesOf(server, `${C}?${at}`), ["a"]);
  server.instance.context.store.compact();
  assert.equal((await server.send("GET", `${C}?${at}`)).status, 410);
  server.stop();
});

test("a list by name reads one object and applies other selectors", async () => {
  const server = new TestServer();
  await fill(server, ["a", "b"]);
  const by = (field: string, label = "own") =>
    namesOf(
      server,
      `${C}?fieldSelector=${encodeURIComponent(field)}&labelSelector=${label}`,
    );
  assert.deepEqual(await by("metadata.name=a"), ["a"]);
  assert.deepEqual(await by("metadata.name=a", "none"), []);
  assert.deepEqual(await by("metadata.name=a,metadata.name=b"), []);
  server.stop();
});

test("a list that is read in-process has objects over 256 KiB whole", async () => {
  const server = await ApiServer.start();
  try {
    const { client } = server;
    const sizes = { a: 1_000, b: 300_000, c: 1_000, d: 200_000, e: 200_000 };
    for (const [name, size] of Object.entries(sizes)) {
      await client.create(ConfigMap, {
        metadata: { name, namespace: "default", labels: { own: "1" } },
        data: { text: name.repeat(size) },
      });
    }
    const { items } = await client.list(ConfigMap, { labelSelector: "own" });
    const texts = items.map(({ data }) => data?.["text"] ?? "");
    assert.deepEqual(
      texts.map((text) => [text[0], text.length]),
      Object.entries(sizes),
    );
  } finally {
    await server.stop();
  }
});
