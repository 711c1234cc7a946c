import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest } from "../../core/client/transport/transport.ts";
import { QuietTransport } from "../../testing/quiet_transport.ts";
import { inTime } from "../support/in_time.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Transport whose responses have no end until the test says so. */
function openTransport(): { transport: QuietTransport; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const transport = new QuietTransport({
    send: () =>
      Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {
          yield new Uint8Array(1);
          await promise;
        })(),
        cancel: () => Promise.resolve(),
      }),
    close: () => Promise.resolve(),
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
  await inTime("the server is quiet", Promise.all([read, quiet]), 10_000);
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
