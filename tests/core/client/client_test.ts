import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  Client,
  type ClientOptions,
  type Middleware,
  noMetrics,
  silentLogger,
  untyped,
} from "@coracle/operator/client";
import { authenticate } from "../../../core/client/authenticate.ts";
import { withHeaders } from "../../../core/client/middleware.ts";
import { pathRequest } from "../../../core/client/request.ts";
import { responseError } from "../../../core/client/response.ts";
import { WholeBody } from "../../../core/client/transport/chunk_queue.ts";
import { replaceHost } from "../../../core/client/host.ts";
import { inTime } from "../../support/in_time.ts";
import { ScriptedStream } from "../../support/scripted_stream.ts";
import {
  type Script,
  type ScriptedAnswer,
  ScriptedTransport,
} from "../../support/scripted_transport.ts";

const POD = untyped({
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  scope: "Namespaced",
});
const KEY = { namespace: "default", name: "web" };
const OBJECT = { apiVersion: "v1", kind: "Pod", metadata: KEY };

function clientWith(
  script: Script,
  options: ClientOptions = {},
): { client: Client; transport: ScriptedTransport } {
  const transport = new ScriptedTransport(script);
  return { transport, client: new Client({ transport }, options) };
}

function status(
  code: number,
  reason: string,
  parts: Record<string, unknown> = {},
): ScriptedAnswer {
  return {
    status: code,
    body: {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason,
      ...parts,
    },
  };
}

test("Client.get returns an object that the caller may change", async () => {
  const { client, transport } = clientWith(() => ({ body: OBJECT }));
  const pod = await client.get(POD, KEY);
  assert.deepEqual(pod, OBJECT);
  assert.equal(Object.isFrozen(pod), false);
  const [request] = transport.requests;
  assert.equal(request?.path, "/api/v1/namespaces/default/pods/web");
  assert.equal(request?.headers["user-agent"], "coracle");
});

test("Client reports the Status of the server in one sentence", async () => {
  const details = {
    name: "web",
    kind: "pods",
    causes: [{ field: "spec", message: "missing" }],
    retryAfterSeconds: 2,
  };
  const { client } = clientWith(() =>
    status(422, "Invalid", { message: 'pods "web" is invalid', details })
  );
  await assert.rejects(() => client.create(POD, OBJECT), (error: unknown) => {
    assert.ok(ApiError.is(error));
    assert.equal(
      error.message,
      'Cannot create Pod default/web: pods "web" is invalid: received 422 Invalid',
    );
    assert.equal(error.isInvalid, true);
    assert.deepEqual(error.details, details);
    assert.equal(error.retryAfter, 2_000);
    return true;
  });
});

test("Client throws ApiError for errors without a Status and redirects too", async () => {
  const cases: readonly (readonly [ScriptedAnswer, RegExp, string])[] = [
    [
      { status: 502, body: "<html>Bad gateway</html>" },
      /: "<html>Bad gateway<\/html>": received 502$/,
      "",
    ],
    [
      { status: 403, body: "" },
      /: the response is empty: received 403 Forbidden$/,
      "Forbidden",
    ],
    [
      { status: 401, body: "x".repeat(1_000) },
      /…": received 401/,
      "Unauthorized",
    ],
    [
      { status: 404, body: "404 page not found\n" },
      /: "404 page not found", as for a kind whose CustomResourceDefinition is not/,
      "NotFound",
    ],
    [
      { status: 502, body: '{"kind":"Fault","message":"of a proxy"}' },
      /: "\{\\"kind\\":\\"Fault\\".*received 502$/,
      "",
    ],
    [
      { status: 302, headers: { location: "https://a.b/c?token=secret" } },
      /: redirects are not followed: received 302 to https:\/\/a\.b$/,
      "",
    ],
  ];
  for (const [answer, message, reason] of cases) {
    const { client } = clientWith(() => answer);
    await assert.rejects(() => client.get(POD, KEY), (error: unknown) => {
      assert.ok(ApiError.is(error));
      assert.match(error.message, message);
      assert.equal(error.reason, reason);
      assert.equal(error.status, answer.status);
      return true;
    });
  }
});

