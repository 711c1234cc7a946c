import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { defineKind, Operator } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { removesDefinitions } from "../support/remove_objects.ts";

const texts = z.record(z.string(), z.string());
const Boat = defineKind({
  group: "emptied.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({
    name: z.string(),
    flags: texts.optional(),
    crew: z.object({ jobs: texts.optional() }).optional(),
    ropes: z.array(z.string()).optional().meta({
      "x-kubernetes-list-type": "set",
    }),
  }),
});
removesDefinitions(Boat);

test(
  "ctx.apply empties a map of a custom resource, and leaves entries of others",
  withTestCluster({
    kinds: [Boat],
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(ConfigMap, {
        async reconcile({ data = {} }, ctx) {
          await ctx.apply(Boat, {
            metadata: { name: "a" },
            spec: {
              name: "a",
              flags: data,
              crew: { jobs: data },
              ropes: Object.keys(data),
            },
          });
        },
      }, { name: "boats", owns: [Boat], fieldSelector: "metadata.name=a" });
      return operator;
    },
  }, async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "a" };
    const spec = async () => (await client.find(Boat, key))?.spec;
    await client.create(ConfigMap, { metadata: key, data: { red: "1" } });
    await cluster.until(async () => (await spec())?.flags?.["red"] === "1");
    await client.apply(Boat, {
      metadata: key,
      spec: { name: "a", crew: { jobs: { cook: "Ann" } } },
    }, { fieldManager: "others", force: true });

    await client.patch(ConfigMap, key, { data: { red: null } });
    await cluster.until(async () =>
      Object.keys((await spec())?.flags ?? { red: 1 }).length === 0
    );
    assert.deepEqual(await spec(), {
      name: "a",
      flags: {},
      crew: { jobs: { cook: "Ann" } },
    });
    assert.doesNotMatch(cluster.log, /failed/);

    await client.patch(ConfigMap, key, { data: { blue: "2" } });
    await cluster.until(async () => (await spec())?.flags?.["blue"] === "2");
  }),
);
