import { withTestCluster } from "@coracle/dev";
import { Namespace, Pod, ResourceQuota } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./pod_policies.ts";

test(
  "Pods of teams are refused by policies and by what their namespace has",
  withTestCluster({
    operator: (options) => operator({ ...options, probes: undefined }),
  }, async (cluster) => {
    const { client, namespace } = cluster;
    await client.patch(Namespace, { name: namespace }, {
      metadata: { labels: { team: "sea" } },
    });
    const make = (image: string) =>
      client.create(Pod, {
        metadata: { namespace, name: "", generateName: "a-" },
        spec: { containers: [{ name: "main", image }] },
      }, { dryRun: true });
    const refusal = (image: string) => make(image).then(() => "", String);
    await cluster.until(async () =>
      /images must come from/.test(await refusal("busybox"))
    );
    assert.match(
      await refusal("registry.sample/shop"),
      /must have a ResourceQuota/,
    );
    await client.create(ResourceQuota, {
      metadata: { namespace, name: "all" },
    });
    const { spec } = await make("registry.sample/shop");
    assert.equal(spec?.automountServiceAccountToken, false);
  }),
);

test("Two of the rules are policies, and one needs a webhook", () => {
  const places = operator().admission().map(({ place }) => place);
  assert.deepEqual(places, ["policy", "policy", "webhook"]);
});