test("Client.find returns undefined for 404 and throws other errors", async () => {
  const missing = clientWith(() => status(404, "NotFound"));
  assert.equal(await missing.client.find(POD, KEY), undefined);
  const refused = clientWith(() => status(403, "Forbidden"));
  await assert.rejects(() => refused.client.find(POD, KEY), ApiError);
});

test("Client refuses responses that are not JSON or too large", async () => {
  const rubbish = clientWith(() => ({ body: "{" }));
  await assert.rejects(() => rubbish.client.get(POD, KEY), {
    name: "SyntaxError",
    message:
      'Cannot get Pod default/web: the response must be JSON: received "{"',
  });
  const long = clientWith(() => ({ body: OBJECT }), { maxResponseBytes: 20 });
  await assert.rejects(() => long.client.get(POD, KEY), {
    name: "RangeError",
    message: /^Cannot get Pod default\/web: the response must have at most 20 /,
  });
  assert.equal(long.transport.cancelled, 1);
});

test("Client.listAll reads page after page", async () => {
  const { client, transport } = clientWith((_request, count) => ({
    body: {
      metadata: count < 3 ? { continue: `c${count}` } : {},
      items: [{ metadata: { name: `p${count}` } }],
    },
  }));
  const names: string[] = [];
  const options = { limit: 1, resourceVersion: "5", namespace: "default" };
  for await (const pod of client.listAll(POD, options)) {
    names.push(pod.metadata.name);
  }
  assert.deepEqual(names, ["p1", "p2", "p3"]);
  assert.deepEqual(
    transport.requests.map(({ path }) => path.split("?")[1]),
    ["limit=1&resourceVersion=5", "limit=1&continue=c1", "limit=1&continue=c2"],
  );
});

test("Client.listAll reads pages of 500 and drops what a token implies", async () => {
  const { client, transport } = clientWith((_request, count) => ({
    body: { metadata: count < 3 ? { continue: `c${count}` } : {}, items: [] },
  }));
  const match = {
    resourceVersion: "5",
    resourceVersionMatch: "Exact",
    labelSelector: "a=b",
  } as const;
  for await (const pod of client.listAll(POD, match)) assert.fail(`${pod}`);
  assert.deepEqual(
    transport.requests.map(({ path }) =>
      [...new URLSearchParams(path.split("?")[1])].sort().join(" ")
    ),
    [
      "labelSelector,a=b limit,500 resourceVersion,5 resourceVersionMatch,Exact",
      "continue,c1 labelSelector,a=b limit,500",
      "continue,c2 labelSelector,a=b limit,500",
    ],
  );
});

test("Client.list returns empty items for a list without items", async () => {
  const { client } = clientWith(() => ({
    body: { metadata: { resourceVersion: "1" }, items: null },
  }));
  assert.deepEqual((await client.list(POD)).items, []);
  const { client: other } = clientWith(() => ({ body: { metadata: null } }));
  assert.deepEqual(await other.list(POD), { items: [], metadata: {} });
});

test("Client writes with its field manager by default", async () => {
  const { client, transport } = clientWith(({ path }) => ({
    body: path.includes("/scale") ? { ...OBJECT, kind: "Scale" } : OBJECT,
  }), { fieldManager: "tests" });
  await client.apply(POD, { metadata: KEY }, { force: true });
  await client.patch(POD, KEY, { metadata: { labels: { a: "b" } } });
  await client.replace(POD, OBJECT, { fieldManager: "other" });
  await client.status.patch(POD, KEY, { status: { phase: "Running" } });
  await client.scale.patch(POD, KEY, { spec: { replicas: 3 } });
  assert.deepEqual(
    transport.requests.map(({ method, path }) =>
      `${method} ${path.slice("/api/v1/namespaces/default/pods/".length)}`
    ),
    [
      "PATCH web?fieldManager=tests&force=true",
      "PATCH web?fieldManager=tests",
      "PUT web?fieldManager=other",
      "PATCH web/status?fieldManager=tests",
      "PATCH web/scale?fieldManager=tests",
    ],
  );
});

