import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { TestCluster, VirtualClock } from "@coracle/dev";
import { jsonLogger, Operator } from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { type WebhookOptions, webhookSource } from "@coracle/operator/sources";
import {
  gadget,
  type RecordedContext,
  recordedContext,
} from "../support/source_context.ts";
import { inTime } from "../support/in_time.ts";
import { until } from "../support/until.ts";

const SECRET = "an open secret of this test";

function sign(body: string): Record<string, string> {
  const digest = createHmac("sha256", SECRET).update(body).digest("hex");
  return { "x-hub-signature-256": `sha256=${digest}` };
}

async function withWebhook(
  options: Partial<WebhookOptions>,
  use: (url: string, context: RecordedContext) => Promise<void>,
  known: readonly KubernetesObject[] = [],
): Promise<void> {
  const source = webhookSource({
    name: "hook",
    check: { hmac: { secret: SECRET } },
    primaries: (request) => [(request.json() as { key: string }).key],
    ...options,
  });
  const context = recordedContext(new VirtualClock(), known);
  await source.start(context);
  try {
    await use(source.url!, context);
  } finally {
    await source.stop();
  }
}

async function post(
  url: string,
  body: string,
  headers: Record<string, string> = sign(body),
): Promise<number> {
  const response = await fetch(url, { method: "POST", body, headers });
  await response.text();
  return response.status;
}

test("webhookSource triggers the primaries of a request with the right signature", async () => {
  await withWebhook({}, async (url, context) => {
    assert.equal(await post(url, '{"key":"default/a"}'), 202);
    assert.deepEqual(context.triggered, ["default/a"]);
  });
});

test("webhookSource refuses calls for what another replica runs", async () => {
  const cluster = await TestCluster.start();
  const { client, logger, namespace } = cluster;
  const runs: string[] = [];
  const replica = async (identity: string) => {
    const operator = new Operator({
      client,
      logger,
      namespaces: [namespace],
      leaderElection: { name: "hooks", namespace, identity },
    });
    const source = webhookSource<ConfigMap>({
      name: "hook",
      check: { hmac: { secret: SECRET } },
      primaries: (request) => [(request.json() as { key: string }).key],
    });
    operator.register(ConfigMap, {
      reconcile: (_map, { cause }) =>
        void runs.push(`${identity} ${cause.type}`),
    }, { sources: [source], fieldSelector: "metadata.name=a" });
    await operator.start();
    return { operator, url: source.url! };
  };
  const leader = await replica("leader");
  await cluster.until(() => leader.operator.health().leading);
  const standby = await replica("standby");
  try {
    await client.create(ConfigMap, { metadata: { namespace, name: "a" } });
    await cluster.until(() => runs.length === 1);
    const known = ({ operator }: typeof leader) =>
      operator.health().controllers[0]?.primaries === 1;
    await cluster.until(() => known(leader) && known(standby));
    const call = (name: string) => `{"key":"${namespace}/${name}"}`;
    assert.equal(await post(standby.url, call("a")), 503);
    const body = call("unknown");
    const accepted = await fetch(standby.url, {
      method: "POST",
      body,
      headers: sign(body),
    });
    assert.equal(accepted.status, 202);
    assert.equal(await accepted.text(), "Accepted for 0\n");
    assert.equal(await post(leader.url, call("a")), 202);
    await cluster.until(() => runs[1] === "leader source");
  } finally {
    await standby.operator.stop();
    await leader.operator.stop();
    await cluster.stop();
  }
});

test("webhookSource passes the known primaries to its mapper", async () => {
  await withWebhook({
    primaries: async (request, known) => {
      const { uid } = request.json() as { uid: string };
      return await Promise.resolve(
        known.list().filter(({ metadata }) => metadata.uid === uid)
          .map(({ metadata: { namespace, name } }) => ({ namespace, name })),
      );
    },
  }, async (url, context) => {
    assert.equal(await post(url, '{"uid":"uid-b"}'), 202);
    assert.equal(await post(url, '{"uid":"uid-c"}'), 202);
    assert.deepEqual(context.triggered, ["default/b"]);
  }, [gadget("a"), gadget("b")]);
});

