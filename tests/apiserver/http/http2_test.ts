/**
 * The embedded API server over HTTP/2.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EventEmitter, once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type Http2Session,
  type IncomingHttpHeaders,
} from "node:http2";
import { after, test as nodeTest } from "node:test";
import { connect as connectTls } from "node:tls";
import { ApiServer } from "@coracle/dev/apiserver";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { textResponse } from "../../../dev/apiserver/http/exchange.ts";
import { Http2Sessions } from "../../../dev/apiserver/http/http2_sessions.ts";
import { Listener } from "../../../dev/apiserver/http/listener.ts";
import { frame, PREFACE } from "../../support/http2_frames.ts";
import { inTime } from "../../support/in_time.ts";
import { until } from "../../support/until.ts";

const C = "/api/v1/namespaces/default/configmaps";
const INTERNAL_ERROR = 2;
const SERVES_HTTP2 = !("Bun" in globalThis || "Deno" in globalThis);

const server = await ApiServer.start();
after(() => server.stop());

/** Defines a test on the runtimes whose HTTP/2 the server uses. */
function test(title: string, run: () => Promise<void>): void {
  if (SERVES_HTTP2) nodeTest(title, run);
}

/** Runs a test with a session to a server. */
async function withSession(
  run: (session: ClientHttp2Session) => Promise<void>,
  { url = server.url, ...tls }: {
    readonly url?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly ca?: string;
  } = {},
): Promise<void> {
  const session = connect(url, { ca: server.certificateAuthority, ...tls });
  session.on("error", () => {});
  try {
    await inTime("the session opens", once(session, "connect"));
    await run(session);
  } finally {
    session.destroy();
  }
}

/** Answer to a request, as far as it has arrived. */
class Answer {
  readonly stream: ClientHttp2Stream;
  readonly head: Promise<IncomingHttpHeaders & { ":status"?: number }>;
  /** Code with which the stream ends. */
  readonly end: Promise<number>;
  text = "";

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    stream.on("error", () => {});
    const ended = Promise.withResolvers<number>();
    const begun = Promise.withResolvers<Awaited<Answer["head"]>>();
    begun.promise.catch(() => {});
    stream.once("response", begun.resolve);
    stream.once("close", () => {
      begun.reject(new Error("closed"));
      ended.resolve(stream.rstCode);
    });
    stream.on("data", (chunk) => this.text += chunk);
    [this.head, this.end] = [begun.promise, ended.promise];
  }

  /** The whole answer. */
  async whole(): Promise<{ status: number | undefined; text: string }> {
    const { ":status": status } = await inTime("the head", this.head);
    assert.equal(await inTime("the end", this.end), 0);
    return { status, text: this.text };
  }

  seen(part: string): Promise<unknown> {
    return until(`${part} is seen`, () => this.text.includes(part));
  }
}

