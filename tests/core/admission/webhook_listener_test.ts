import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { after, before, test } from "node:test";
import {
  MetricsRegistry,
  silentLogger,
  systemClock,
  type WebhookRoute,
} from "@coracle/operator/core";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import {
  showsCertificates,
  WebhookListener,
} from "../../../core/admission/webhook_listener.ts";
import { parseReview } from "../../../core/client/webhook_host.ts";
import { openHttpTransport } from "../../../core/client/transport/open_transport.ts";
import { inTime } from "../../support/in_time.ts";

const LIMIT = 1_000;

const authorities = ["old", "new"].map((commonName) =>
  createAuthority({ commonName })
);
const [old, next] = authorities.map((authority) =>
  issueCertificate(authority, {
    commonName: "localhost",
    usage: "server",
    hosts: ["localhost", "127.0.0.1"],
  })
) as [ReturnType<typeof issueCertificate>, typeof authorities[number]];
const bundle = authorities.map(({ certificate }) => certificate).join("");

const metrics = new MetricsRegistry();

/** Number of refusals with a status. */
function refusals(status: number): number {
  const series = `\ncoracle_webhook_refusals_total{status="${status}"} `;
  return Number(metrics.text().split(series)[1]?.split("\n")[0] ?? 0);
}

const entered = Promise.withResolvers<void>();
const waiting = Promise.withResolvers<void>();
const routes = new Map<string, WebhookRoute>([
  ["/echo", (body) => Promise.resolve({ got: parseReview(body) })],
  ["/wait", () => {
    entered.resolve();
    return waiting.promise.then(() => ({}));
  }],
  ["/convert", () => Promise.resolve({})],
  ["/fail", () => Promise.reject(new Error("Cannot decide: no database"))],
  [
    "/late",
    (_body, { signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason))
      ),
  ],
]);
const listener = new WebhookListener(routes, {
  port: 0,
  host: "127.0.0.1",
  bodyLimit: LIMIT,
  concurrency: 1,
  clock: systemClock,
  log: silentLogger,
  metrics,
});

before(() => listener.start(old));
after(() => listener.stop());

const JSON_TYPE = { "content-type": "application/json" };

async function ask(
  path: string,
  body: string | undefined = "{}",
  headers: Record<string, string> = JSON_TYPE,
  method: "GET" | "POST" = "POST",
  { port } = listener,
): Promise<[status: number, text: string]> {
  const transport = await openHttpTransport({
    server: `https://localhost:${port}`,
    certificateAuthority: bundle,
  });
  try {
    const request = {
      method,
      path,
      headers,
      ...(method === "POST" && { body }),
    };
    const answer = await transport.send(request);
    const chunks: Uint8Array[] = [];
    for await (const chunk of answer.body) chunks.push(chunk);
    return [answer.status, Buffer.concat(chunks).toString().trim()];
  } finally {
    transport.close();
  }
}

test("the webhook listener answers a review, and refuses what is none", async () => {
  assert.deepEqual(await ask("/echo", '{"a":1}'), [200, '{"got":{"a":1}}']);
  assert.equal((await ask("/healthz", undefined, {}, "GET"))[0], 200);
  assert.equal((await ask("/other"))[0], 404);
  assert.equal(refusals(404), 1);
  assert.equal((await ask("/echo", undefined, {}, "GET"))[0], 405);
  assert.equal((await ask("/echo", "{}", {}))[0], 415);
  assert.deepEqual(await ask("/echo", "{"), [
    400,
    "Cannot read the review: it must be JSON",
  ]);
  assert.equal((await ask("/echo", "[]"))[0], 400);
  assert.deepEqual(await ask("/echo", `"${"a".repeat(LIMIT)}"`), [
    413,
    "Cannot read the review: it must have at most 1000 bytes",
  ]);
  assert.deepEqual(await ask("/fail"), [500, "Cannot decide: no database"]);
  assert.deepEqual(await ask("/late?timeout=1s"), [
    500,
    "Cannot answer the webhook: it was not done within 900 ms",
  ]);
});