test("Client.delete returns the object only while it still exists", async () => {
  const gone = clientWith(() => ({
    body: { kind: "Status", status: "Success", metadata: {} },
  }));
  assert.equal(await gone.client.delete(POD, KEY), undefined);
  const kept = clientWith(() => ({
    body: {
      ...OBJECT,
      metadata: { ...KEY, deletionTimestamp: "2026-01-01T00:00:00Z" },
    },
  }));
  assert.equal((await kept.client.delete(POD, KEY))?.metadata.name, "web");
});

async function* chunks(...texts: string[]): AsyncGenerator<string> {
  yield* texts;
}

test("Client.watch yields events across chunks and ends with the stream", async () => {
  const text =
    ["ADDED", "MODIFIED", "DELETED"].map((type) =>
      JSON.stringify({ type, object: OBJECT })
    ).join("\n") + "\n";
  const { client, transport } = clientWith(() => ({
    body: chunks(...text.match(/[^]{1,7}/g) ?? []),
  }));
  const types: string[] = [];
  for await (const event of client.watch(POD, { bookmarks: true })) {
    types.push(event.type);
  }
  assert.deepEqual(types, ["ADDED", "MODIFIED", "DELETED"]);
  assert.equal(transport.cancelled, 0);
});

test("Client.watch takes a last line without line feed, and refuses half of one", async () => {
  const line = JSON.stringify({ type: "ADDED", object: OBJECT });
  const read = async (text: string) => {
    const { client } = clientWith(() => ({ body: chunks(`${line}\n`, text) }));
    let count = 0;
    for await (const _event of client.watch(POD)) count++;
    return count;
  };
  assert.equal(await read(line), 2);
  await assert.rejects(
    read(line.slice(0, 30)),
    /^SyntaxError: Cannot watch Pod objects: each line must be an event/,
  );
});

test("Client.watch yields bookmarks only on request", async () => {
  const object = { ...OBJECT, metadata: { ...KEY, resourceVersion: "7" } };
  const lines = ["ADDED", "BOOKMARK"].map((type) =>
    `${JSON.stringify({ type, object })}\n`
  );
  const { client } = clientWith(() => ({ body: chunks(...lines) }));
  const names: string[] = [];
  // Without bookmarks every event is about an object.
  for await (const change of client.watch(POD)) {
    names.push(change.object.metadata.name);
  }
  assert.deepEqual(names, ["web"]);
  const versions: (string | undefined)[] = [];
  for await (const event of client.watch(POD, { bookmarks: true })) {
    if (event.type === "BOOKMARK") {
      versions.push(event.object.metadata.resourceVersion);
    }
  }
  assert.deepEqual(versions, ["7"]);
});

test("Client.watch throws ERROR events of the server", async () => {
  const line = (event: unknown) => `${JSON.stringify(event)}\n`;
  const expired = clientWith(() => ({
    body: chunks(
      line({ type: "ADDED", object: OBJECT }) + line({
        type: "ERROR",
        object: {
          kind: "Status",
          code: 410,
          reason: "Expired",
          message: "too old",
        },
      }),
    ),
  }));
  const seen: string[] = [];
  await assert.rejects(async () => {
    for await (const { type } of expired.client.watch(POD)) seen.push(type);
  }, (error: unknown) => ApiError.is(error) && error.isGone);
  assert.deepEqual(seen, ["ADDED"]);
  for (const rubbish of ["garbage\n", "5\n", '{"type":"ADDED"}\n']) {
    const { client } = clientWith(() => ({ body: chunks(rubbish) }));
    await assert.rejects(async () => {
      for await (const _event of client.watch(POD));
    }, /^SyntaxError: Cannot watch Pod objects: each line must be an event/);
  }
});

