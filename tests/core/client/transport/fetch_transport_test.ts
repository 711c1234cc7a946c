import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Client } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { FetchTransport } from "../../../../core/client/transport/fetch_transport.ts";
import { inTime } from "../../../support/in_time.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { get, text } from "../../../support/transport_case.ts";

const SERVER = "http://cluster.example:8080/prefix";
/** Call of `fetch`. */
interface Call {
  readonly url: string;
  readonly init: Record<string, unknown> & { readonly signal: AbortSignal };
}

/** Transport over a `fetch` of the test, and its calls. */
function transportOf(answer: (call: Call) => Response | Promise<Response>) {
  const calls: Call[] = [];
  const send = async (url: string, init: Call["init"]) => {
    calls.push({ url, init });
    return await answer({ url, init });
  };
  return { calls, transport: new FetchTransport(SERVER, send as typeof fetch) };
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

test("FetchTransport ends a body that is being read when its signal aborts", async () => {
  const { body, ended } = silentBody(["first"]);
  // As in Deno, nothing but the body notices the abort.
  const { transport } = transportOf(() => new Response(body));
  const controller = new AbortController();
  const { signal } = controller;
  const response = await transport.send(get("/watch", { signal }));
  const reading = response.body[Symbol.asyncIterator]();
  await reading.next();
  const next = reading.next();
  const reason = new Error("enough");
  controller.abort(reason);
  await inTime("it ends", assert.rejects(() => next, reason));
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
  const { transport } = transportOf(({ url }) =>
    answers[url.split("/").at(-1)!]!
  );
  const { signal } = new AbortController();
  for (const name of Object.keys(answers)) {
    const response = await transport.send(get(`/${name}`, { signal }));
    await inTime(name, response.cancel());
  }
  assert.equal(read, 3);
  assert.equal(long.ended.length, 1);
  assert.equal(endless.ended.length, 1);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await transport.close();
});

test("FetchTransport that closes ends its requests", async () => {
  const { body } = silentBody(["first"]);
  const held = Promise.withResolvers<Response>();
  const { transport } = transportOf(({ url, init }) => {
    if (url.endsWith("/body")) return new Response(body);
    init.signal.addEventListener(
      "abort",
      () => held.reject(init.signal.reason),
    );
    return held.promise;
  });
  const reading = (await transport.send(get("/body"))).body;
  const chunks = reading[Symbol.asyncIterator]();
  await chunks.next();
  const waiting = transport.send(get("/held"));
  const ended = transport.close();
  const closed = /the connections were closed/;
  await inTime("both end", assert.rejects(() => waiting, closed));
  await inTime("both end", assert.rejects(chunks.next(), closed));
  await inTime("it is closed", ended);
  await transport.close();
  await assert.rejects(transport.send(get("/")), closed);
});

test("FetchTransport calls nothing for a request that was aborted before", async () => {
  const { calls, transport } = transportOf(() => new Response("ok"));
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await assert.rejects(transport.send(get("/", { signal })), reason);
  assert.equal(calls.length, 0);
  await transport.close();
});

test("FetchTransport has ended a request that is aborted before its body is read", async () => {
  const { body, ended } = silentBody();
  const { transport } = transportOf(() => new Response(body));
  const controller = new AbortController();
  const { signal } = controller;
  await transport.send(get("/watch", { signal }));
  controller.abort(new Error("enough"));
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.equal(ended.length, 1);
  await transport.close();
});

test("FetchTransport sends a write once allowed, with all that it has", async () => {
  const { calls, transport } = transportOf(() => new Response("ok"));
  const request = {
    method: "PATCH",
    path: "/a?b=c",
    headers: { "content-type": "x" },
    repeatedHeaders: { group: ["one", "two"] },
    body: "body",
  } as const;
  const refused = new Error("no longer");
  const beforeSend = () => {
    throw refused;
  };
  await assert.rejects(transport.send({ ...request, beforeSend }), refused);
  assert.equal(calls.length, 0);
  assert.equal(await text(await transport.send(request)), "ok");
  const [call] = calls;
  assert.equal(call?.url, `${SERVER}/a?b=c`);
  const { method, headers, body, redirect } = call?.init ?? {};
  assert.deepEqual({ method, headers, body, redirect }, {
    method: "PATCH",
    headers: [["content-type", "x"], ["group", "one"], ["group", "two"]],
    body: "body",
    redirect: "manual",
  });
  await transport.close();
});

test("A client with a fetch sends its requests by it, with its credentials", async () => {
  const sent: unknown[] = [];
  const send = (url: string, { headers }: RequestInit) => {
    sent.push([url, new Headers(headers).get("authorization")]);
    return Promise.resolve(Response.json({ kind: "ConfigMap", metadata: {} }));
  };
  const client = new Client(
    { server: SERVER, credentials: { token: "t" } },
    { fetch: send as typeof fetch },
  );
  const key = { namespace: "a", name: "b" };
  assert.equal((await client.get(ConfigMap, key)).kind, "ConfigMap");
  assert.deepEqual(sent, [
    [`${SERVER}/api/v1/namespaces/a/configmaps/b`, "Bearer t"],
  ]);
  await client.close();
});

test("A client with a fetch refuses what only sockets have", async () => {
  const options = { fetch: (() => assert.fail()) as unknown as typeof fetch };
  for (
    const parts of [
      { certificateAuthority: "authority" },
      { serverName: "other" },
      { insecureSkipTlsVerify: true },
      { proxyUrl: "http://proxy" },
    ]
  ) {
    const [name] = Object.keys(parts);
    assert.throws(() => new Client({ server: SERVER, ...parts }, options), {
      name: "TypeError",
      message: new RegExp(`must not have "${name}"$`),
    });
  }
  const { clients: { jane }, stop } = await startTlsServer();
  await stop();
  const { certificate, key: privateKey } = jane;
  const credentials = { certificate, key: privateKey };
  const client = new Client({ server: SERVER, credentials }, options);
  const key = { namespace: "a", name: "b" };
  await assert.rejects(
    client.get(ConfigMap, key),
    /must not have "certificate"$/,
  );
  await client.close();
});
