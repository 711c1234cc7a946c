import { untyped } from "@coracle/operator";
import type { Conditioned } from "@coracle/operator/workflows";
import assert from "node:assert/strict";
import { test } from "node:test";
import { startArtifactServer } from "./mirror_server.ts";
import { until, withExample } from "./run_example.ts";

const Website = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Website",
  plural: "websites",
  scope: "Namespaced",
});

test(
  "The uptime example reports whether a site answers, and errors of its spec",
  withExample("uptime.ts", async ({ client }) => {
    const site = await startArtifactServer();
    try {
      const key = { namespace: "default", name: "site" };
      const ready = (expected: string) =>
        until(expected, async () => {
          const { status } = await client.get(Website, key) as Conditioned;
          const found = status?.conditions?.find(({ type }) =>
            type === "Ready"
          );
          return `${found?.status} ${found?.reason}` === expected && found;
        });
      const url = `http://127.0.0.1:${site.port}/`;
      await client.create(Website, { metadata: key, spec: { url } });
      const down = await ready("False Unreachable");
      assert.equal(down.message, "It answers 404");
      site.offer("/", "hello");
      await ready("True Answers");
      await client.patch(Website, key, { spec: { url: "no URL" } });
      await ready("False InvalidURL");
    } finally {
      await site.stop();
    }
  }),
);
