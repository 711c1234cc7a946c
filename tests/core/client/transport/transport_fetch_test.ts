import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { HttpTransport } from "../../../../core/client/transport/transport.ts";
import { openHttpTransport as openForBun } from "../../../../core/client/transport/transport_bun.ts";
import { openHttpTransport as openForDeno } from "../../../../core/client/transport/transport_deno.ts";
import { FetchTransport } from "../../../../core/client/transport/transport_fetch.ts";
import type { TransportOptions } from "../../../../core/client/transport/transport_options.ts";
import { inTime } from "../../../support/in_time.ts";
import { get, text } from "../../../support/transport_case.ts";

const SERVER = "http://cluster.example:8080/prefix";
const TLS: TransportOptions = {
  server: SERVER,
  certificateAuthority: "authority",
  certificate: "certificate",
  key: "key",
  proxyUrl: "http://j%40ne:p%40ss@proxy.example:3128",
};

/** Call of `fetch`. */
interface Call {
  readonly url: string;
  readonly init: Record<string, unknown> & { readonly signal: AbortSignal };
}

/** Replaces the `fetch` of the runtime until the end of the scope. */
function stubFetch(answer: (call: Call) => Response | Promise<Response>) {
  const { fetch } = globalThis;
  const calls: Call[] = [];
  globalThis.fetch = (async (url: string, init: Call["init"]) => {
    calls.push({ url, init });
    return await answer({ url, init });
  }) as typeof globalThis.fetch;
  return {
    calls,
    [Symbol.dispose]: () => {
      globalThis.fetch = fetch;
    },
  };
}

/** Body that delivers its chunks and then stays silent, and what ended it. */
function silentBody(chunks: readonly string[] = []) {
  const encoder = new TextEncoder();
  const ended: unknown[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
    },
    cancel: (reason) => void ended.push(reason),
  });
  return { body, ended };
}

/** Transport over the `fetch` of a test, and how often its runtime was closed. */
function transportOf(server = SERVER) {
  const runtime = { init: { client: "ours" }, closed: 0, close: () => {} };
  runtime.close = () => void runtime.closed++;
  return { runtime, transport: new FetchTransport({ server }, runtime) };
}

test("Transport of Deno has a client with certificates, proxy and HTTP/1.1", async () => {
  const scope = globalThis as { Deno?: { createHttpClient: unknown } };
  const own = scope.Deno;
  const asked: unknown[] = [];
  let closed = 0;
  const client = { close: () => void closed++ };
  const createHttpClient = (options: unknown) => {
    asked.push(options);
    return client;
  };
  const real = own?.createHttpClient;
  if (own === undefined) scope.Deno = { createHttpClient };
  else own.createHttpClient = createHttpClient;
  using fetching = stubFetch(() => new Response("ok"));
  try {
    const transport = await openForDeno(TLS);
    assert.equal(await text(await transport.send(get("/a"))), "ok");
    await transport.close();
    await transport.close();
    const plain = await openForDeno({
      server: SERVER,
      proxyUrl: "http://proxy.example:3128",
    });
    await plain.close();
    await (await openForDeno({ server: SERVER })).close();
  } finally {
    if (own === undefined) delete scope.Deno;
    else own.createHttpClient = real;
  }
  const [call] = fetching.calls;
  assert.equal(call?.url, `${SERVER}/a`);
  assert.equal(call?.init["client"], client);
  assert.equal(call?.init["redirect"], "manual");
  const url = "http://proxy.example:3128/";
  assert.deepEqual(asked, [
    {
      caCerts: ["authority"],
      cert: "certificate",
      key: "key",
      http2: false,
      proxy: { url, basicAuth: { username: "j@ne", password: "p@ss" } },
    },
    { http2: false, proxy: { url } },
    { http2: false, proxy: undefined },
  ]);
  assert.equal(closed, 3);
});

test("Transport of Bun has certificates, proxy and no time limit in each call", async () => {
  using fetching = stubFetch(() => new Response("ok"));
  const transport = await openForBun({ ...TLS, serverName: "internal" });
  assert.equal(await text(await transport.send(get("/a"))), "ok");
  await transport.close();
  const plain = await openForBun({ server: SERVER });
  assert.equal(await text(await plain.send(get("/b"))), "ok");
  await plain.close();
  const [first, second] = fetching.calls;
  assert.deepEqual(first?.init["tls"], {
    ca: "authority",
    allowPartialTrustChain: true,
    cert: "certificate",
    key: "key",
    rejectUnauthorized: true,
    servername: "internal",
    serverName: "internal",
  });
  assert.equal(first?.init["proxy"], TLS.proxyUrl);
  assert.equal(first?.init["redirect"], "manual");
  assert.equal(second?.url, `${SERVER}/b`);
  assert.equal(second !== undefined && "proxy" in second.init, false);
  for (const { init } of fetching.calls) assert.equal(init["timeout"], false);
});