test("Client.watch ends the stream when the loop is left", async () => {
  const { client, transport } = clientWith(() => ({
    body: chunks(`${JSON.stringify({ type: "ADDED", object: OBJECT })}\n`, "x"),
  }));
  for await (const event of client.watch(POD)) {
    assert.equal(event.type, "ADDED");
    break;
  }
  assert.equal(transport.cancelled, 1);
});

test("Client.request streams any path and throws ApiError", async () => {
  const { client } = clientWith(({ path }) =>
    path === "/metrics" ? { body: "up 1" } : status(404, "NotFound")
  );
  const request = { method: "GET", path: "/metrics", headers: {} } as const;
  const response = await client.request(request);
  for await (const chunk of response.body) {
    assert.equal(new TextDecoder().decode(chunk), "up 1");
  }
  await assert.rejects(
    () => client.request({ ...request, path: "/none?secret=1" }),
    { name: "ApiError", message: /^Cannot GET \/none: / },
  );
});

test("Client.version and close reach the transport", async () => {
  const { client, transport } = clientWith(() => ({
    body: { major: "1", minor: "32", gitVersion: "v1.32.0" },
  }));
  assert.equal((await client.version()).gitVersion, "v1.32.0");
  await client.close();
  assert.equal(transport.closed, 1);
});

test("Client passes a signal with every request", async () => {
  const { client } = clientWith(({ signal }) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    })
  );
  const reason = new Error("enough");
  const calls = [
    (signal: AbortSignal) => client.get(POD, KEY, { signal }),
    (signal: AbortSignal) => client.list(POD, { signal }),
    (signal: AbortSignal) => client.create(POD, OBJECT, { signal }),
    (signal: AbortSignal) => client.delete(POD, KEY, { signal }),
    (signal: AbortSignal) => client.watch(POD, { signal }).next(),
    (signal: AbortSignal) => client.logs(KEY, { signal }).next(),
  ];
  for (const call of calls) {
    const controller = new AbortController();
    const ended = call(controller.signal);
    setTimeout(() => controller.abort(reason), 1);
    await assert.rejects(ended, reason);
  }
});

test("Client ends a request whose response does not begin in time", async () => {
  const clock = new VirtualClock();
  const { client } = clientWith(() => new Promise(() => {}), {
    clock,
    retry: { maxAttempts: 1 },
    responseTimeout: 5_000,
  });
  const late = assert.rejects(
    client.get(POD, KEY),
    /begin its response within/,
  );
  await clock.advance(5_000);
  await inTime("it ends", late);
});

test("Client logs the warnings of its server", async () => {
  const warned: unknown[] = [];
  const warn = (...line: unknown[]) => void warned.push(line[1]);
  const headers = { warning: '299 - "v1 is old"' };
  const { client } = clientWith(() => ({ headers, body: OBJECT }), {
    logger: { ...silentLogger, warn },
  });
  await client.get(POD, KEY);
  assert.deepEqual(warned, [
    { warning: "v1 is old", action: "get Pod default/web" },
  ]);
});

test("Client keeps its rate limit", async () => {
  const clock = new VirtualClock();
  const { client, transport } = clientWith(() => ({ body: OBJECT }), {
    clock,
    rateLimit: { perSecond: 1, burst: 2 },
  });
  const answers = Array.from({ length: 4 }, () => client.get(POD, KEY));
  await clock.settle();
  assert.equal(transport.requests.length, 2);
  await clock.advance(1_000);
  assert.equal(transport.requests.length, 3);
  await clock.advance(1_000);
  await Promise.all(answers);
  assert.equal(transport.requests.length, 4);
  await client.close();
});

