import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  ApiError,
  Client,
  keyText,
  type Kind,
  type Logger,
  untyped,
} from "@coracle/operator/client";
import { ConfigMap, type ResolvedKind, Secret } from "@coracle/operator/kinds";
import { createRequest } from "../../../core/client/request.ts";
import {
  Answer,
  headerOf,
  readBody,
  retryAfter,
} from "../../../core/client/response.ts";
import {
  type ScriptedAnswer,
  ScriptedTransport,
} from "../../support/scripted_transport.ts";

const KEY = { namespace: "default", name: "web" };
const HIDDEN = "aHVudGVyMg-hunter2";

function clientOf(answer: ScriptedAnswer, logger?: Logger): Client {
  const transport = new ScriptedTransport(() => answer);
  return new Client({ transport }, { logger });
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Everything that a person or a log may see of an error. */
function shown(error: unknown): string {
  assert.ok(error instanceof Error);
  return `${error.message} ${error.stack} ${JSON.stringify(error)} ${
    error.cause === undefined ? "" : shown(error.cause)
  }`;
}

async function errorOf(work: Promise<unknown>): Promise<Error> {
  return await work.then(
    (value) => assert.fail(`it was accepted: ${JSON.stringify(value)}`),
    (error) => error,
  );
}

const INVALID = {
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  message:
    `Secret "web" is invalid: data[${HIDDEN}]: Invalid value: {"stringData":{"password":"${HIDDEN}"}}`,
  reason: "Invalid",
  details: {
    name: "web",
    kind: "Secret",
    causes: [{
      reason: "FieldValueInvalid",
      message: `Invalid value: "${HIDDEN}"`,
      field: `data[${HIDDEN}]`,
    }],
  },
  code: 422,
};

for (
  const [what, answer] of Object.entries({
    "422": { status: 422, body: INVALID },
    "text": { status: 400, body: `cannot decode {"password":"${HIDDEN}"}` },
    "a broken object": { status: 200, body: `{"data":{"password":"${HIDDEN}` },
  })
) {
  test(`An error about a Secret quotes nothing of it: ${what}`, async () => {
    const client = clientOf(answer);
    for (
      const work of [
        client.patch(Secret, KEY, { stringData: { port: HIDDEN } }),
        client.get(Secret, KEY),
        client.list(Secret),
      ]
    ) {
      const error = await errorOf(work);
      assert.doesNotMatch(shown(error), new RegExp(HIDDEN));
      assert.match(error.message, /^Cannot (patch|get|list) Secret/);
    }
  });
}

const SECRET_PATHS = [
  "/api/v1/secrets?limit=1",
  "/api/v1/namespaces/a/secrets",
  "/api/v1/namespaces/a/secrets/web?dryRun=All",
  "/api/v1/namespaces/a/serviceaccounts/web/token",
  "/apis/authentication.k8s.io/v1/tokenreviews",
];
for (const path of SECRET_PATHS) {
  test(`An error about ${path} quotes no answer`, async () => {
    for (const body of [INVALID, HIDDEN]) {
      const sent = clientOf({ status: 422, body }).request({
        method: "POST",
        path,
        headers: {},
      });
      const error = await errorOf(sent);
      assert.doesNotMatch(shown(error), new RegExp(HIDDEN));
    }
  });
}

test("An error whose Status has no reason has that of the status code", async () => {
  for (const reason of [undefined, "", 5]) {
    const body = { kind: "Status", message: "gone", reason };
    const answer = clientOf({ status: 404, body });
    const error = await errorOf(answer.get(Secret, KEY));
    assert.ok(ApiError.is(error));
    assert.equal(error.reason, "NotFound");
  }
});

test("An error about a Secret keeps the reason and harmless messages", async () => {
  const invalid = await errorOf(
    clientOf({ status: 422, body: INVALID }).get(Secret, KEY),
  );
  assert.ok(ApiError.is(invalid) && invalid.isInvalid);
  assert.match(invalid.message, /FieldValueInvalid in data/);
  for (
    const message of [
      'secrets "web" not found',
      'secrets "web" is forbidden: User "x" cannot get resource "secrets" in API group "" in the namespace "default"',
      'Operation cannot be fulfilled on secrets "web": the object has been modified; please apply your changes to the latest version and try again',
    ]
  ) {
    const body = { kind: "Status", message, code: 404 };
    const error = await errorOf(
      clientOf({ status: 404, body }).get(Secret, KEY),
    );
    assert.ok(error.message.includes(message));
  }
});

test("An error about another kind quotes the server", async () => {
  const error = await errorOf(
    clientOf({ status: 422, body: INVALID }).get(ConfigMap, KEY),
  );
  assert.match(error.message, new RegExp(HIDDEN));
});

test("An error about a Secret names the policy that refuses it, not its message", async () => {
  const named = "ValidatingAdmissionPolicy 'plans.example.com'";
  for (
    const [text, refuser] of [
      [`${named} with binding 'all' denied request`, named],
      ['admission webhook "a.example.com" denied the request', "the server"],
    ]
  ) {
    const body = JSON.stringify({
      kind: "Status",
      message: `secrets "web" is forbidden: ${text}: ${HIDDEN}`,
      reason: "Invalid",
      details: { name: "web", kind: "secrets", causes: [{ message: HIDDEN }] },
    });
    const error = await errorOf(
      clientOf({ status: 422, body }).get(Secret, KEY),
    );
    assert.equal(
      error.message.replace(/^[^:]*: /, ""),
      `${refuser} refused it (its message is not shown, because it may contain secret data): received 422 Invalid`,
    );
  }
});

test("An error about a line of a watch of Secrets does not quote it", async () => {
  const status = { kind: "Status", code: 422, message: HIDDEN };
  for (const line of [{ data: HIDDEN }, { type: "ERROR", object: status }]) {
    const client = clientOf({ body: `${JSON.stringify(line)}\n` });
    const error = await errorOf(client.watch(Secret).next());
    assert.doesNotMatch(shown(error), new RegExp(HIDDEN));
  }
});

for (
  const [what, answer] of Object.entries({
    "a refusal": { status: 403, body: `Authorization: Bearer ${HIDDEN}` },
    "basic": { status: 403, body: `{"authorization":["Basic ${HIDDEN}=="]}` },
    "a Status": {
      status: 403,
      body: { kind: "Status", message: `headers: bearer ${HIDDEN}` },
    },
    "a success that is not JSON": { body: `<p>Bearer ${HIDDEN}</p>` },
  })
) {
  test(`A credential that a server echoes is not quoted: ${what}`, async () => {
    const error = await errorOf(clientOf(answer).get(ConfigMap, KEY));
    assert.doesNotMatch(shown(error), new RegExp(HIDDEN));
  });
}

test("A credential that the end of a quote cuts is not quoted", async () => {
  for (let length = 185; length <= 200; length++) {
    const body = `${"x".repeat(length - 8)} Bearer ${HIDDEN}`;
    const error = await errorOf(clientOf({ body }).get(ConfigMap, KEY));
    assert.doesNotMatch(shown(error), new RegExp(`Bearer ${HIDDEN[0]}`));
  }
});

test("A warning of the server is logged without an echoed credential", async () => {
  const lines: unknown[] = [];
  const write = (...line: unknown[]) => void lines.push(line);
  const logger = {
    debug: write,
    info: write,
    warn: write,
    error: write,
    with: () => logger,
  } as Logger;
  const client = clientOf({
    body: { kind: "ConfigMap", metadata: KEY },
    headers: { warning: `299 - "Bearer ${HIDDEN}"` },
  }, logger);
  await client.get(ConfigMap, KEY);
  assert.equal(lines.length, 1);
  assert.doesNotMatch(JSON.stringify(lines), new RegExp(HIDDEN));
});

test("The client's own token is not quoted in any form of an echo", async () => {
  const server = createServer((request, response) => {
    const [, token = ""] = (request.headers.authorization ?? "").split(" ");
    response.writeHead(request.url?.includes("basic") ? 500 : 403);
    response.end(JSON.stringify({ kind: "Status", message: `got ${token}` }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const client = new Client({
    server: `http://127.0.0.1:${port}`,
    credentials: { token: HIDDEN },
  });
  try {
    const error = await errorOf(client.get(ConfigMap, KEY));
    assert.match(error.message, /^Cannot get ConfigMap default\/web: got /);
    assert.doesNotMatch(shown(error), new RegExp(HIDDEN));
  } finally {
    await client.close();
    server.close();
  }
});

const ANSWERS: readonly [what: string, body: unknown][] = [
  ["null", "null"],
  ["a number", "5"],
  ["a list", "[]"],
  ["another kind", { kind: "Pod", metadata: {} }],
  ["a Status", { kind: "Status", status: "Success" }],
];

for (const [what, body] of ANSWERS) {
  test(`An answer that is not the object is refused: ${what}`, async () => {
    const client = clientOf({ body });
    for (
      const work of [
        client.get(ConfigMap, KEY),
        client.list(ConfigMap),
        client.patch(ConfigMap, KEY, {}),
        client.status.get(ConfigMap, KEY),
        client.scale.get(ConfigMap, KEY),
      ]
    ) {
      const error = await errorOf(work);
      assert.match(
        error.message,
        /^Cannot .+ConfigMap.+: the response must be .+: received /,
      );
    }
  });
}

test("An answer to a write is refused if it is of another kind", () => {
  const kind = { ...ConfigMap, scope: "Namespaced", plural: "configmaps" };
  const request = createRequest(kind as ResolvedKind, { metadata: KEY });
  const answerOf = (kind: string | undefined) =>
    new Answer(request, bytesOf({ kind, metadata: KEY }));
  for (const fit of [undefined, "ConfigMap"]) {
    assert.deepEqual(answerOf(fit).keyText, keyText(KEY));
  }
  assert.throws(
    () => answerOf("Secret"),
    /^TypeError: Cannot create .+ must be ConfigMap: received kind "Secret"$/,
  );
});

test("The header of an answer is its own although another came later", () => {
  const kind = { ...ConfigMap, scope: "Namespaced", plural: "configmaps" };
  const request = createRequest(kind as ResolvedKind, { metadata: KEY });
  const answers = ["first", "second"].map((name) =>
    new Answer(request, bytesOf({ kind: "ConfigMap", metadata: { name } }))
  );
  for (const { json, keyText } of answers) {
    assert.equal(headerOf(json).keyText, keyText);
  }
});

test("A pause is taken from a Retry-After in seconds only", () => {
  const pause = (value: string) =>
    retryAfter({ headers: { "retry-after": value } } as never);
  assert.deepEqual([pause("0"), pause("12"), pause("999999")], [
    0,
    12_000,
    300_000,
  ]);
  for (const value of ["", "1000000", "5 s", "1.5", "-1", "2026-01-01"]) {
    assert.equal(pause(value), undefined, value);
  }
});

test("A body that exceeds its limit is not read to its end", async () => {
  let chunks = 0;
  async function* body(): AsyncGenerator<Uint8Array, void, undefined> {
    for (; chunks < 100; chunks++) yield new Uint8Array(4);
  }
  const response = (limit: number) =>
    readBody({
      status: 200,
      headers: {},
      body: body(),
      cancel: () => Promise.resolve(),
    }, limit);
  await assert.rejects(response(10), /at most 10 bytes: received 12 and more/);
  assert.equal(chunks, 2);
  assert.equal((await response(392)).byteLength, 392);
});

test("A list whose items are no list is refused", async () => {
  const client = clientOf({ body: { kind: "ConfigMapList", items: 5 } });
  assert.match((await errorOf(client.list(ConfigMap))).message, /^Cannot list/);
});

test("A deletion is answered with a Status or the object, and nothing else", async () => {
  const status = { kind: "Status", status: "Success" };
  assert.equal(
    await clientOf({ body: status }).delete(ConfigMap, KEY),
    undefined,
  );
  assert.match(
    (await errorOf(clientOf({ body: "null" }).delete(ConfigMap, KEY))).message,
    /^Cannot delete ConfigMap default\/web: the response must be/,
  );
});

for (const broken of ["header", "end"] as const) {
  test(`A gzip fault names its request: ${broken}`, async () => {
    const body = gzipSync(JSON.stringify({ kind: "ConfigMap", metadata: KEY }));
    const bytes = broken === "end"
      ? body.subarray(0, body.length - 12)
      : new TextEncoder().encode("no gzip");
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end(bytes);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const client = new Client({ server: `http://127.0.0.1:${port}` }, {
      retry: false,
    });
    try {
      const error = await errorOf(client.get(ConfigMap, KEY));
      // Other runtimes decompress before the client sees the response.
      assert.match(
        error.message,
        /^Cannot (get ConfigMap default\/web|reach http\S+): /,
      );
    } finally {
      await client.close();
      server.closeAllConnections();
      server.close();
    }
  });
}

test("A name with half a surrogate pair is refused by name", async () => {
  const client = clientOf({ body: {} });
  const error = await errorOf(
    client.get(ConfigMap, { namespace: "default", name: "a\ud800" }),
  );
  assert.match(error.message, /^Cannot address ConfigMap: its name/);
});

const WIDGET = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
} as const;

const PARTS: readonly [string, string][] = [
  ["group", "../../api/v1/secrets?x="],
  ["group", "a/b"],
  ["version", "v1/secrets?x="],
  ["version", ".."],
  ["plural", "widgets/../secrets"],
  ["plural", "%2e%2e"],
];

for (const [part, value] of PARTS) {
  test(`A kind whose ${part} would change the path is refused: ${value}`, async () => {
    const transport = new ScriptedTransport(() => ({ body: {} }));
    const client = new Client({ transport });
    const kind = { ...WIDGET, [part]: value } as Kind;
    const works = [
      () => client.get(kind, KEY),
      () => client.list(kind),
      () => client.delete(kind, KEY),
      () => client.get({ ...kind, plural: undefined } as Kind, KEY),
    ];
    for (const work of works.slice(0, part === "plural" ? 3 : 4)) {
      const error = await errorOf(work());
      assert.match(error.message, new RegExp(`the ${part} `));
    }
    assert.equal(transport.requests.length, 0);
  });
}

test("A subresource that would change the path is refused", async () => {
  const transport = new ScriptedTransport(() => ({ body: {} }));
  const client = new Client({ transport });
  for (const subresource of ["../x", "status?x=", "", "a//b", "a%2fb"]) {
    const error = await errorOf(
      client.get(ConfigMap, KEY, { subresource } as never),
    );
    assert.match(error.message, /subresource/);
  }
  assert.equal(transport.requests.length, 0);
  await client.get(untyped(WIDGET), KEY, {
    subresource: "proxy/metrics",
  } as never);
  assert.equal(transport.requests.length, 1);
});

test("readBody joins the chunks of a response in their order", async () => {
  async function* body(): AsyncGenerator<Uint8Array> {
    for (const part of [[1, 2], [3], [], [4, 5, 6]]) {
      yield await Promise.resolve(Uint8Array.from(part));
    }
  }
  const response = { status: 200, headers: {}, body: body() };
  const cancel = () => Promise.resolve();
  assert.deepEqual(
    [...await readBody({ ...response, cancel }, 6)],
    [1, 2, 3, 4, 5, 6],
  );
});

for (
  const causes of [[null], [5, "x"], "x", null, [{ reason: {}, field: 1 }]]
) {
  test(`An error with the causes ${JSON.stringify(causes)} is an ApiError`, async () => {
    const body = { kind: "Status", message: "no", details: { causes } };
    const client = clientOf({ status: 422, body });
    for (const kind of [Secret, ConfigMap]) {
      const error = await errorOf(client.get(kind, KEY));
      assert.ok(ApiError.is(error) && error.isInvalid, String(error));
    }
    const event = { type: "ERROR", object: { ...body, code: 422 } };
    const watching = clientOf({
      status: 200,
      body: `${JSON.stringify(event)}\n`,
    });
    for (const kind of [Secret, ConfigMap]) {
      const error = await errorOf(watching.watch(kind).next());
      assert.ok(ApiError.is(error) && error.isInvalid, String(error));
    }
  });
}

test("A Status gives no pause but a whole number of seconds, at most five minutes", async () => {
  const pauses: readonly (readonly [unknown, number | undefined])[] = [
    [3, 3_000],
    [0, 0],
    [300, 300_000],
    [301, 300_000],
    [Number.MAX_SAFE_INTEGER, 300_000],
    [1e308, undefined],
    ["x", undefined],
    ["3", undefined],
    [-1, undefined],
    [1.5, undefined],
    [null, undefined],
    [{}, undefined],
  ];
  for (const [retryAfterSeconds, expected] of pauses) {
    const details = { retryAfterSeconds };
    const body = { kind: "Status", details };
    const error = await errorOf(
      clientOf({ status: 500, body }).get(ConfigMap, KEY),
    );
    assert.ok(ApiError.is(error));
    assert.equal(error.retryAfter, expected, `${retryAfterSeconds}`);
  }
});

test("An ERROR event whose object is none is an ApiError", async () => {
  for (
    const object of [null, 5, "x", [], { code: "x", message: 5, reason: [] }]
  ) {
    const body = `${JSON.stringify({ type: "ERROR", object })}\n`;
    const error = await errorOf(
      clientOf({ status: 200, body }).watch(ConfigMap).next(),
    );
    assert.ok(ApiError.is(error), String(error));
    assert.equal(error.status, 500);
  }
});