test("the webhook listener refuses a request beyond those in progress with 429", async () => {
  const first = ask("/wait");
  await inTime("the first request is handled", entered.promise, 10_000);
  assert.equal((await ask("/late?timeout=1s"))[0], 429);
  waiting.resolve();
  assert.deepEqual(await first, [200, "{}"]);
  assert.equal(refusals(429), 1);
});

/** Opens a connection. */
async function opened(
  port: number,
  options: ConnectionOptions = {},
): Promise<{ readonly socket: TLSSocket }> {
  const socket = connect({
    port,
    host: "127.0.0.1",
    servername: "localhost",
    ca: bundle,
    ...options,
  });
  await inTime(
    "connects",
    new Promise<void>((resolve, reject) => {
      socket.on("secureConnect", resolve).on("error", reject);
    }),
  );
  return { socket };
}

/** Opens a connection and returns it with the issuer of its certificate. */
async function connected(): Promise<
  [socket: TLSSocket, issuer: string | undefined]
> {
  const { socket } = await opened(listener.port as number);
  const { issuer } = socket.getPeerCertificate();
  return [socket, String(issuer.CN)];
}

/** Sends a request on a connection, and returns the first line of the answer. */
async function line(socket: TLSSocket): Promise<string> {
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("data", (data) => resolve(String(data).split("\r\n")[0] ?? ""));
    socket.once("close", () => reject(new Error("closed")));
  });
  socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  return await inTime("answers", answer);
}

test("a new certificate serves new connections, and open ones stay open", async () => {
  const [open, before] = await connected();
  assert.equal(before, "old");
  assert.match(await line(open), / 200 /);
  await listener.use(next);
  const [later, issuer] = await connected();
  assert.equal(issuer, "new");
  assert.match(await line(open), / 200 /);
  assert.match(await line(later), / 200 /);
  for (const socket of [open, later]) socket.destroy();
});

test("the webhook listener lets in only callers with a certificate, by name", async () => {
  const client = createAuthority({ commonName: "callers" });
  const stranger = createAuthority({ commonName: "strangers" });
  const make = (callers: "all" | readonly string[]) =>
    new WebhookListener(routes, {
      port: 0,
      host: "127.0.0.1",
      bodyLimit: LIMIT,
      concurrency: 1,
      callers,
      clock: systemClock,
      log: silentLogger,
      metrics,
    });
  const knowsNames = showsCertificates();
  const named = ["kube-apiserver"];
  if (!knowsNames) assert.throws(() => make(named), /servers of Bun do not/);
  const strict = make(knowsNames ? named : "all");
  await strict.start({ ...old, clientAuthorities: client.certificate });
  const askAs = async (pair?: typeof old, path = "/echo") => {
    const { socket } = await opened(strict.port as number, {
      cert: pair?.certificate,
      key: pair?.key,
    });
    const answer = inTime(
      "answers",
      new Promise<string>((resolve) =>
        socket.once("data", (data) => resolve(String(data)))
      ),
      10_000,
    );
    const method = path === "/healthz" ? "GET" : "POST";
    socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    );
    const text = await answer;
    socket.destroy();
    return Number(text.slice(9, 12));
  };
  const issued = (authority: typeof client, commonName: string) =>
    issueCertificate(authority, { commonName, usage: "client" });
  try {
    assert.equal(await askAs(), 401);
    assert.equal(await askAs(issued(stranger, "kube-apiserver")), 401);
    const other = await askAs(issued(client, "someone"));
    assert.equal(other, knowsNames ? 403 : 200);
    assert.equal(await askAs(issued(client, "kube-apiserver")), 200);
    // Probes and conversions have no certificate.
    assert.equal(await askAs(undefined, "/convert"), 200);
    assert.equal(await askAs(undefined, "/healthz"), 200);
    assert.equal(refusals(401), 2);
    assert.equal(refusals(403), knowsNames ? 1 : 0);
    // The authorities are replaced without a restart.
    await strict.use({ ...old, clientAuthorities: stranger.certificate });
    assert.equal(await askAs(issued(client, "kube-apiserver")), 401);
    assert.equal(await askAs(issued(stranger, "kube-apiserver")), 200);
  } finally {
    await strict.stop();
  }
});

