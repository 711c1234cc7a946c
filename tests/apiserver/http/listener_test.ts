import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { request as httpsRequest } from "node:https";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { textResponse } from "../../../dev/apiserver/http/exchange.ts";
import { Listener } from "../../../dev/apiserver/http/listener.ts";

const C = "/api/v1/namespaces/default/configmaps";

interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  readonly body: any;
}

/** Sends a request as a client on the network does. */
function send(
  server: ApiServer,
  method: string,
  path: string,
  options: {
    readonly body?: string | Uint8Array;
    readonly headers?: Record<string, string>;
  } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(server.url);
    const outgoing = request({
      host,
      port,
      path,
      method,
      headers: {
        authorization: `Bearer ${server.token}`,
        "content-type": "application/json",
        ...options.headers,
      },
      agent: false,
    }, (message: IncomingMessage) => {
      let text = "";
      message.on("data", (chunk) => text += chunk);
      message.on("error", reject);
      message.on("end", () => {
        let body: unknown = text;
        try {
          body = JSON.parse(text);
        } catch { /* it is text */ }
        resolve({ status: message.statusCode ?? 0, body });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}

async function withServer(
  work: (server: ApiServer) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ tls: false });
  try {
    await work(server);
    // Whatever came in, it goes on answering.
    assert.equal((await send(server, "GET", "/readyz")).status, 200);
  } finally {
    await server.stop();
  }
}

const wrong: [string, string, number][] = [
  ["JSON that ends early", '{"metadata":', 400],
  ["a body that is no object", "[1,2]", 400],
  ["JSON that is nested too deeply", "[".repeat(100_000), 400],
  ["an object of an unknown kind", '{"kind":"Nothing","apiVersion":"v1"}', 400],
  ["metadata that is no object", '{"metadata":5}', 400],
  ["a field of a wrong type", '{"metadata":{"name":"a"},"data":5}', 400],
  ["bytes that are no text", "\xff\xfe", 400],
];

for (const [what, body, status] of wrong) {
  test(`a create with ${what} is rejected with a Status`, async () => {
    await withServer(async (server) => {
      const answer = await send(server, "POST", C, { body });
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.equal(answer.body.kind, "Status");
    });
  });
}

test("malformed YAML and unbounded aliases are rejected", async () => {
  await withServer(async (server) => {
    const bomb = ["a: &a [x, x]"];
    for (let index = 0; index < 20; index++) {
      const before = String.fromCharCode(97 + index);
      const name = String.fromCharCode(98 + index);
      bomb.push(
        `${name}: &${name} [*${before}, *${before}, *${before}, *${before}]`,
      );
    }
    for (const body of ["a: [unclosed", "\t- x: {", bomb.join("\n")]) {
      const { status } = await send(server, "POST", C, {
        body,
        headers: { "content-type": "application/yaml" },
      });
      assert.equal(status, 400);
    }
  });
});

test("a body of 5 MiB is answered with 413, with any framing", async () => {
  await withServer(async (server) => {
    const body = new Uint8Array(5 * 1024 * 1024).fill(0x20);
    const framings = [{}, { "transfer-encoding": "chunked" }];
    // Without the rest of the body being read, some answers would be lost.
    for (let round = 0; round < 10; round++) {
      for (const headers of framings) {
        const sent = await send(server, "PUT", "/version", { body, headers });
        assert.equal(sent.status, 405);
        const created = await send(server, "POST", C, { body, headers });
        assert.equal(created.status, 413);
      }
    }
  });
});

test("paths with tricks do not address other resources", async () => {
  await withServer(async (server) => {
    const tricks = [
      "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets",
      "/api/v1//namespaces/default/configmaps",
      "/apis/../api/v1/secrets",
      "/%2e%2e/api",
      "/api/v1/namespaces/default/configmaps/a%00b",
    ];
    for (const path of tricks) {
      const { status } = await send(server, "GET", path);
      assert.ok(status === 404 || status === 400, `${path}: ${status}`);
    }
    const bad = await send(server, "GET", "/api/v1/namespaces/%zz/x");
    assert.equal(bad.status, 400);
  });
});

test("slow or unfinished requests do not delay other clients", async () => {
  await withServer(async (server) => {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(
      `POST ${C} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`,
    );
    assert.equal((await send(server, "GET", C)).status, 200);
    socket.destroy();
  });
});

test("bodies of strangers are answered at once and not kept", async () => {
  await withServer(async (server) => {
    const { port } = new URL(server.url);
    for (const [authorization, status] of [["", 403], ["Bearer x", 401]]) {
      const socket = connect(Number(port), "127.0.0.1");
      await new Promise((resolve) => socket.once("connect", resolve));
      const answer = new Promise<string>((resolve) =>
        socket.once("data", (chunk) => resolve(String(chunk)))
      );
      // The rest of the body never arrives.
      socket.write(
        `POST ${C} HTTP/1.1\r\nhost: x\r\n${
          authorization && `authorization: ${authorization}\r\n`
        }content-length: 3000000\r\n\r\n${" ".repeat(100_000)}`,
      );
      assert.match(await answer, new RegExp(`^HTTP/1.1 ${status} `));
      socket.destroy();
    }
    const body = JSON.stringify({ metadata: { name: "a" } });
    const headers = { authorization: "Bearer x" };
    const { status } = await send(server, "POST", C, { body, headers });
    assert.equal(status, 401);
  });
});

test("a body that does not arrive in time breaks its connection", async () => {
  for (const known of [true, false]) {
    const bodies: number[] = [];
    const listener = await Listener.open({
      handle({ body }) {
        bodies.push(body.length);
        return Promise.resolve(textResponse(200, "ok"));
      },
      reads: () => known,
      bodyTimeout: 20,
      port: 0,
      host: "127.0.0.1",
      tls: undefined,
    });
    const socket = connect(listener.port, "127.0.0.1");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {});
    socket.resume();
    socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{");
    await closed;
    assert.deepEqual(bodies, known ? [] : [0]);
    await listener.close();
  }
});

test("a watch client that never reads is disconnected, with bounded memory", async () => {
  await withServer(async (server) => {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.pause();
    socket.write(
      `GET ${C}?watch=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n\r\n`,
    );
    while (server.watchCounts.open === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const value = "x".repeat(1_000_000);
    for (
      let index = 0;
      index < 60 && server.watchCounts.dropped === 0;
      index++
    ) {
      await send(server, "POST", C, {
        body: JSON.stringify({
          metadata: { name: `big-${index}` },
          data: { value },
        }),
      });
    }
    assert.equal(server.watchCounts.dropped, 1);
    assert.equal(server.watchCounts.open, 0);
    socket.destroy();
  });
});

test("a watch is released when its client disconnects", async () => {
  await withServer(async (server) => {
    const outgoing = request(new URL(`${C}?watch=1`, server.url), {
      headers: { authorization: `Bearer ${server.token}` },
      agent: false,
    });
    outgoing.on("error", () => {});
    const response = new Promise<IncomingMessage>((resolve) =>
      outgoing.once("response", resolve)
    );
    outgoing.end();
    (await response).on("error", () => {});
    assert.equal(server.watchCounts.open, 1);
    outgoing.destroy();
    for (let turn = 0; server.watchCounts.open > 0 && turn < 1_000; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal(server.watchCounts.open, 0);
  });
});

test("the server uses HTTPS with a certificate of its own authority", async () => {
  const server = await ApiServer.start();
  try {
    const status = await new Promise<number>((resolve, reject) => {
      httpsRequest(new URL("/readyz", server.url), {
        ca: server.certificateAuthority,
        agent: false,
      }, (message) => {
        message.resume();
        message.on("end", () => resolve(message.statusCode ?? 0));
      }).on("error", reject).end();
    });
    assert.equal(status, 200);
    assert.match(server.kubeconfig, /certificate-authority-data/);
  } finally {
    await server.stop();
  }
});

test("what precedes a cut arrives over HTTP/1.1", async () => {
  await withServer(async (server) => {
    await send(server, "POST", C, { body: '{"metadata":{"name":"a"}}' });
    for (const path of [C, `${C}?watch=1`]) {
      server.faults.add({ count: 1, effect: { cutAfter: 70 } });
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n\r\n`,
      );
      let text = "";
      socket.on("data", (chunk) => text += chunk);
      await new Promise((resolve) => socket.once("close", resolve));
      const body = text.slice(text.indexOf("{"));
      assert.equal(body.trimEnd().length, 70, text);
    }
  });
});

test("a long list is sent with back-pressure", async () => {
  await withServer(async (server) => {
    const value = "x".repeat(200_000);
    for (let index = 0; index < 20; index++) {
      await send(server, "POST", C, {
        body: JSON.stringify({
          metadata: { name: `big-${index}` },
          data: { value },
        }),
      });
    }
    const { body } = await send(server, "GET", C);
    const names = body.items.map((item: { metadata: { name: string } }) =>
      item.metadata.name
    );
    assert.equal(new Set(names).size, 21);
  });
});

test("a warning in any script reaches the client in UTF-8", async () => {
  await withServer(async (server) => {
    const { status, headers } = await new Promise<IncomingMessage>(
      (resolve, reject) => {
        const outgoing = request(`${server.url}${C}`, {
          method: "POST",
          agent: false,
          headers: {
            authorization: `Bearer ${server.token}`,
            "content-type": "application/json",
          },
        }, (message) => resolve(message.resume()));
        outgoing.on("error", reject);
        outgoing.end('{"metadata":{"name":"a"},"ünïcode-名":1,"\\ud800":2}');
      },
    ).then(({ statusCode, headers }) => ({ status: statusCode, headers }));
    assert.equal(status, 201);
    const text = String(headers["warning"]);
    assert.match(
      Buffer.from(text, "latin1").toString(),
      /unknown field \\"ünïcode-名\\"/,
    );
  });
});

/** Status, headers and body of an answer to a text on a connection. */
async function exchange(server: ApiServer, text: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  let answer = "";
  for await (const chunk of socket) {
    answer += chunk;
    if (/"name":"(?:first|default)"/.test(answer)) break;
    if (/\b404\b/.test(answer)) break;
  }
  return answer;
}

test("a request that asks for HTTP/2 without TLS is answered without", async () => {
  await withServer(async (server) => {
    const head = (line: string) =>
      [
        line,
        "Host: x",
        `Authorization: Bearer ${server.token}`,
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQBAAAAAAIAAAAA",
        "Content-Type: application/json",
        "",
      ].join("\r\n");
    const body = JSON.stringify({ metadata: { name: "first" } });
    const created = await exchange(
      server,
      `${
        head(`POST ${C} HTTP/1.1`)
      }Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    assert.match(created, /^HTTP\/1\.1 201 /);
    const watched = await exchange(
      server,
      `${head(`GET ${C}?watch=1 HTTP/1.1`)}\r\n`,
    );
    assert.match(watched, /^HTTP\/1\.1 200 /);
    assert.match(watched, /"type":"ADDED"/);
  });
});

test("a request may name the whole URL, as clients tell proxies", async () => {
  await withServer(async (server) => {
    const answer = await exchange(
      server,
      `GET ${server.url}/api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });
});