test("Client.close ends requests that wait for a retry or the rate limit", async () => {
  const clock = new VirtualClock();
  const busy = clientWith(() => ({
    status: 429,
    headers: { "retry-after": "20" },
    body: {},
  }), { clock });
  const limited = clientWith(() => ({ body: OBJECT }), {
    clock,
    rateLimit: { perSecond: 0.1, burst: 1 },
  });
  await limited.client.get(POD, KEY);
  for (const { client } of [busy, limited]) {
    let outcome = "waiting";
    client.get(POD, KEY).then(
      () => outcome = "answered",
      (error: unknown) => outcome = String(error),
    );
    await clock.settle();
    await client.close();
    await clock.settle();
    assert.match(outcome, /the client was closed/);
  }
  assert.equal(clock.pendingTimers, 0);
});

test("Client limits a whole response like one in chunks, to the byte", async () => {
  const json = JSON.stringify(OBJECT);
  const bytes = new TextEncoder().encode(json);
  for (const isWhole of [false, true]) {
    for (
      const [maxResponseBytes, isRead] of [[0, true], [-1, false]] as const
    ) {
      const transport = new ScriptedTransport(() => ({ body: json }));
      const { send } = transport;
      transport.send = async (request) => ({
        ...await send.call(transport, request),
        ...(isWhole && { body: new WholeBody(bytes) }),
      });
      const client = new Client({ transport }, {
        maxResponseBytes: bytes.length + maxResponseBytes,
      });
      if (isRead) assert.deepEqual(await client.get(POD, KEY), OBJECT);
      else await assert.rejects(() => client.get(POD, KEY), RangeError);
    }
  }
});

test("Client.request refuses every status from 300 and reads no redirect", async () => {
  for (const code of [300, 302, 304, 399, 400]) {
    const { client, transport } = clientWith(() => ({ status: code }));
    const request = { method: "GET", path: "/x", headers: {} } as const;
    for (
      const send of [
        () => client.request(request),
        () => client.get(POD, KEY),
      ]
    ) {
      await assert.rejects(send, { name: "ApiError", status: code });
    }
    assert.equal(transport.cancelled, code < 400 ? 2 : 0);
  }
});

test("Client calls beforeSend before each attempt, and sends nothing if it throws", async () => {
  const clock = new VirtualClock();
  const { client, transport } = clientWith(
    (_request, count) =>
      count < 3 ? { status: 429, headers: { "retry-after": "1" } } : {},
    {
      clock,
      random: () => 0,
    },
  );
  let calls = 0;
  const request = {
    method: "GET",
    path: "/x",
    headers: {},
    beforeSend: () => void calls++,
  } as const;
  const sent = client.request(request);
  await clock.advance(2_000);
  await sent;
  assert.equal(calls, 3);
  const refused = {
    ...request,
    beforeSend: () => {
      throw new RangeError("No longer allowed");
    },
  } as const;
  for (const one of [client, client.with([(next) => next])]) {
    for (const method of ["GET", "PUT"] as const) {
      const sent = one.request({ ...refused, method });
      await inTime("it fails", assert.rejects(sent, /No longer allowed/));
    }
  }
  assert.equal(transport.requests.length, 3);
});

test("Client that was derived by with() checks before it opens a WebSocket", async () => {
  const { client, transport } = clientWith(() => ({}));
  transport.stream = () => new ScriptedStream();
  let calls = 0;
  let isAllowed = true;
  const checked = client.with([(next) => (request) =>
    next({
      ...request,
      beforeSend() {
        calls++;
        if (!isAllowed) throw new RangeError("No longer allowed");
      },
    })]);
  const open = () => checked.exec(KEY, { command: ["date"] });
  await open();
  assert.equal(calls, 1);
  const [request] = transport.streamRequests;
  request?.beforeSend?.();
  assert.equal(calls, 2, "the transport can check again");
  isAllowed = false;
  await assert.rejects(open, /No longer allowed/);
  assert.equal(transport.streamRequests.length, 1);
});

