import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { Operator } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { Gadget } from "../support/operator_fixture.ts";

test(
  "methods that are taken out of a context or a test cluster work",
  withTestCluster(
    {
      cluster: "embedded",
      kinds: [Gadget],
      clock: new VirtualClock(),
      operator(options) {
        const operator = new Operator(options);
        operator.register(Gadget, {
          async reconcile({ metadata: { name, namespace } }, context) {
            const { apply, create, get, list, secondary, secondaries } =
              context;
            const { modify, patch, replace, delete: remove } = context;
            const key = { name, namespace };
            if (await secondary(ConfigMap) !== undefined) return;
            await create(ConfigMap, { metadata: { name }, data: { by: "me" } });
            await patch(ConfigMap, key, { data: { patched: "yes" } });
            await modify(ConfigMap, key, ({ data }) => {
              if (data) data["modified"] = "yes";
            });
            const stored = await get(ConfigMap);
            assert.ok(stored);
            await replace(ConfigMap, { ...stored, immutable: false });
            await apply(ConfigMap, {
              metadata: { name: `${name}-2` },
              data: { by: "me" },
            });
            assert.equal((await secondaries(ConfigMap)).length, 2);
            assert.ok((await list(ConfigMap)).length >= 2);
            await remove(ConfigMap, { name: `${name}-2`, namespace });
          },
        }, { owns: [ConfigMap] });
        return operator;
      },
    },
    async ({ client, namespace, apply, complete, until }) => {
      const key = { namespace, name: "a" };
      await apply({
        apiVersion: "sample.coracle.dev/v1",
        kind: "Gadget",
        metadata: { name: "a" },
        spec: { value: "first" },
      });
      const { data } = await until(async () => {
        const found = await client.find(ConfigMap, key);
        return found?.immutable === undefined ? undefined : found;
      });
      assert.deepEqual(data, { by: "me", patched: "yes", modified: "yes" });
      const second = client.find(ConfigMap, { namespace, name: "a-2" });
      assert.equal(await complete(second), undefined);
    },
  ),
);
