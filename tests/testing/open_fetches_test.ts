import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { deadline } from "../../core/clock.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { Operator } from "../../core/operator/operator.ts";
import { followFetches } from "../../testing/open_fetches.ts";
import { withTestCluster } from "../../testing/test_cluster.ts";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { inTime } from "../support/in_time.ts";
import { Gadget } from "../support/operator_fixture.ts";

/** Answers slowly in real time, longer than a few turns of the event loop. */
const SLOW_MS = 30;

/** Runs an operator whose runs take at most a second, until the status is there. */
async function statusFrom(
  answer: (response: ServerResponse) => void,
): Promise<string | undefined> {
  const server: Server = createServer((_, response) => answer(response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let value: string | undefined;
  try {
    await withTestCluster({
      cluster: "embedded",
      kinds: [Gadget],
      clock: new VirtualClock(),
      operator(options) {
        const operator = new Operator(options);
        operator.register(Gadget, {
          async reconcile(_gadget, { clock }) {
            const read = fetch(url).then((response) => response.text());
            return patchStatus({
              value: await deadline(read, 1_000, { clock }),
            });
          },
          onError: () => patchStatus({ value: "too late" }),
        });
        return operator;
      },
    }, async ({ apply, client, namespace, until }) => {
      await apply({
        apiVersion: "sample.coracle.dev/v1",
        kind: "Gadget",
        metadata: { name: "a" },
        spec: { value: "x" },
      });
      value = await until(async () =>
        (await client.get(Gadget, { namespace, name: "a" })).status?.value
      );
    })();
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return value;
}

test("a virtual clock of a test cluster waits for headers by fetch", async () => {
  const answer = (response: ServerResponse) =>
    void setTimeout(() => response.end("here"), SLOW_MS);
  assert.equal(await statusFrom(answer), "here");
});

test("a virtual clock of a test cluster waits for a body by fetch", async () => {
  const answer = (response: ServerResponse) => {
    response.write("he");
    setTimeout(() => response.end("re"), SLOW_MS);
  };
  assert.equal(await statusFrom(answer), "here");
});

test("a request that is never answered does not stop a virtual clock", async () => {
  assert.equal(await statusFrom(() => {}), "too late");
});

test("fetch is that of the runtime when the test cluster is stopped", async () => {
  const { fetch } = globalThis;
  await statusFrom((response) => response.end("here"));
  assert.equal(globalThis.fetch, fetch);
});

test("a virtual clock does not wait for a request that has failed", async () => {
  const clock = new VirtualClock();
  const { setTimeout: original } = globalThis;
  const withoutLimit = (callback: () => void, pause?: number) =>
    pause === 500 ? undefined : original(callback, pause);
  const stop = followFetches(clock);
  try {
    Object.assign(globalThis, { setTimeout: withoutLimit });
    const failed = fetch("http://127.0.0.1:1/");
    globalThis.setTimeout = original;
    await assert.rejects(failed);
    await inTime("the clock settles", clock.settle(), 10_000);
  } finally {
    globalThis.setTimeout = original;
    stop();
  }
});