function ask(
  session: ClientHttp2Session,
  path: string,
  { body, method = "GET", ...headers }: Record<string, string> & {
    readonly body?: string;
  } = {},
): Answer {
  const stream = session.request({
    ":path": path,
    ":method": method,
    authorization: `Bearer ${server.token}`,
    "content-type": "application/json",
    ...headers,
  }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return new Answer(stream);
}

async function watch(session: ClientHttp2Session): Promise<Answer> {
  const answer = ask(session, `${C}?watch=1`);
  assert.equal((await inTime("the head", answer.head))[":status"], 200);
  return answer;
}

let created = 0;

/** Changes something that each watch sees; returns its name. */
async function change(value = ""): Promise<string> {
  const name = `news-${++created}`;
  await server.client.create(ConfigMap, {
    metadata: { namespace: "default", name },
    data: { value },
  });
  return name;
}

/** Protocol that a server chooses. */
async function chosen(url: string, ca: string): Promise<string | false | null> {
  const socket = connectTls({
    port: Number(new URL(url).port),
    host: "127.0.0.1",
    ca,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  await once(socket, "secureConnect");
  const { alpnProtocol } = socket;
  socket.destroy();
  return alpnProtocol;
}

nodeTest(
  "HTTP/2 is offered by default where it works, and by option",
  async () => {
    const { certificateAuthority, url } = server;
    const byDefault = await chosen(url, certificateAuthority);
    assert.equal(byDefault === "h2", SERVES_HTTP2);
    const plain = await ApiServer.start({ http2: false });
    try {
      const protocol = await chosen(plain.url, plain.certificateAuthority);
      assert.notEqual(protocol, "h2");
    } finally {
      await plain.stop();
    }
  },
);

test("Reads and writes have the same answers over HTTP/2", () =>
  withSession(async (session) => {
    const metadata = { name: "over-h2", namespace: "default" };
    const body = JSON.stringify({ metadata, ünïcode: 1 });
    const create = ask(session, C, { method: "POST", body });
    const { ":status": status, warning } = await create.head;
    assert.equal(status, 201);
    const text = Buffer.from(String(warning), "latin1").toString();
    assert.match(text, /unknown field \\"ünïcode\\"/);
    assert.equal(JSON.parse((await create.whole()).text).kind, "ConfigMap");
    const list = await ask(session, C).whole();
    assert.match(list.text, /"name":"over-h2"/);
    assert.equal((await ask(session, "/nowhere").whole()).status, 404);
    const head = await ask(session, "/readyz", { method: "HEAD" }).whole();
    assert.deepEqual(head, { status: 200, text: "" });
    const stranger = ask(session, C, { authorization: "Bearer x" });
    assert.equal((await stranger.whole()).status, 401);
  }));

test("A client certificate identifies its user over HTTP/2", async () => {
  const authority = createAuthority({ commonName: "users" });
  const { certificate, key } = issueCertificate(authority, {
    commonName: "jane",
    usage: "client",
  });
  const guarded = await ApiServer.start({
    clientAuthorities: authority.certificate,
  });
  try {
    await withSession(async (session) => {
      const review = {
        kind: "SelfSubjectReview",
        apiVersion: "authentication.k8s.io/v1",
      };
      const { text } = await ask(
        session,
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        { method: "POST", body: JSON.stringify(review), authorization: "" },
      ).whole();
      assert.equal(JSON.parse(text).status.userInfo.username, "jane");
    }, {
      url: guarded.url,
      ca: guarded.certificateAuthority,
      cert: certificate,
      key,
    });
  } finally {
    await guarded.stop();
  }
});

test("A body that is too large or late is refused, and others go on", async () => {
  await withSession(async (session) => {
    const watching = await watch(session);
    const body = " ".repeat(5 << 20);
    const { ":status": status } = await inTime(
      "the answer",
      ask(session, C, { method: "POST", body }).head,
    );
    assert.equal(status, 413);
    await watching.seen(await change());
  });
  const listener = await Listener.open({
    handle: () => Promise.resolve(textResponse(200, "ok")),
    reads: () => true,
    bodyTimeout: 20,
    port: 0,
    host: "127.0.0.1",
    tls: certificates(),
    http2: true,
  });
  const url = `https://127.0.0.1:${listener.port}`;
  await withSession(async (session) => {
    const late = session.request({ ":method": "POST", "content-length": "9" });
    late.write("{");
    assert.equal(await new Answer(late).end, INTERNAL_ERROR);
    assert.equal((await ask(session, "/").whole()).text, "ok");
  }, { url, ca: certificates().ca });
  await listener.close();
});

function certificates() {
  const cert = issueCertificate(AUTHORITY, {
    commonName: "server",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  return { cert: cert.certificate, key: cert.key, ca: AUTHORITY.certificate };
}
const AUTHORITY = createAuthority({ commonName: "listener" });

test("A client of HTTP/2 that gives no sign of life is disconnected", async () => {
  const { ca, ...tls } = certificates();
  const listener = await Listener.open({
    handle: () => Promise.resolve(textResponse(200, "ok")),
    reads: () => true,
    pingInterval: 50,
    port: 0,
    host: "127.0.0.1",
    tls: { ca, ...tls },
    http2: true,
  });
  const socket = connectTls({
    port: listener.port,
    host: "127.0.0.1",
    ca,
    ALPNProtocols: ["h2"],
  });
  socket.on("error", () => {}).resume();
  const closed = once(socket, "close");
  await once(socket, "secureConnect");
  // No answer to pings follows.
  socket.write(Buffer.concat([PREFACE, frame("SETTINGS", 0, 0)]));
  await inTime("the server closes the connection", closed);
  await listener.close();
});

test("A destroyed session that Node does not close gets no ping, and is closed", async () => {
  const session = Object.assign(new EventEmitter(), {
    destroyed: false,
    ping: () => assert.ok(!session.destroyed, "as Node's session throws"),
    destroy: () => session.destroyed = true,
  });
  session.destroy();
  const closed = new Promise<void>((close) =>
    new Http2Sessions(1).add(session as unknown as Http2Session, () => {
      session.emit("close");
      close();
    })
  );
  await inTime("the server closes the connection", closed);
});

test("Headers and streams beyond their limits are refused, and others go on", () =>
  withSession(async (session) => {
    const watching = await watch(session);
    const headers = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`x-${i}`, "y".repeat(1_000)]),
    );
    assert.notEqual(await ask(session, C, headers).end, 0);
    assert.equal(session.remoteSettings.maxConcurrentStreams, 100);
    const more = Array.from(
      { length: 110 },
      () => ask(session, `${C}?watch=1`),
    );
    await until("100 watches are open", () => server.watchCounts.open === 100);
    await watching.seen(await change());
    for (const { stream } of more) stream.close();
  }));

test("A watch of HTTP/2 is released when its client leaves it or goes", async () => {
  await withSession(async (session) => {
    const [left, kept] = [await watch(session), await watch(session)];
    const { open } = server.watchCounts;
    left.stream.close();
    await until("one is released", () => server.watchCounts.open === open - 1);
    await kept.seen(await change());
  });
  await until("all are released", () => server.watchCounts.open === 0);
});

test("A watch that nobody reads ends with bounded memory, and stops no other", () =>
  withSession(async (session) => {
    const { dropped } = server.watchCounts;
    const slow = await watch(session);
    slow.stream.pause();
    const fast = await watch(session);
    const value = "x".repeat(900_000);
    for (let i = 0; i < 60 && server.watchCounts.dropped === dropped; i++) {
      await fast.seen(await change(value));
      fast.text = "";
    }
    assert.equal(server.watchCounts.dropped, dropped + 1);
    await server.client.deleteCollection(ConfigMap, { namespace: "default" });
  }));

test("Faults break streams off and cut them at a byte, and others go on", () =>
  withSession(async (session) => {
    const watching = await watch(session);
    for (const reset of ["request", "answer"] as const) {
      server.faults.add({ verb: "list", count: 1, effect: { reset } });
      assert.equal(await ask(session, C).end, INTERNAL_ERROR);
    }
    await change();
    for (const path of [C, `${C}?watch=1`]) {
      server.faults.add({ count: 1, effect: { cutAfter: 70 } });
      const cut = ask(session, path);
      assert.equal(await inTime("the cut", cut.end), INTERNAL_ERROR);
      assert.equal(cut.text.length, 70);
    }
    server.faults.add({ verb: "list", count: 1, effect: { delay: 10 } });
    assert.equal((await ask(session, C).whole()).status, 200);
    const stalled = server.faults.add({ effect: { stallAfter: 1 } });
    const silent = await watch(session);
    stalled.remove();
    const name = await change();
    await watching.seen(name);
    assert.ok(!silent.text.includes(name));
    server.faults.cutWatches();
    assert.equal(await inTime("the cut", watching.end), INTERNAL_ERROR);
    assert.equal((await ask(session, "/readyz").whole()).text, "ok");
  }));

test("A GOAWAY lets streams go on and closes the connection after the last", async () => {
  for (const asked of ["at once", "by an answer"]) {
    await withSession(async (session) => {
      const gone = once(session, "goaway");
      const watching = await watch(session);
      if (asked === "at once") server.faults.goAway();
      else {
        server.faults.add({ verb: "list", count: 1, effect: { goAway: true } });
        const list = ask(session, C);
        assert.equal((await list.head).connection, undefined);
        assert.equal((await list.whole()).status, 200);
      }
      const [code] = await inTime("the GOAWAY", gone);
      assert.equal(code, 0);
      await watching.seen(await change());
      const closed = once(session, "close");
      watching.stream.close();
      await inTime("the connection closes", closed);
    });
  }
});

test("A server that stops says GOAWAY and breaks its streams", async () => {
  const stopped = await ApiServer.start({ token: server.token });
  await withSession(async (session) => {
    const gone = once(session, "goaway");
    const closed = once(session, "close");
    await watch(session);
    await stopped.stop();
    const [code] = await inTime("the GOAWAY", gone);
    assert.equal(code, 0);
    await inTime("the connection closes", closed);
  }, { url: stopped.url, ca: stopped.certificateAuthority });
});