test("webhookSource passes a client to its mapper whose writes need no lease", async () => {
  const unfenced = {} as RecordedContext["unfenced"];
  let given: unknown;
  const source = webhookSource({
    name: "hook",
    check: "none",
    primaries(_request, _known, client) {
      given = client;
      return [];
    },
  });
  await source.start(recordedContext(new VirtualClock(), [], { unfenced }));
  try {
    assert.equal(await post(source.url!, "{}"), 202);
    assert.equal(given, unfenced);
  } finally {
    await source.stop();
  }
});

test("webhookSource refuses a wrong or missing signature", async () => {
  await withWebhook({}, async (url, context) => {
    const body = '{"key":"default/a"}';
    assert.equal(await post(url, body, sign("another")), 401);
    assert.equal(await post(url, body, {}), 401);
    assert.equal(await post(url, body, { "x-hub-signature-256": "" }), 401);
    assert.deepEqual(context.triggered, []);
  });
});

test("webhookSource takes the signature of bytes in another form", async () => {
  const hmac = {
    secret: SECRET,
    header: "X-Signature",
    prefix: "Digest ",
    algorithm: "sha512",
  } as const;
  const options = { check: { hmac }, primaries: () => ["default/a"] };
  await withWebhook(options, async (url) => {
    const body = Uint8Array.of(0xff, 0xfe, 0x00);
    const status = async (algorithm: string) => {
      const digest = createHmac(algorithm, SECRET).update(body).digest("hex");
      const headers = { "x-signature": `Digest ${digest.toUpperCase()}` };
      const answer = await fetch(url, { method: "POST", body, headers });
      await answer.text();
      return answer.status;
    };
    assert.equal(await status("sha512"), 202);
    assert.equal(await status("sha256"), 401);
  });
});

test("webhookSource takes a bearer token instead", async () => {
  const check = { bearer: { token: SECRET.replaceAll(" ", "-") } };
  await withWebhook({ check }, async (url) => {
    const body = '{"key":"default/a"}';
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    assert.equal(await post(url, body, bearer(check.bearer.token)), 202);
    assert.equal(await post(url, body, bearer("wrong")), 401);
    assert.equal(await post(url, body, {}), 401);
  });
});

test("webhookSource compares a bearer token with its case", async () => {
  const check = { bearer: { token: "AbC" } };
  await withWebhook({ check }, async (url) => {
    const status = (authorization: string) =>
      post(url, '{"key":"default/a"}', { authorization });
    assert.equal(await status("bearer AbC"), 202);
    for (const token of ["abc", "ABC", "AbC2", "Ab", "AbCAbC"]) {
      assert.equal(await status(`Bearer ${token}`), 401, token);
    }
  });
});

test("webhookSource takes a bearer token only as the whole authorization", async () => {
  await withWebhook({ check: { bearer: { token: "AbC" } } }, async (url) => {
    for (
      const authorization of [
        "Basic x, Bearer AbC",
        "xBearer AbC",
        "Bearer AbC x",
      ]
    ) {
      const status = await post(url, '{"key":"default/a"}', { authorization });
      assert.equal(status, 401, authorization);
    }
  });
});

test("webhookSource serves POST to its one path only", async () => {
  await withWebhook({ path: "/hook" }, async (url) => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      assert.equal((await fetch(url, { method })).status, 405, method);
    }
    for (const path of ["/other", "/", "/hook/more", "/hooks"]) {
      assert.equal(await post(url.replace("/hook", path), "{}"), 404, path);
    }
  });
});

test("webhookSource reports invalid JSON, and survives a failing mapper", async () => {
  await withWebhook({}, async (url) => {
    assert.equal(await post(url, "no json"), 400);
    assert.equal(await post(url, "null"), 400);
    const body = '{"key":{}}';
    const headers = sign(body);
    const refused = await fetch(url, { method: "POST", body, headers });
    assert.equal(refused.status, 400);
    assert.equal(await refused.text(), "Cannot read the request\n");
    assert.equal(await post(url, '{"key":"default/a"}'), 202);
  });
});

test("webhookSource triggers nothing for a request with a malformed key", async () => {
  const primaries = () => ["default/a", "default/b/c"];
  await withWebhook({ primaries }, async (url, context) => {
    assert.equal(await post(url, "{}"), 400);
    assert.deepEqual(context.triggered, []);
  });
});