test("Client that was derived by with() keeps namespace, options and order", async () => {
  const transport = new ScriptedTransport(() => ({ body: OBJECT }));
  const target = { transport, namespace: "team" };
  const client = new Client(target, { fieldManager: "tests" });
  const order: string[] = [];
  const named = (name: string): Middleware => (next) => (request) => {
    order.push(name);
    return next(withHeaders(request, { "x-name": name }));
  };
  const derived = client.with([named("outer"), named("inner")]);
  await derived.apply(POD, { metadata: KEY });
  assert.deepEqual([client.namespace, derived.namespace], ["team", "team"]);
  assert.deepEqual(order, ["outer", "inner"]);
  const [request] = transport.requests;
  assert.match(request?.path ?? "", /fieldManager=tests/);
  assert.equal(request?.headers["x-name"], "inner");
  transport.stream = () => new ScriptedStream();
  await derived.exec(KEY, { command: ["date"] });
  assert.equal(transport.streamRequests[0]?.headers["x-name"], "inner");
});

test("Client that was derived by with() leaves the other one open", async () => {
  const { client, transport } = clientWith(() => ({ body: OBJECT }));
  await client.with([(next) => next]).close();
  assert.equal(transport.closed, 0);
  assert.deepEqual(await client.get(POD, KEY), OBJECT);
});

test("Client throws the reason of its signal although the body broke first", async () => {
  const abort = new AbortController();
  for (const reason of [new Error("enough"), undefined]) {
    const { client } = clientWith(() => ({
      body: (async function* () {
        yield "{";
        abort.abort(reason);
        throw abort.signal.reason;
      })(),
    }));
    await assert.rejects(
      client.get(POD, KEY, { signal: abort.signal }),
      (error) => error === abort.signal.reason,
    );
  }
  const { client } = clientWith(() => ({
    body: (async function* () {
      yield "{";
      throw new Error("reset");
    })(),
  }));
  await assert.rejects(
    client.get(POD, KEY),
    /^Error: Cannot get Pod default\/web: the response cannot be read: received reset$/,
  );
});

test("Client prefers the Retry-After of the response to that of its Status", async () => {
  for (
    const [header, expected] of [
      ["7", 7_000],
      ["0", 0],
      [undefined, 2_000],
    ] as const
  ) {
    const { client } = clientWith(() => ({
      ...status(500, "InternalError", { details: { retryAfterSeconds: 2 } }),
      headers: header === undefined ? {} : { "retry-after": header },
    }));
    await assert.rejects(
      client.get(POD, KEY),
      (error) => ApiError.is(error) && error.retryAfter === expected,
    );
  }
});

test("Client reads at most a megabyte of an error that does not end", async () => {
  const part = "x".repeat(64 << 10);
  let parts = 0;
  const transport = new ScriptedTransport(() => ({
    status: 500,
    body: (async function* () {
      for (; parts < 1_000; parts++) yield part;
    })(),
  }));
  const send = authenticate({
    current: () => Promise.resolve({ token: "secret" }),
    refresh: () => Promise.resolve({ token: "secret" }),
  })((request) => transport.send(request));
  await assert.rejects(async () => {
    const request = pathRequest("/x");
    throw await responseError(request, await send(request));
  }, { name: "ApiError", status: 500 });
  assert.ok(parts < 20, `${parts} parts of 64 KiB`);
});

test("Client.status reads and writes the subresource only", async () => {
  const { client, transport } = clientWith(() => ({ body: OBJECT }));
  await client.status.get(POD, KEY);
  await client.status.replace(POD, OBJECT);
  await client.status.patch(POD, KEY, { status: {} });
  await client.status.apply(POD, OBJECT, { fieldManager: "test" });
  for (const { path } of transport.requests) {
    assert.match(
      path,
      /^\/api\/v1\/namespaces\/default\/pods\/web\/status(\?|$)/,
    );
  }
  assert.deepEqual(
    transport.requests.map(({ method, headers }) =>
      [method, headers["content-type"]].join(" ")
    ),
    [
      "GET ",
      "PUT application/json",
      "PATCH application/merge-patch+json",
      "PATCH application/apply-patch+yaml",
    ],
  );
});

