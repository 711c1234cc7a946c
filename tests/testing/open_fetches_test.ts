import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { deadline, nextTurn } from "../../core/clock.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { Operator } from "../../core/operator/operator.ts";
import { followFetches } from "../../dev/testing/open_fetches.ts";
import { withTestCluster } from "../../dev/testing/test_cluster.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
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
    await inTime("the clock settles", clock.settle());
  } finally {
    globalThis.setTimeout = original;
    stop();
  }
});

/** Follows fetches that the test answers. */
async function withFetches(
  play: (parts: {
    readonly clock: VirtualClock;
    readonly asked: PromiseWithResolvers<Response>[];
    readonly stop: () => void;
    /** Lets the clock settle; tells whether it has. */
    readonly settle: () => () => boolean;
  }) => Promise<void>,
): Promise<void> {
  const { fetch } = globalThis;
  const asked: PromiseWithResolvers<Response>[] = [];
  const own = () => {
    const answer = Promise.withResolvers<Response>();
    asked.push(answer);
    return answer.promise;
  };
  globalThis.fetch = own;
  const clock = new VirtualClock();
  const stop = followFetches(clock);
  const settle = () => {
    let isSettled = false;
    void clock.settle().then(() => void (isSettled = true));
    return () => isSettled;
  };
  try {
    await play({ clock, asked, stop, settle });
  } finally {
    for (const { resolve } of asked) resolve(new Response());
    await clock.settle();
    if (globalThis.fetch !== own) stop();
    globalThis.fetch = fetch;
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}

test("a virtual clock waits for a fetch that follows the answer to another", () =>
  withFetches(async ({ asked, settle }) => {
    const done = (async () => {
      await fetch("http://a.test/");
      await turns(2);
      await fetch("http://b.test/");
    })();
    const isSettled = settle();
    await turns(20);
    assert.equal(asked.length, 1);
    assert.equal(isSettled(), false);
    asked[0]?.resolve(new Response());
    await turns(20);
    assert.equal(asked.length, 2);
    assert.equal(isSettled(), false);
    asked[1]?.resolve(new Response());
    await done;
    await turns(20);
    assert.equal(isSettled(), true);
  }));

test("a virtual clock waits for each form of a body", () =>
  withFetches(async ({ asked, settle }) => {
    for (const form of ["arrayBuffer", "blob", "json", "text"] as const) {
      const response = fetch("http://a.test/");
      const { readable, writable } = new TransformStream<Uint8Array>();
      asked.at(-1)?.resolve(new Response(readable));
      const read = (await response)[form]();
      const isSettled = settle();
      await turns(20);
      assert.equal(isSettled(), false, form);
      const writer = writable.getWriter();
      void writer.write(new TextEncoder().encode("{}"));
      await writer.close();
      await read;
      await turns(40);
      assert.equal(isSettled(), true, form);
    }
  }));

test("a clock whose cluster has stopped waits for no fetch", () =>
  withFetches(async ({ settle, stop }) => {
    const other = followFetches(new VirtualClock());
    void fetch("http://a.test/");
    stop();
    const isSettled = settle();
    await turns(20);
    assert.equal(isSettled(), true);
    other();
  }));

test("fetch is followed until the last cluster stops, and once", () => {
  const { fetch } = globalThis;
  const stopFirst = followFetches(new VirtualClock());
  const followed = globalThis.fetch;
  assert.notEqual(followed, fetch);
  const stopOther = followFetches(new VirtualClock());
  assert.equal(globalThis.fetch, followed);
  stopFirst();
  assert.equal(globalThis.fetch, followed);
  stopOther();
  assert.equal(globalThis.fetch, fetch);
  // What a test has set in between stays.
  const stop = followFetches(new VirtualClock());
  const own = () => Promise.resolve(new Response());
  globalThis.fetch = own;
  stop();
  assert.equal(globalThis.fetch, own);
  globalThis.fetch = fetch;
});

test("an answered fetch leaves no timer", () =>
  withFetches(async ({ asked }) => {
    const timers = new Set<unknown>();
    const { setTimeout, clearTimeout } = globalThis;
    Object.assign(globalThis, {
      setTimeout(callback: () => void, delay: number) {
        const timer = setTimeout(callback, delay);
        timers.add(timer);
        return timer;
      },
      clearTimeout(timer: ReturnType<typeof setTimeout>) {
        timers.delete(timer);
        clearTimeout(timer);
      },
    });
    try {
      const response = fetch("http://a.test/");
      assert.equal(timers.size, 1);
      asked[0]?.resolve(new Response());
      await response;
      assert.equal(timers.size, 0);
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout });
    }
  }));

test("fetch is that of the runtime when a mock is restored after the cluster", async () => {
  const { fetch } = globalThis;
  const mock = () => Promise.resolve(new Response("mocked"));
  const stop = followFetches(new VirtualClock());
  const saved = globalThis.fetch;
  globalThis.fetch = mock;
  stop();
  assert.equal(globalThis.fetch, mock);
  // A second cluster of another test, with the mock of the first one.
  const stopOther = followFetches(new VirtualClock());
  assert.equal(
    await (await globalThis.fetch("http://a.test/")).text(),
    "mocked",
  );
  stopOther();
  assert.equal(globalThis.fetch, mock);
  globalThis.fetch = saved;
  assert.equal(globalThis.fetch, fetch);
  const property = Object.getOwnPropertyDescriptor(globalThis, "fetch");
  assert.equal(property?.writable, true);
  // Some libraries restore the property, not the value; the next call does it.
  Object.defineProperty(globalThis, "fetch", { ...property, value: saved });
  await assert.rejects(globalThis.fetch("http://127.0.0.1:1/"));
  assert.equal(globalThis.fetch, fetch);
});
