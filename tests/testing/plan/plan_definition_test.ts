import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { planFor } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";

const server = await ApiServer.start({ port: false });
after(() => server.stop());
const { client, transport } = server;
await installCrd(client, Site);
await client.create(Site, {
  metadata: { namespace: "default", name: "alpha" },
  spec: { html: "<p>" },
});

test("plan: fields that a changed definition drops and fills in", async () => {
  const { changes } = await planFor(transport, "site_definition");
  const [change, ...others] = changes.filter(({ kind }) => kind === "Site");
  assert.deepEqual(others, []);
  assert.equal(change?.action, "change");
  assert.equal(change?.cause, "the definition of Site");
  assert.deepEqual(change?.fields, [
    { path: ".spec.html", before: "<p>" },
    { path: ".spec.replicas", before: 1 },
    { path: ".spec.tier", after: "free" },
  ]);
  assert.deepEqual(
    changes.filter(({ kind }) => kind !== "Site").map(({ kind }) => kind),
    ["CustomResourceDefinition"],
  );
});
