import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest } from "@coracle/operator/client";
import { QuietTransport } from "../../dev/testing/quiet_transport.ts";
import { inTime } from "../support/in_time.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Transport whose responses have a body of their own. */
function transportWith(
  body: () => AsyncIterable<Uint8Array>,
): QuietTransport {
  const cancel = () => Promise.resolve();
  return new QuietTransport({
    send: () =>
      Promise.resolve({ status: 200, headers: {}, body: body(), cancel }),
    close: () => Promise.resolve(),
  });
}

/** Transport whose responses have no end until the test says so. */
function openTransport(): { transport: QuietTransport; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const transport = transportWith(async function* () {
    yield new Uint8Array(1);
    await promise;
  });
  return { transport, end: resolve };
}

/** A value after ten times the silence after which a server counts as quiet. */
function later<T>(value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), 500));
}

/** Whether a server is quiet while the response to a request has not ended. */
async function isQuietDuring(path: string): Promise<boolean> {
  const { transport, end } = openTransport();
  const request: HttpRequest = { method: "GET", path, headers: {} };
  const { body } = await transport.send(request);
  const read = (async () => {
    for await (const _ of body);
  })();
  const quiet = transport.quiet();
  const isQuiet = await Promise.race([quiet.then(() => true), later(false)]);
  end();
  await inTime("the server is quiet", Promise.all([read, quiet]));
  return isQuiet;
}

test("A server is quiet while a watch is open and delivers nothing", async () => {
  assert.equal(await isQuietDuring("/api/v1/configmaps?watch=1"), true);
  assert.equal(await isQuietDuring(`${DEFINITIONS}?watch=true`), true);
});

test("A server is not quiet before the answer to a request has ended", async () => {
  assert.equal(await isQuietDuring("/api/v1/configmaps"), false);
});

test("A server is not quiet while a client waits for one definition", async () => {
  const one = "fieldSelector=metadata.name%3Droutes.sample.coracle.dev";
  const watch = `${DEFINITIONS}?watch=true&${one}`;
  assert.equal(await isQuietDuring(watch), false);
  // The watch of an informer lasts.
  const lasting = `${watch}&allowWatchBookmarks=true`;
  assert.equal(await isQuietDuring(lasting), true);
});

test("A server is quiet after an answer whose reader has left it", async () => {
  const { transport } = openTransport();
  const request = { method: "GET", path: "/api/v1/pods", headers: {} } as const;
  const { body } = await transport.send(request);
  for await (const _ of body) break;
  assert.equal(
    await Promise.race([transport.quiet().then(() => true), later(false)]),
    true,
  );
});

/** Whether a server is quiet at once; waits until it is. */
async function isQuietAtOnce(transport: QuietTransport): Promise<boolean> {
  const quiet = transport.quiet().then(() => true);
  const turn = new Promise<false>((resolve) => setImmediate(resolve, false));
  const isQuiet = await Promise.race([quiet, turn]);
  await inTime("the server is quiet", quiet);
  return isQuiet;
}

const PODS: HttpRequest = { method: "GET", path: "/api/v1/pods", headers: {} };
const WATCH: HttpRequest = { ...PODS, path: `${PODS.path}?watch=true` };

test("A server is quiet a while after its last byte, and at once without one", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const transport = transportWith(async function* () {
    await promise;
    yield new Uint8Array(1);
    await new Promise(() => {});
  });
  assert.equal(await isQuietAtOnce(transport), true);
  const { body } = await transport.send(WATCH);
  assert.equal(await isQuietAtOnce(transport), false);
  assert.equal(await isQuietAtOnce(transport), true);
  const reading = body[Symbol.asyncIterator]().next();
  resolve();
  await reading;
  assert.equal(await isQuietAtOnce(transport), false);
});

test("A server is quiet a while after the end of a long answer, or its failure", async () => {
  const { transport, end } = openTransport();
  const { body } = await transport.send(PODS);
  const read = (async () => {
    for await (const _ of body);
  })();
  await later(undefined);
  end();
  await read;
  assert.equal(await isQuietAtOnce(transport), false);
  const failing = new QuietTransport({
    send: () => Promise.reject(new Error("reset")),
    close: () => Promise.resolve(),
  });
  await assert.rejects(failing.send(PODS), /reset/);
  assert.equal(await isQuietAtOnce(failing), false);
});

test("A server is quiet after an answer that is cancelled, unread", async () => {
  const { transport } = openTransport();
  await (await transport.send(PODS)).cancel();
  await isQuietAtOnce(transport);
});

test("An answer ends once, however it ends, and a watch has ended before", async () => {
  for (const ended of [PODS, WATCH]) {
    const answers = [[], [new Promise<void>(() => {})]];
    const transport = new QuietTransport({
      send: () => {
        const waits = answers.shift() ?? [];
        return Promise.resolve({
          status: 200,
          headers: {},
          body: (async function* () {
            yield new Uint8Array(1);
            await Promise.all(waits);
          })(),
          cancel: () => Promise.resolve(),
        });
      },
      close: () => Promise.resolve(),
    });
    const response = await transport.send(ended);
    for await (const _ of response.body);
    await response.cancel();
    await isQuietAtOnce(transport);
    const open = await transport.send(PODS);
    const quiet = transport.quiet().then(() => true);
    assert.equal(await Promise.race([quiet, later(false)]), false);
    await open.cancel();
    assert.equal(await inTime("the server is quiet", quiet), true);
  }
});

test("A watch of one object of another kind than definitions lasts", async () => {
  const one = "watch=1&fieldSelector=metadata.name%3Da";
  assert.equal(await isQuietDuring(`/api/v1/configmaps?${one}`), true);
});

test("A quiet transport cancels and closes what it sends through", async () => {
  const done: string[] = [];
  const note = (text: string) => Promise.resolve(void done.push(text));
  const transport = new QuietTransport({
    send: () =>
      Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {})(),
        cancel: () => note("cancel"),
      }),
    close: () => note("close"),
  });
  await (await transport.send(PODS)).cancel();
  await transport.close();
  assert.deepEqual(done, ["cancel", "close"]);
});
