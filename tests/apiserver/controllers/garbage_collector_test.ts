import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";
import { workloadTest } from "../support/workload_case.ts";

test(
  "the foreground deletion of a cycle of owners ends",
  workloadTest({}, async ({ client, clock }) => {
    const names = ["a", "b", "c"];
    const uids = new Map<string, string>();
    for (const name of names) {
      const key = { namespace: "default", name };
      const { metadata } = await client.create(ConfigMap, { metadata: key });
      uids.set(name, metadata.uid ?? "");
    }
    for (const [index, name] of names.entries()) {
      const owner = names[(index + 2) % 3] ?? "";
      await client.patch(ConfigMap, { namespace: "default", name }, {
        metadata: {
          ownerReferences: [{
            apiVersion: "v1",
            kind: "ConfigMap",
            name: owner,
            uid: uids.get(owner) ?? "",
            controller: true,
            blockOwnerDeletion: true,
          }],
        },
      });
    }
    await client.delete(ConfigMap, { namespace: "default", name: "a" }, {
      propagationPolicy: "Foreground",
    });
    await clock.advance(10);
    const { items } = await client.list(ConfigMap, { namespace: "default" });
    assert.deepEqual(items.map(({ metadata }) => metadata.name), [
      "kube-root-ca.crt",
    ]);
  }),
);
