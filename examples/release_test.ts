import { type KubernetesObject, untyped } from "@coracle/operator";
import { Deployment } from "@coracle/operator/kinds";
import type { PhasedStatus } from "@coracle/operator/workflows";
import { test } from "node:test";
import { until, withExample } from "./run_example.ts";

const Release = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Release",
});
const KEY = { namespace: "default", name: "shop" };

test(
  "The release operator deploys, upgrades, scales, recovers and reports readiness",
  withExample("release.ts", async ({ client }) => {
    const stable = (generation: number) =>
      until(`generation ${generation} is stable`, async () => {
        const { status } = await client.get(Release, KEY) as
          & KubernetesObject
          & { status?: PhasedStatus };
        return status?.lifecycle === "Stable" &&
          status.observedGeneration === generation;
      });
    const deployed = async () => {
      const { spec } = await client.get(Deployment, KEY);
      const [container] = spec?.template.spec?.containers ?? [];
      return `${container?.image} × ${spec?.replicas}`;
    };
    const expect = (what: string) =>
      until(what, async () => await deployed() === what);

    await client.create(Release, { metadata: KEY, spec: { image: "shop:1" } });
    await stable(1);
    await expect("shop:1 × 1");
    await client.patch(Release, KEY, { spec: { image: "shop:2" } });
    await stable(2);
    await expect("shop:2 × 1");
    await client.patch(Release, KEY, { spec: { replicas: 3 } });
    await stable(3);
    await expect("shop:2 × 3");
    await client.delete(Deployment, KEY);
    await until(
      "it is deployed again",
      async () => await client.find(Deployment, KEY) !== undefined,
    );
    await expect("shop:2 × 3");
  }),
);
