import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { Deployment } from "@coracle/operator/kinds";
import { planFor } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";

/** More sites than an operator reconciles at a time. */
const SITES = 16;

test("plan: each object of many sees both Pods of its rollout ready", async () => {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, simulate: true, clock });
  try {
    const { client } = server;
    const installed = installCrd(client, Site);
    await clock.advance("1s");
    await installed;
    for (let index = 0; index < SITES; index++) {
      const metadata = { namespace: "default", name: `site-${index}` };
      const labels = { app: metadata.name };
      await client.create(Site, { metadata, spec: { html: "<p>" } });
      await client.create(Deployment, {
        metadata,
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "web", image: "nginx:1.28" }] },
          },
        },
      });
    }
    await clock.advance("10s");
    const { changes } = await planFor(server.transport, "site_rollout", {
      duration: 20_000,
    });
    const levels = changes.flatMap(({ kind, fields }) =>
      kind === "Site" ? fields.map(({ after }) => after) : []
    );
    assert.deepEqual(levels, Array(SITES).fill({ level: 2 }));
  } finally {
    await server.stop();
  }
});
