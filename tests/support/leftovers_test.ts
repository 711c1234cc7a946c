import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import { Leftovers } from "../cluster/leftovers.ts";
import { temporaryFolder } from "./temporary_folder.ts";

const Boat = defineKind({
  group: "leftovers.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({}),
});

test("Leftovers names what a file leaves, and waits for what is being deleted", async () => {
  let listed = () => {};
  const server = await ApiServer.start({
    audit({ verb, resource }) {
      if (verb === "list" && resource === "configmaps") listed();
    },
  });
  const { client } = server;
  const key = { namespace: "default", name: "slow" };
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
  await client.create(ConfigMap, { metadata: { ...key, name: "before" } });
  const leftovers = await Leftovers.of(kubeconfig);
  try {
    await client.create(Namespace, { metadata: { name: "mine" } });
    await client.create(ConfigMap, {
      metadata: { namespace: "mine", name: "a" },
    });
    await installCrd(client, Boat);
    await client.create(Boat, { metadata: key, spec: {} });
    assert.deepEqual(await leftovers.since(0), [
      "/api/v1/namespaces/mine",
      "/api/v1/namespaces/mine/configmaps/a",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.leftovers.coracle.dev",
      "/apis/leftovers.coracle.dev/v1/namespaces/default/boats/slow",
    ]);

    const finalizers = ["test.coracle.dev/later"];
    await client.create(ConfigMap, { metadata: { ...key, finalizers } });
    await client.delete(ConfigMap, key);
    const seen = new Promise<void>((resolve) => listed = resolve);
    const left = leftovers.since();
    await seen;
    await client.patch(ConfigMap, key, { metadata: { finalizers: null } });
    assert.deepEqual(await left, [], "nor what the file before has left");
  } finally {
    await leftovers.close();
    await server.stop();
  }
});
