/**
 * Requests to a webhook listener that no API server sends: each gets a clear answer,
 * or none where it does not speak the protocol; nothing of it is held or logged.
 */
import assert from "node:assert/strict";
import { connect as connectPlain } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { after, before, test } from "node:test";
import { type Clock, noMetrics, systemClock } from "@coracle/operator/client";
import { Secret } from "@coracle/operator/kinds";
import { admissionOf } from "../../../core/admission/admission_options.ts";
import { admissionRoute } from "../../../core/admission/admission_webhook.ts";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { WebhookListener } from "../../../core/admission/webhook_listener.ts";
import { parseReview } from "../../../core/client/webhook_host.ts";
import { conversionHandler } from "../../../core/conversion/conversion_review.ts";
import { leveledLogger } from "../../../core/logger.ts";
import { inTime } from "../../support/in_time.ts";
import { until } from "../../support/until.ts";
import { Fleet } from "../conversion/versioned_kind.ts";

const LIMIT = 2_000;
const RECEIVE_MS = 10_000;
/** What no answer and no line of the log may have. */
const PASSWORD = "hunter2-in-the-body";

const logged: unknown[] = [];
const log = leveledLogger("debug", (...line) => void logged.push(line));
const deps = {
  clock: systemClock,
  log,
  metrics: noMetrics,
  checksDefaults: false,
  reader: {
    read: () => Promise.resolve(undefined),
    readList: () => Promise.resolve([]),
  },
};
const secrets = admissionOf(Secret, { validate() {} }, {
  failurePolicy: "Fail",
});
const convert = conversionHandler([Fleet]);
const routes = new Map([
  ["/secrets", admissionRoute(secrets, "validate", deps)],
  ["/convert", (body: Uint8Array) => convert(parseReview(body))],
]);
const make = (clock: Clock) =>
  new WebhookListener(routes, {
    port: 0,
    host: "127.0.0.1",
    bodyLimit: LIMIT,
    concurrency: 10,
    clock,
    log,
    metrics: noMetrics,
  });
const listener = make(systemClock);
/** A listener whose limit for receiving a request passes at once. */
const hurried = make({
  ...systemClock,
  setTimer: (callback, delay) =>
    systemClock.setTimer(callback, delay === RECEIVE_MS ? 50 : delay),
});
const authority = createAuthority({ commonName: "hostile" });
const pair = issueCertificate(authority, {
  commonName: "localhost",
  usage: "server",
  hosts: ["localhost"],
});

before(() => Promise.all([listener.start(pair), hurried.start(pair)]));
after(() => Promise.all([listener.stop(), hurried.stop()]));

const open: TLSSocket[] = [];
after(() => open.forEach((socket) => socket.destroy()));

/** Sends text on a new connection; returns what comes back until it is closed. */
function sent(
  text: string,
  { port } = listener,
): { readonly socket: TLSSocket; readonly answer: Promise<string> } {
  const socket = connect({
    port: port as number,
    host: "127.0.0.1",
    servername: "localhost",
    ca: authority.certificate,
  });
  open.push(socket);
  const answer = new Promise<string>((resolve) => {
    let received = "";
    socket.on("data", (data) => received += data);
    socket.on("close", () => resolve(received));
    socket.on("error", () => resolve(received));
  });
  socket.write(text);
  return { socket, answer: inTime("an answer", answer) };
}