test("FetchTransport ends a body that is being read when its signal aborts", async () => {
  const { body, ended } = silentBody(["first"]);
  // As in Deno, nothing but the body notices the abort.
  using _fetching = stubFetch(() => new Response(body));
  const { transport } = transportOf();
  const controller = new AbortController();
  const { signal } = controller;
  const response = await transport.send(get("/watch", { signal }));
  const reading = response.body[Symbol.asyncIterator]();
  await reading.next();
  const next = reading.next();
  const reason = new Error("enough");
  controller.abort(reason);
  await inTime("it ends", assert.rejects(() => next, reason), 5_000);
  assert.deepEqual(ended, [reason]);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await transport.close();
});

test("FetchTransport reads a short body that is cancelled, and ends a long one", async () => {
  const long = silentBody();
  const endless = silentBody();
  let read = 0;
  const short = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (read++ === 2) return controller.close();
      controller.enqueue(new Uint8Array(1 << 15));
    },
  }, { highWaterMark: 0 });
  const length = (bytes: number) => ({ "content-length": String(bytes) });
  const answers: Record<string, Response> = {
    short: new Response(short, { headers: length(1 << 16) }),
    long: new Response(long.body, { headers: length((1 << 16) + 1) }),
    endless: new Response(endless.body),
    broken: new Response(
      new ReadableStream({ pull: () => Promise.reject(new Error("reset")) }),
      { headers: length(1) },
    ),
    empty: new Response(null),
  };
  using _fetching = stubFetch(({ url }) => answers[url.split("/").at(-1)!]!);
  const { runtime, transport } = transportOf();
  const { signal } = new AbortController();
  for (const name of Object.keys(answers)) {
    const response = await transport.send(get(`/${name}`, { signal }));
    await inTime(name, response.cancel(), 5_000);
  }
  assert.equal(read, 3);
  assert.equal(long.ended.length, 1);
  assert.equal(endless.ended.length, 1);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  // Nothing is in progress.
  await inTime("it retires", transport.retire(), 5_000);
  assert.equal(runtime.closed, 1);
});

test("FetchTransport that retires waits for its requests, one that closes ends them", async () => {
  for (const how of ["retire", "close"] as const) {
    const { body } = silentBody(["first"]);
    const held = Promise.withResolvers<Response>();
    using _fetching = stubFetch(({ url, init }) => {
      if (url.endsWith("/body")) return new Response(body);
      init.signal.addEventListener(
        "abort",
        () => held.reject(init.signal.reason),
      );
      return held.promise;
    });
    const { runtime, transport } = transportOf();
    const reading = (await transport.send(get("/body"))).body;
    const chunks = reading[Symbol.asyncIterator]();
    await chunks.next();
    const waiting = transport.send(get("/held"));
    const ended = transport[how]();
    if (how === "retire") {
      assert.equal(runtime.closed, 0);
      await chunks.return?.();
      held.resolve(new Response("late"));
      assert.equal(await text(await waiting), "late");
    } else {
      const closed = /the connections were closed/;
      await inTime("both end", assert.rejects(() => waiting, closed), 5_000);
      await inTime("both end", assert.rejects(chunks.next(), closed), 5_000);
    }
    await inTime(how, ended, 5_000);
    await transport.close();
    assert.equal(runtime.closed, 1);
    const sent = (transport as HttpTransport).send(get("/"));
    await assert.rejects(sent, /the connections were closed/);
  }
});

test("FetchTransport calls nothing for a request that was aborted before", async () => {
  using fetching = stubFetch(() => new Response("ok"));
  const { transport } = transportOf();
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await assert.rejects(transport.send(get("/", { signal })), reason);
  assert.equal(fetching.calls.length, 0);
  await transport.close();
});

test("FetchTransport has ended a request that is aborted before its body is read", async () => {
  const { body, ended } = silentBody();
  using _fetching = stubFetch(() => new Response(body));
  const { runtime, transport } = transportOf();
  const controller = new AbortController();
  const { signal } = controller;
  await transport.send(get("/watch", { signal }));
  controller.abort(new Error("enough"));
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.equal(ended.length, 1);
  await inTime("it retires", transport.retire(), 5_000);
  assert.equal(runtime.closed, 1);
});