test("Client.scale reads and patches the subresource only", async () => {
  const scale = { kind: "Scale", spec: { replicas: 2 } };
  const { client, transport } = clientWith(() => ({ body: scale }));
  assert.equal((await client.scale.get(POD, KEY)).spec?.replicas, 2);
  await client.scale.patch(POD, KEY, { spec: { replicas: 2 } });
  for (const { path } of transport.requests) {
    assert.match(path, /\/pods\/web\/scale(\?|$)/);
  }
  assert.equal(transport.requests.length, 2);
});

test("Client works although its logger and its metrics fail", async () => {
  const fail = () => {
    throw new Error("no disk");
  };
  const headers = { warning: '299 - "old"' };
  const { client } = clientWith(() => ({ headers, body: OBJECT }), {
    logger: { ...silentLogger, warn: fail },
    metrics: {
      ...noMetrics,
      counter: () => ({ add: fail, remove: fail }),
      histogram: () => ({ observe: fail, remove: fail }),
    },
  });
  // A read would be repeated, and the second time there is nothing to log.
  assert.equal((await client.create(POD, OBJECT)).metadata?.name, "web");
});

test("Client does not repeat a failure of its credentials", async () => {
  let calls = 0;
  const fail = () => {
    calls++;
    return Promise.reject(new Error("no plugin"));
  };
  const client = new Client({
    server: "http://127.0.0.1:1",
    credentials: { current: fail, refresh: fail },
  }, { retry: { initial: 1, maxAttempts: 3 } });
  await assert.rejects(client.get(POD, KEY), /no plugin/);
  assert.equal(calls, 1);
  await client.close();
});

test("Client.request refuses what is no request", async () => {
  const { client, transport } = clientWith(() => ({}));
  const headers = {};
  for (
    const request of [
      {},
      { method: "GET", path: "/x" },
      { method: "HEAD", path: "/x", headers },
      { method: "GET", path: "", headers },
    ]
  ) {
    await assert.rejects(
      async () => await client.request(request as never),
      /^(Type|Range)Error: Cannot /,
    );
  }
  assert.equal(transport.requests.length, 0);
});

test("Client.load on a replaced host keeps the options of the caller", async () => {
  const transports: ScriptedTransport[] = [];
  const clock = new VirtualClock();
  const world = {
    openTransport() {
      const transport = new ScriptedTransport((_request, count) =>
        count === 1
          ? { status: 429, headers: { "retry-after": "1" } }
          : { body: OBJECT }
      );
      transports.push(transport);
      return transport;
    },
    clock: () => clock,
    random: () => 0.25,
  };
  const restore = replaceHost(world);
  try {
    const plain = await Client.load();
    const { random } = world;
    assert.deepEqual({ ...plain.defaults }, {
      clock,
      random,
      logger: undefined,
      metrics: undefined,
    });
    const options = {
      clock: new VirtualClock(),
      random: () => 0.5,
      logger: silentLogger,
      metrics: noMetrics,
      fieldManager: "mine",
      userAgent: "tester/1",
      retry: { maxAttempts: 1 },
      rateLimit: { perSecond: 1, burst: 2 },
    };
    const client = await Client.load(options);
    for (const name of ["clock", "random", "logger", "metrics"] as const) {
      assert.equal(client.defaults[name], options[name], name);
    }
    const refused = assert.rejects(client.get(POD, KEY), { status: 429 });
    await inTime("a request that is not repeated", refused);
    await client.apply(POD, OBJECT);
    const [, transport] = transports;
    const { path, headers } = transport?.requests[1] ?? {};
    assert.match(path ?? "", /fieldManager=mine/);
    assert.equal(headers?.["user-agent"], "tester/1");
    let answered = false;
    const third = client.get(POD, KEY).then(() => answered = true);
    await options.clock.advance(999);
    assert.equal(answered, false, "the burst is used up");
    await options.clock.advance(1);
    await third;
  } finally {
    restore();
  }
});
