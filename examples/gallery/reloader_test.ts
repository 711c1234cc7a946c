import { ConfigMap, Deployment, Secret } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./reloader.ts";

test(
  "A Deployment restarts when what it uses has changed, and only then",
  withTestCluster({ operator, clock: new VirtualClock() }, async (cluster) => {
    const { client, clock, namespace } = cluster;
    const key = (name: string) => ({ namespace, name });
    const web = key("web");
    const restarts = async () => {
      const { spec } = await client.get(Deployment, web);
      return spec?.template.metadata?.annotations?.[
        "gallery.coracle.dev/config-hash"
      ];
    };
    await client.create(ConfigMap, {
      metadata: key("texts"),
      data: { a: "1" },
    });
    await client.create(Secret, {
      metadata: key("bank"),
      data: { pin: "MQ==" },
    });
    await client.create(ConfigMap, { metadata: key("other"), data: {} });
    const labels = { app: "web" };
    const valueFrom = { secretKeyRef: { name: "bank", key: "pin" } };
    await client.create(Deployment, {
      metadata: {
        ...web,
        annotations: { "reloader.stakater.com/auto": "true" },
      },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            volumes: [{ name: "texts", configMap: { name: "texts" } }],
            containers: [{
              name: "web",
              image: "web",
              env: [{ name: "PIN", valueFrom }],
            }],
          },
        },
      },
    });
    await clock.advance("1m");
    await client.patch(ConfigMap, key("other"), { data: { a: "2" } });
    await clock.advance("1m");
    assert.equal(await restarts(), undefined);

    await client.patch(ConfigMap, key("texts"), { data: { a: "2" } });
    await cluster.until(restarts);
    const first = await restarts();
    await client.patch(Secret, key("bank"), { data: { pin: "Mg==" } });
    await cluster.until(async () => await restarts() !== first);
    const second = await restarts();

    const annotations = {
      "reloader.stakater.com/auto": null,
      "configmap.reloader.stakater.com/reload": "other",
    };
    await client.patch(Deployment, web, { metadata: { annotations } });
    await client.patch(ConfigMap, key("other"), { data: { a: "3" } });
    await cluster.until(async () => await restarts() !== second);
  }),
);
