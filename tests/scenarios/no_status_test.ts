import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  defineKind,
  Operator,
  patchStatus,
  setStatus,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { removesDefinitions } from "../support/remove_objects.ts";

const Boat = defineKind({
  group: "no-status.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({}),
});
removesDefinitions(Boat);

for (const rights of ["all", "manifests"] as const) {
  test(
    `a status of a kind without one is refused with advice, with rights: ${rights}`,
    withTestCluster({
      kinds: [Boat],
      clock: new VirtualClock(),
      rights,
      operator(options) {
        const operator = new Operator(options);
        operator.register(ConfigMap, {
          // @ts-expect-error -- a ConfigMap has no status
          reconcile: () => patchStatus({ sails: "set" }),
        });
        operator.register(Boat, {
          // @ts-expect-error -- a Boat has no status
          reconcile: () => setStatus({ sails: "set" }),
        });
        return operator;
      },
    }, async (cluster) => {
      const { client, namespace } = cluster;
      const metadata = { namespace, name: "a" };
      await client.create(ConfigMap, { metadata });
      await client.create(Boat, { metadata, spec: {} });
      const why = (kind: string) =>
        `Cannot write the status of ${kind}: the kind has none, so `;
      await cluster.until(() =>
        cluster.log.includes(
          `${why("ConfigMap")}write an annotation by patchResource()`,
        ) &&
        cluster.log.includes(`${why("Boat")}give defineKind a status, or its`)
      );
      assert.match(cluster.log, /subresources: \{ status: \{\} \}/);
    }),
  );
}
