import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";

test("An operator that listens on fixed ports is checked though they are in use", async () => {
  // The port is used by another process of the machine, so to speak.
  const server = createServer((_, response) => response.end("mine"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  process.env["LISTENER_TEST_PORT"] = String(port);
  const texts = new Set<unknown>();
  const { findings, plans } = await checkOperator({
    operator: new URL("./fixtures/listener.ts", import.meta.url),
    plans: 3,
    only: ["crash"],
    workload: [{
      apply: {
        apiVersion: "test.coracle.dev/v1",
        kind: "Hook",
        metadata: { name: "a", namespace: "default" },
        spec: { size: 1 },
      },
    }],
    invariants: {
      eventually: {
        "The page listens": ({ list }) => {
          for (const { metadata, ...map } of list("ConfigMap")) {
            if (metadata?.name !== "a") continue;
            texts.add(
              (map as { data?: Record<string, string> }).data?.["listening"],
            );
          }
        },
      },
    },
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.equal(plans, 3);
  assert.deepEqual([...texts], [
    JSON.stringify({ address: "127.0.0.1", family: "IPv4", port }),
  ]);
  // The sockets of this process are real again.
  const other = createServer();
  await once(other.listen(0, "127.0.0.1"), "listening");
  const bound = (other.address() as AddressInfo).port;
  assert.ok(bound > 0 && bound !== port);
  for (const one of [server, other]) {
    one.close();
    await once(one, "close");
  }
});
