import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../../core/api/api_error.ts";
import { untyped } from "../../../core/api/kind.ts";
import { Client } from "../../../core/client/client.ts";
import type { ClientOptions } from "../../../core/client/client_options.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";
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

test("Client.list returns empty items for a list without items", async () => {
  const { client } = clientWith(() => ({
    body: { metadata: { resourceVersion: "1" }, items: null },
  }));
  assert.deepEqual((await client.list(POD)).items, []);
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