test("webhookSource refuses a body over the limit, with or without a length", async () => {
  await withWebhook({ bodyLimit: 1000 }, async (url, context) => {
    const large = "x".repeat(1001);
    assert.equal(await post(url, large), 413);
    const signature = `x-hub-signature-256: sha256=${"0".repeat(64)}\r\n`;
    const chunked = (body: string) =>
      `${signature}transfer-encoding: chunked\r\n\r\n${
        body.length.toString(16)
      }\r\n${body}\r\n`;
    const status = (rest: string) =>
      new Promise<string>((resolve, reject) => {
        const { hostname, port } = new URL(url);
        const socket = connect(Number(port), hostname, () => {
          socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${rest}`);
        });
        socket.once("data", (data) => {
          resolve(String(data).split("\r\n")[0]!);
          socket.destroy();
        });
        socket.once("error", reject);
      });
    assert.match(await status(chunked(large)), /413/);
    assert.match(await status("content-length: 1001\r\n\r\n"), /413/);
    assert.deepEqual(context.triggered, []);
    const longest = "x".repeat(1_000);
    assert.equal(await post(url, longest), 400, "it is read, but is no JSON");
    assert.match(await status(`${chunked(longest)}0\r\n\r\n`), /401/);
  });
});

test("webhookSource refuses a body over 1 MiB by default", async () => {
  await withWebhook({}, async (url) => {
    assert.equal(await post(url, `"${"x".repeat(1 << 20)}"`), 413);
  });
});

test("webhookSource closes the connection of a refused request only", async () => {
  await withWebhook({}, async (url) => {
    const body = '{"key":"default/a"}';
    for (const given of [body, "no json", "unsigned"]) {
      const headers = sign(given === "unsigned" ? "" : given);
      const answer = await fetch(url, { method: "POST", body: given, headers });
      await answer.text();
      const closes = answer.headers.get("connection") === "close";
      assert.equal(closes, answer.status >= 400);
    }
  });
});

test("webhookSource counts all parts of a body without a length", async () => {
  const options = { bodyLimit: 1_000, check: "none" } as const;
  await withWebhook(options, async (url) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write(
      "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    const answer = new Promise<string>((resolve, reject) => {
      socket.once("data", (data) => resolve(String(data)));
      socket.once("error", reject);
    });
    for (const _part of [1, 2]) {
      socket.write(`258\r\n${"x".repeat(600)}\r\n`);
      await new Promise(setImmediate);
    }
    socket.write("0\r\n\r\n");
    assert.match(await answer, /^HTTP\/1.1 413/);
    socket.destroy();
  });
});

test("webhookSource passes path, query, headers and body to its mapper", async () => {
  const seen: unknown[] = [];
  await withWebhook({
    path: "/hook",
    primaries({ path, query, headers, body }) {
      const text = new TextDecoder().decode(body);
      seen.push(path, query.get("a"), headers["x-a"], text);
      return [];
    },
  }, async (url) => {
    const headers = { ...sign("text"), "x-a": "b" };
    assert.equal(await post(`${url}?a=1`, "text", headers), 202);
    assert.deepEqual(seen, ["/hook", "1", "b", "text"]);
  });
});

test("webhookSource serves a path with characters that URLs encode", async () => {
  for (const path of ["/größe", "/a b", "/50%25"]) {
    await withWebhook({ path }, async (url, context) => {
      assert.equal(await post(url, '{"key":"default/a"}'), 202, url);
      assert.deepEqual(context.triggered, ["default/a"]);
    });
  }
});

test("webhookSource reads a body that comes in parts", async () => {
  await withWebhook({}, async (url, context) => {
    const body = JSON.stringify({
      key: "default/a",
      more: "x".repeat(300_000),
    });
    assert.equal(await post(url, body), 202);
    assert.deepEqual(context.triggered, ["default/a"]);
  });
});

test("webhookSource warns once a minute about requests that are broken off", async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log = jsonLogger({
    level: "warn",
    write: (line) => lines.push(line),
  });
  const source = webhookSource({
    name: "hook",
    check: { hmac: { secret: SECRET } },
    primaries: () => [],
  });
  await source.start(recordedContext(clock, [], { log }));
  const { hostname, port } = new URL(source.url ?? "");
  const breakOff = () =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        const signature = `x-hub-signature-256: sha256=${"0".repeat(64)}`;
        socket.end(
          `POST / HTTP/1.1\r\nhost: x\r\n${signature}\r\ncontent-length: 9\r\n\r\n{`,
        );
      });
      socket.on("error", () => {}).on("data", () => {});
      socket.on("close", () => resolve());
    });
  try {
    for (let count = 0; count < 20; count++) await breakOff();
    await until("a warning", () => lines.length > 0);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.doesNotMatch(lines[0] ?? "", /"omitted"/);
    await clock.advance(60_000);
    await breakOff();
    await until("a second warning", () => lines.length > 1);
    assert.match(lines[1] ?? "", /"omitted":19/);
  } finally {
    await source.stop();
  }
});

test("webhookSource closes its socket when it stops, and can be started again", async () => {
  const source = webhookSource({
    name: "hook",
    check: "none",
    primaries: () => ["default/a"],
  });
  for (const round of ["first", "second"]) {
    const context = recordedContext(new VirtualClock());
    await source.start(context);
    const { url = "" } = source;
    assert.equal(await post(url, "{}"), 202, round);
    assert.deepEqual(context.triggered, ["default/a"], round);
    await source.stop();
    await assert.rejects(post(url, "{}"), round);
    assert.equal(source.url, undefined);
    assert.deepEqual(source.health?.(), { status: "unknown" });
  }
});

test("webhookSource that is stopped while it starts does not listen", async () => {
  const source = webhookSource({
    name: "hook",
    check: "none",
    primaries: () => [],
  });
  const starting = source.start(recordedContext(new VirtualClock()));
  assert.equal(source.health?.().status, "unhealthy");
  await source.stop();
  await starting;
  assert.equal(source.url, undefined);
  assert.equal(source.health?.().status, "unknown");
});

test("webhookSource does not wait for an unfinished request when it stops", async () => {
  const asked = Promise.withResolvers<void>();
  const source = webhookSource({
    name: "hook",
    check: "none",
    primaries: () => {
      asked.resolve();
      return new Promise(() => {}); // the reply never comes
    },
  });
  await source.start(recordedContext(new VirtualClock()));
  const { port } = new URL(source.url!);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  try {
    socket.write("POST / HTTP/1.1\r\nhost: hook\r\ncontent-length: 0\r\n\r\n");
    await inTime("the request arrives", asked.promise);
    await inTime("the source has stopped", source.stop());
  } finally {
    socket.destroy();
  }
});

test("webhookSource refuses options that make no sense", () => {
  const make = (options: Partial<WebhookOptions>) => () =>
    webhookSource({
      name: "x",
      check: "none",
      primaries: () => [],
      ...options,
    });
  assert.throws(make({ port: 70_000 }), RangeError);
  assert.throws(make({ bodyLimit: 0 }), RangeError);
  assert.throws(make({ path: "hook" }), TypeError);
  const hmac = { secret: "a" };
  const bearer = { token: "b" };
  assert.throws(make({ check: { hmac: { secret: "" } } }), TypeError);
  assert.throws(make({ check: { bearer: { token: "" } } }), TypeError);
  for (const token of [[], [""], ["a", ""], 5, [5]]) {
    const check = { bearer: { token } } as never;
    assert.throws(make({ check }), /must be a string, or an array of strings/);
  }
  assert.throws(make({ check: { hmac, bearer } as never }), /"check" must be/);
  assert.throws(make({ check: { hmac, none: 1 } as never }), /"check" must be/);
  for (
    const misspelt of [{ hmac: { ...hmac, algo: "md5" } }, {
      bearer: { ...bearer, tokens: [] },
    }]
  ) {
    assert.throws(make({ check: misspelt as never }), /there is no option/);
  }
});

test("webhookSource reports that its port is taken, and its health", async () => {
  const options = {
    check: { hmac: { secret: SECRET } },
    primaries: () => [],
  };
  const first = webhookSource({ name: "first", ...options });
  assert.deepEqual(first.health?.(), { status: "unknown" });
  await first.start(recordedContext(new VirtualClock()));
  assert.equal(first.health?.().status, "healthy");
  const port = Number(new URL(first.url ?? "").port);
  const second = webhookSource({ name: "second", port, ...options });
  await assert.rejects(
    second.start(recordedContext(new VirtualClock())),
    /^Error: Cannot start the webhook "second": it cannot listen: (?!received)/,
  );
  assert.equal(second.url, undefined);
  await second.stop();
  await first.stop();
});

test("webhookSource says that a body is no JSON, and warns of nothing", async () => {
  await withWebhook({}, async (url, context) => {
    const body = "secret text";
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: sign(body),
    });
    assert.equal(response.status, 400);
    assert.equal(await response.text(), "The body must be JSON\n");
    assert.deepEqual(context.triggered, []);
  });
});

/** Connection to a webhook, with what it has answered. */
class Caller {
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  answer = "";
  isClosed = false;

  constructor(url: string, text: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.on("data", (data) => this.answer += data);
    this.#socket.on("error", () => {});
    this.#closed = new Promise((resolve) =>
      this.#socket.on("close", () => {
        this.isClosed = true;
        resolve();
      })
    );
    this.#socket.write(text);
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    await this.#closed;
  }
}

const POST = "POST / HTTP/1.1\r\nhost: x\r\n";

test("webhookSource refuses a wrong token or form of signature before the body", async () => {
  const callers: Caller[] = [];
  const refused = async (url: string, header: string) => {
    const caller = new Caller(
      url,
      `${POST}${header}content-length: 900000\r\n\r\n`,
    );
    callers.push(caller);
    await until("an answer", () => caller.answer.includes("\r\n\r\n"));
    assert.match(caller.answer, /^HTTP\/1.1 401 /, header);
  };
  const check = { bearer: { token: "AbC" } };
  await withWebhook({ check }, async (url) => {
    for (const header of ["", "authorization: Bearer wrong\r\n"]) {
      await refused(url, header);
    }
  });
  await withWebhook({}, async (url) => {
    const digits = "0".repeat(64);
    for (
      const value of [
        "",
        digits,
        `sha1=${digits}`,
        `sha256=${digits}0`,
        `sha256=${digits.slice(1)}`,
        `sha256=${digits.slice(1)}g`,
      ]
    ) await refused(url, value && `x-hub-signature-256: ${value}\r\n`);
    await refused(url, "");
  });
  await Promise.all(callers.map((caller) => caller.close()));
});

test("webhookSource accepts each of several secrets, while they are changed", async () => {
  const body = '{"key":"default/a"}';
  const signed = (secret: string) => {
    const digest = createHmac("sha256", secret).update(body).digest("hex");
    return { "x-hub-signature-256": `sha256=${digest}` };
  };
  const hmac = { secret: ["new", "old"] };
  await withWebhook({ check: { hmac } }, async (url) => {
    assert.equal(await post(url, body, signed("new")), 202);
    assert.equal(await post(url, body, signed("old")), 202);
    assert.equal(await post(url, body, signed("older")), 401);
  });
  const check = { bearer: { token: ["new", "old"] } };
  await withWebhook({ check }, async (url) => {
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    assert.equal(await post(url, body, bearer("new")), 202);
    assert.equal(await post(url, body, bearer("old")), 202);
    assert.equal(await post(url, body, bearer("older")), 401);
  });
});

test("webhookSource holds at most 16 MiB of unfinished bodies of all connections", async () => {
  await withWebhook({}, async (url) => {
    const signature = `x-hub-signature-256: sha256=${"0".repeat(64)}\r\n`;
    const head = `${POST}${signature}content-length: 1048576\r\n\r\n`;
    const part = "x".repeat(1_000_000);
    const callers = Array.from(
      { length: 20 },
      () => new Caller(url, head + part),
    );
    const refused = () =>
      callers.filter(({ answer }) => /^HTTP\/1.1 503 /.test(answer));
    // 16 of them fit, the sum of those that were refused midway included.
    await until("four are refused", () => refused().length >= 4);
    assert.match(refused()[0]?.answer ?? "", /Too much arrives at once/);
    assert.ok(refused().length <= 5, `${refused().length}`);
    await Promise.all(callers.map((caller) => caller.close()));
    const body = '{"key":"default/a"}';
    await until(
      "room for others",
      async () => await post(url, body) === 202,
    );
  });
});

test("webhookSource has at most 100 connections, and accepts others after them", async () => {
  await withWebhook({}, async (url) => {
    const callers = Array.from({ length: 110 }, () => new Caller(url, POST));
    await until(
      "ten are closed",
      () => callers.filter(({ isClosed }) => isClosed).length === 10,
    );
    await Promise.all(callers.map((caller) => caller.close()));
    await until(
      "room for others",
      () =>
        post(url, '{"key":"default/a"}').then(
          (status) => status === 202,
          () => false,
        ),
    );
  });
});