function post(body: string, path = "/secrets", headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n` +
    `content-type: application/json\r\n${
      headers || `content-length: ${body.length}\r\n`
    }\r\n${body}`;
}

/** Status and body of the answer to a request. */
async function ask(
  text: string,
  from = listener,
): Promise<[status: number, body: string]> {
  const received = await sent(text, from).answer;
  const [head = "", body = ""] = received.split("\r\n\r\n");
  // Refusals come in one part, with its length before it.
  const isPart = /\r\ntransfer-encoding: chunked/i.test(head);
  const content = isPart ? body.split("\r\n")[1] ?? "" : body;
  return [Number(head.slice(9, 12)), content.trim()];
}

function review(changes: object = {}, request: object = {}): string {
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "u",
      kind: { group: "", version: "v1", kind: "Secret" },
      operation: "CREATE",
      userInfo: { username: "ada" },
      object: { metadata: { name: "a" }, data: { password: PASSWORD } },
      ...request,
    },
    ...changes,
  });
}

function isServing(): Promise<void> {
  return ask(post(review())).then(([status, body]) =>
    assert.deepEqual([status, JSON.parse(body).response], [200, {
      uid: "u",
      allowed: true,
    }])
  );
}

test("what is no review is refused in words that do not quote it", async () => {
  const refused: [body: string, status: number, why: RegExp][] = [
    [PASSWORD, 400, /^Cannot read the review: it must be JSON$/],
    [`"${PASSWORD}"`, 400, /^Cannot read the review: it must be an object$/],
    [
      review({ apiVersion: "admission.k8s.io/v1beta1" }),
      400,
      /it must be an AdmissionReview of admission\.k8s\.io\/v1$/,
    ],
    [review({ kind: "ConversionReview" }), 400, /must be an AdmissionReview/],
    [review({}, { uid: PASSWORD.repeat(20) }), 400, /"request\.uid" must be/],
    [review({}, { uid: { id: PASSWORD } }), 400, /"request\.uid" must be/],
    [review({}, { operation: PASSWORD }), 400, /"request\.operation" must be/],
    [review({}, { object: PASSWORD }), 400, /"request\.object" must be/],
    [review({}, { kind: { kind: PASSWORD } }), 400, /this path is for Secret$/],
    [`["${PASSWORD}", "${"a".repeat(LIMIT)}"]`, 413, /at most 2000 bytes$/],
  ];
  for (const [body, status, why] of refused) {
    const [given, text] = await ask(post(body));
    assert.equal(given, status, text);
    assert.match(text, why);
    assert(!text.includes(PASSWORD), text);
  }
  assert.equal(JSON.stringify(logged).includes(PASSWORD), false);
  await isServing();
});

test("a body without a length is read up to the limit, in parts", async () => {
  const part = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const chunked = "transfer-encoding: chunked\r\n";
  const body = review();
  const whole = part(body.slice(0, 9)) + part(body.slice(9)) + "0\r\n\r\n";
  assert.equal((await ask(post(whole, "/secrets", chunked)))[0], 200);
  const large = part("a".repeat(LIMIT)) + part("b") + "0\r\n\r\n";
  assert.deepEqual(await ask(post(large, "/secrets", chunked)), [
    413,
    "Cannot read the review: it must have at most 2000 bytes",
  ]);
});

test("a sender that does not finish is answered with 408", async () => {
  const slow = post(
    review().slice(0, 20),
    "/secrets",
    "content-length: 900\r\n",
  );
  assert.deepEqual(await ask(slow, hurried), [
    408,
    "Cannot read the review: it did not arrive within 10000 ms",
  ]);
});

test("bodies that are held are bounded, and freed when their senders go", async () => {
  const held = Array.from(
    { length: 2 },
    () => sent(post("a".repeat(1_900), "/secrets", "content-length: 1950\r\n")),
  );
  const body = review({ padding: "a".repeat(1_500) });
  await until(
    "a third body is too much",
    async () => (await ask(post(body)))[0] === 429,
  );
  for (const { socket } of held) socket.destroy();
  await until(
    "there is room again",
    async () => (await ask(post(body)))[0] === 200,
  );
});

test("bytes that are no request, and no TLS, end their connection only", async () => {
  assert.match(await sent(`${PASSWORD}\r\n\r\n`).answer, /^$|^HTTP\/1\.1 400 /);
  const plain = connectPlain(listener.port as number, "127.0.0.1");
  const ended = new Promise<void>((resolve) =>
    plain.on("close", () => resolve()).on("error", () => {})
  );
  plain.resume().write(post(review()));
  await inTime("the connection without TLS ends", ended);
  // A caller that trusts another authority breaks off the handshake.
  const stranger = connect({
    port: listener.port as number,
    host: "127.0.0.1",
    servername: "localhost",
    ca: createAuthority({ commonName: "other" }).certificate,
  });
  const refused = new Promise<Error>((resolve) =>
    stranger.on("error", resolve)
  );
  assert.match(
    String((await inTime("the handshake fails", refused)).message),
    /certificate|issuer|verify|Unknown/i,
  );
  await isServing();
});

test("a conversion review of another version is answered by a failure", async () => {
  const conversion = (changes: object) =>
    post(
      JSON.stringify({
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "ConversionReview",
        request: {
          uid: "u",
          desiredAPIVersion: "sea.example.org/v1",
          objects: [],
        },
        ...changes,
      }),
      "/convert",
    );
  const [status, text] = await ask(
    conversion({ apiVersion: "apiextensions.k8s.io/v1beta1" }),
  );
  assert.equal(status, 200);
  const { response } = JSON.parse(text);
  assert.equal(response.uid, "u");
  assert.match(
    response.result.message,
    /must be a ConversionReview of apiextensions\.k8s\.io\/v1: received/,
  );
  const [, long] = await ask(conversion({ kind: "a".repeat(1_000) }));
  assert(JSON.parse(long).response.result.message.length <= 500);
  const [, unnamed] = await ask(conversion({ request: { objects: [] } }));
  assert.match(JSON.parse(unnamed).response.result.message, /it has no uid/);
  assert.equal((await ask(conversion({ request: { uid: "u" } })))[0], 200);
});
