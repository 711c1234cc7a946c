/**
 * Watches of one client that share connections of HTTP/2 to the embedded API
 * server.
 *
 * @module
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, test as nodeTest } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  Client,
  type Clock,
  configFromText,
  Informer,
  systemClock,
} from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { currentRuntime } from "../../../core/client/transport/runtime.ts";
import { seededRandom } from "../../../dev/apiserver/random.ts";
import { inTime } from "../../support/in_time.ts";
import { until } from "../../support/until.ts";

const server = await ApiServer.start();
after(() => server.stop());

/** Defines a test on Node, whose client alone uses HTTP/2. */
function test(title: string, run: () => Promise<void>): void {
  if (currentRuntime() === "node") nodeTest(title, run);
}

/** Runs a test with a client of the server through a relay of TCP. */
async function withRelay(
  run: (client: Client, connections: ReadonlySet<Socket>) => Promise<void>,
): Promise<void> {
  const connections = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(Number(new URL(server.url).port), "127.0.0.1");
    connections.add(near);
    near.on("close", () => connections.delete(near) && far.destroy());
    far.on("close", () => near.destroy());
    for (const end of [near, far]) end.on("error", () => {});
    near.pipe(far).pipe(near);
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  const { port } = relay.address() as AddressInfo;
  const client = new Client(
    await configFromText(
      server.kubeconfig.replace(server.url, `https://127.0.0.1:${port}`),
    ),
  );
  try {
    await run(client, connections);
  } finally {
    await client.close();
    relay.close();
  }
}

test("A connection that dies takes no watch but its own, and they resume apart", () =>
  withRelay(async (client, connections) => {
    const pauses: number[] = [];
    const clock: Clock = {
      ...systemClock,
      setTimer(callback, delay) {
        if (delay >= 800 && delay <= 1_600) pauses.push(delay);
        return systemClock.setTimer(callback, delay);
      },
    };
    const { next: random } = seededRandom(1);
    const informers = Array.from(
      { length: 120 },
      (_, index) =>
        new Informer(client, ConfigMap, {
          namespaces: [`team-${index}`],
          clock,
          random: () => random(),
        }),
    );
    try {
      await inTime("all sync", Promise.all(informers.map((i) => i.start())));
      const open = () => server.watchCounts.open;
      await until("all watch", () => open() === informers.length);
      // The first has a hundred streams, the second the rest; others are short.
      assert.ok(connections.size <= 20, `${connections.size} connections`);
      pauses.length = 0;
      const [first] = connections;
      first?.destroy();
      await until("its watches have ended", () => open() <= 20);
      assert.equal(open(), 20);
      await until("they resume", () => open() === informers.length);
      assert.equal(pauses.length, 100);
      const sorted = pauses.toSorted((a, b) => a - b);
      const [early = 0, late = 0] = [sorted[10], sorted[89]];
      assert.ok(late - early > 500, `from ${early} to ${late} ms`);
    } finally {
      await Promise.all(informers.map((informer) => informer.close()));
    }
  }));

test("A watch that nobody reads stalls no other watch of its connection", () =>
  withRelay(async (client, connections) => {
    const labels = { app: "slow-reader" };
    const selected = { namespace: "default", labelSelector: "app=slow-reader" };
    const slow = client.watch(ConfigMap, selected);
    const fast = client.watch(ConfigMap, selected);
    const value = "x".repeat(400_000);
    const create = (name: string) =>
      server.client.create(ConfigMap, {
        metadata: { namespace: "default", name, labels },
        data: { value },
      });
    const first = Promise.all([slow.next(), fast.next()]);
    await until("both watch", () => server.watchCounts.open === 2);
    await create("first");
    await inTime("the first event", first);
    assert.equal(connections.size, 1);
    // More than the windows and buffers of the stream that is not read.
    for (let number = 0; number < 10; number++) {
      await create(`more-${number}`);
      const event = await inTime("the next event", fast.next());
      assert.equal(event.value?.object.metadata.name, `more-${number}`);
    }
    for (let number = 0; number < 10; number++) {
      const event = await inTime("what waited", slow.next());
      assert.equal(event.value?.object.metadata.name, `more-${number}`);
    }
    await Promise.all([slow.return(), fast.return()]);
  }));