test("a listener that is left answers for a while, and closes connections", async () => {
  // Its seconds pass in ten milliseconds.
  const leaving = new WebhookListener(routes, {
    port: 0,
    host: "127.0.0.1",
    bodyLimit: LIMIT,
    concurrency: 1,
    clock: {
      ...systemClock,
      now: () => systemClock.now() * 100,
      setTimer: (callback, delay) =>
        systemClock.setTimer(callback, delay / 100),
    },
    log: silentLogger,
    metrics,
  });
  await leaving.start(old);
  const { signal } = new AbortController();
  const begun = performance.now();
  const left = leaving.leave(10_000, signal);
  const { socket } = await opened(leaving.port as number);
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => resolve())
  );
  assert.match(await line(socket), / 200 /);
  await inTime("the connection ends with the answer", closed);
  await inTime("the listener has been left", left);
  assert(performance.now() - begun >= 29);
  await leaving.stop();
});

/** A listener with a route that answers on demand, and a connection to it. */
async function slowListener(): Promise<{
  readonly slow: WebhookListener;
  readonly socket: TLSSocket;
  /** All that is received until the connection is closed. */
  readonly received: Promise<string>;
  readonly begun: Promise<void>;
  readonly answer: (answer: object) => void;
}> {
  const answered = Promise.withResolvers<object>();
  const begun = Promise.withResolvers<void>();
  const route = () => {
    begun.resolve();
    return answered.promise;
  };
  const slow = new WebhookListener(new Map([["/slow", route]]), {
    port: 0,
    host: "127.0.0.1",
    bodyLimit: LIMIT,
    concurrency: 1,
    clock: systemClock,
    log: silentLogger,
    metrics,
  });
  await slow.start(old);
  const { socket } = await opened(slow.port as number);
  const received = new Promise<string>((resolve) => {
    let text = "";
    socket.on("data", (data) => text += String(data));
    socket.on("close", () => resolve(text));
  });
  const { promise } = begun;
  return { slow, socket, received, begun: promise, answer: answered.resolve };
}

const SLOW =
  "POST /slow HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";

test("a listener that stops answers requests that have arrived", async () => {
  const { slow, socket, received, answer } = await slowListener();
  assert.match(await line(socket), / 200 /);
  answer({ done: true });
  // Nobody has read the request when the listener begins to stop.
  socket.write(`${SLOW}{}`);
  await slow.stop();
  const text = await inTime("the connection ends", received);
  const [, second = ""] = text.split(/(?<=\})(?=HTTP)/);
  assert.match(second, /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/i);
  assert.match(second, /\{"done":true\}$/);
});

test("a listener that stops waits for the rest of a request", async () => {
  const { slow, socket, received, begun, answer } = await slowListener();
  socket.write(`${SLOW}{`);
  assert.match(await line((await opened(slow.port as number)).socket), / 200 /);
  const stopped = slow.stop();
  socket.write("}");
  await inTime("the request is handled", begun);
  answer({ done: true });
  await stopped;
  assert.match(await received, / 200 [^]*\{"done":true\}$/);
});

test("a listener that stops closes connections without a request", async () => {
  const { slow, socket, received } = await slowListener();
  assert.match(await line(socket), / 200 /);
  await slow.stop();
  await inTime("the connection ends", received);
});

test("an idle connection stays open for longer than API servers keep it", async () => {
  const { socket } = await opened(listener.port as number);
  const head = new Promise<string>((resolve) =>
    socket.once("data", (data) => resolve(String(data)))
  );
  assert.match(await line(socket), / 200 /);
  const [, seconds] = /\r\nkeep-alive: timeout=(\d+)/i.exec(await head) ?? [];
  assert(Number(seconds) > 90, seconds);
  socket.destroy();
});
