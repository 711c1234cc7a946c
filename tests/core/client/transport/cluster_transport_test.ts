import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import type { ClusterConfig, Credential } from "@coracle/operator/client";
import { ClusterTransport } from "../../../../core/client/transport/cluster_transport.ts";
import { growthOf } from "../../../support/growth.ts";
import { inTime } from "../../../support/in_time.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { get, text } from "../../../support/transport_case.ts";
import { until } from "../../../support/until.ts";

const tls = await startTlsServer();
after(() => tls.stop());

/** Server without TLS: only connections count, whatever the certificates. */
const server = createServer((request, response) => {
  if (request.url === "/open") response.write("begun");
  else if (request.url === "/late") late.push(response);
  else if (request.url === "/lines") {
    response.end(JSON.stringify(request.rawHeaders));
  } else response.end("ok");
});
/** Responses that a test ends. */
const late: ServerResponse[] = [];
const open = new Set<unknown>();
let connections = 0;
server.on("connection", (socket) => {
  connections++;
  open.add(socket);
  socket.on("close", () => open.delete(socket));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
after(() => server.close());
const { port } = server.address() as AddressInfo;

const { jane, joe } = tls.clients;

/** Credentials that follow each other; the last two differ in one half only. */
const PAIRS: readonly Credential[] = [jane, joe, {
  ...joe,
  key: `${joe.key}\n`,
}];

/** Transport whose credentials the test changes. */
function transportTo(config: ClusterConfig) {
  const credentials = {
    present: jane as Credential,
    current: () => Promise.resolve(credentials.present),
    refresh: () => Promise.resolve(credentials.present),
  };
  return { credentials, transport: new ClusterTransport(config, credentials) };
}

const PLAIN: ClusterConfig = { server: `http://127.0.0.1:${port}` };
const TRUSTED: ClusterConfig = {
  server: tls.url,
  certificateAuthority: tls.authority,
};
const STREAM = {
  path: "/stream/three",
  headers: {},
  protocols: ["v5.channel.k8s.io"],
};

test("ClusterTransport leaves nothing of former credentials", async () => {
  const { credentials, transport } = transportTo(PLAIN);
  const found = await growthOf(4, async () => {
    for (const next of PAIRS) {
      credentials.present = next;
      const before = connections;
      assert.equal(await text(await transport.send(get("/"))), "ok");
      assert.ok(connections > before);
      await text(await transport.send(get("/")));
    }
  });
  assert.deepEqual(found, []);
  await until("one pool has a connection", () => open.size <= 2);
  await transport.close();
});

test("ClusterTransport refuses a certificate and a key that do not fit", async () => {
  // Deno would end the process.
  const { credentials, transport } = transportTo(PLAIN);
  for (const wrong of [{ ...joe, key: jane.key }, { key: joe.key }]) {
    credentials.present = wrong;
    await assert.rejects(transport.send(get("/")), TypeError);
    credentials.present = joe;
    assert.equal(await text(await transport.send(get("/"))), "ok");
  }
  await transport.close();
});

test("ClusterTransport sends a request although its credentials change meanwhile", async () => {
  const { credentials, transport } = transportTo(PLAIN);
  const all = [jane, joe, jane].map((next) => {
    credentials.present = next;
    return transport.send(get("/"));
  });
  for (const response of await inTime("all", Promise.all(all))) {
    assert.equal(await text(response), "ok");
  }
  await transport.close();
});

for (const method of ["GET", "POST"] as const) {
  test(`ClusterTransport lets a ${method} end whose credentials change before its end`, async () => {
    const { credentials, transport } = transportTo(PLAIN);
    const sent = transport.send(get("/late", { method }));
    await until("it has arrived", () => late.length === 1);
    credentials.present = joe;
    assert.equal(await text(await transport.send(get("/"))), "ok");
    late.pop()?.end("late");
    assert.equal(await text(await sent), "late");
    await transport.close();
  });

  test(`ClusterTransport that is closed ends a ${method} and its connection`, async () => {
    const { transport } = transportTo(PLAIN);
    const ended = assert.rejects(transport.send(get("/late", { method })));
    await until("it has arrived", () => late.length === 1);
    const socket = late.pop()?.socket;
    await transport.close();
    await inTime("it ends", ended);
    await until("its connection ends", () => !open.has(socket));
  });
}

test("ClusterTransport ends requests of former credentials when it is closed", async () => {
  const { credentials, transport } = transportTo(PLAIN);
  const ended = assert.rejects(
    transport.send(get("/late")),
    /the connections were closed/,
  );
  await until("it has arrived", () => late.length === 1);
  credentials.present = joe;
  await text(await transport.send(get("/")));
  await transport.close();
  await inTime("it ends", ended);
  late.pop()?.destroy();
});

test("ClusterTransport that is closed names its server without a password", async () => {
  const server = PLAIN.server.replace("//", "//jane:s3cret@");
  const { transport } = transportTo({ server });
  await transport.close();
  for (const sent of [transport.send(get("/")), transport.connect(STREAM)]) {
    await assert.rejects(
      sent,
      ({ message }: Error) =>
        message.includes(PLAIN.server) && !message.includes("s3cret"),
    );
  }
});

test("ClusterTransport that is closed ends its streams", async () => {
  const { transport } = transportTo(TRUSTED);
  const path = "/stream/silent";
  const stream = await transport.connect({ ...STREAM, path });
  const ended = assert.rejects(async () => {
    for await (const _message of stream.messages);
  }, /the connections were closed/);
  await transport.close();
  await inTime("it ends", ended);
});

test("ClusterTransport connects again when its authorities have changed", async () => {
  let authority = tls.authority;
  const certificateAuthority = () => Promise.resolve(authority);
  const { transport } = transportTo({ ...PLAIN, certificateAuthority });
  const opened = [];
  for (const end of ["", "", "\n"]) {
    authority += end;
    const before = connections;
    await text(await transport.send(get("/")));
    opened.push(connections - before);
  }
  assert.deepEqual(opened, [1, 0, 1]);
  await transport.close();
});

test("ClusterTransport connects as its configuration says", async () => {
  const read = async (parts: Partial<ClusterConfig>) => {
    const { transport } = transportTo({ ...TRUSTED, ...parts });
    try {
      const user = JSON.parse(await text(await transport.send(get("/whoami"))));
      const stream = await transport.connect(STREAM);
      await stream.close();
      return user.user;
    } finally {
      await transport.close();
    }
  };
  const before = (await tls.counters()).tunnels;
  const proxyUrl = `http://127.0.0.1:${tls.proxyPort}`;
  assert.equal(await read({ proxyUrl }), "jane");
  assert.equal((await tls.counters()).tunnels - before, 2);
  assert.equal(await read({ serverName: "api.internal" }), "jane");
  await assert.rejects(read({ serverName: "other.internal" }), /Cannot reach/);
  const unverified = { certificateAuthority: undefined };
  await assert.rejects(read(unverified), /Cannot reach/);
  const insecureSkipTlsVerify = true;
  assert.equal(await read({ ...unverified, insecureSkipTlsVerify }), "jane");
});

test("ClusterTransport sends several lines of groups and of extra fields", async () => {
  for (
    const impersonate of [
      { user: "jane", groups: ["a", "b"] },
      { user: "jane", groups: ["a"], extra: { scopes: ["a", "b"] } },
    ]
  ) {
    const { transport } = transportTo({ ...PLAIN, impersonate });
    const repeatedHeaders = { "impersonate-x": ["a", "b"] };
    const sent = transport.send(get("/lines", { repeatedHeaders }));
    const lines = JSON.parse(await text(await sent)) as string[];
    const values = lines.filter((_, index) =>
      lines[index - 1]?.toLowerCase() === "impersonate-x"
    );
    assert.deepEqual(values, ["a", "b"]);
    await transport.close();
  }
});

test("ClusterTransport refuses a server that is not a URL at once", () => {
  assert.throws(() => transportTo({ server: "cluster" }), TypeError);
});

test("ClusterTransport sends nothing with credentials that changed while it opened", async () => {
  const { credentials, transport } = transportTo(TRUSTED);
  const first = transport.send(get("/whoami"));
  // The first pool is being opened.
  await Promise.resolve();
  credentials.present = joe;
  const second = transport.send(get("/whoami"));
  for (const response of await Promise.all([first, second])) {
    assert.equal(JSON.parse(await text(response)).user, "joe");
  }
  await transport.close();
});

test("ClusterTransport has certificate and key beside an authority read by a function", async () => {
  const certificateAuthority = () => Promise.resolve(tls.authority);
  const { transport } = transportTo({ ...TRUSTED, certificateAuthority });
  const response = await transport.send(get("/whoami"));
  assert.equal(JSON.parse(await text(response)).user, "jane");
  await transport.close();
});

test("ClusterTransport opens nothing after its end", async () => {
  for (const wasUsed of [false, true]) {
    const { credentials, transport } = transportTo(PLAIN);
    if (wasUsed) await text(await transport.send(get("/")));
    await transport.close();
    const before = connections;
    for (const next of PAIRS) {
      credentials.present = next;
      const closed = /the connections were closed/;
      await assert.rejects(transport.send(get("/")), closed);
      await assert.rejects(transport.connect(STREAM), closed);
    }
    assert.equal(connections, before);
  }
});

test("ClusterTransport ends a stream that opens while it closes", async () => {
  const { transport } = transportTo(TRUSTED);
  const before = (await tls.counters()).closedStreams;
  const stream = transport.connect({ ...STREAM, path: "/stream/silent" });
  // After the check, before the handshake is over.
  await import("../../../../core/client/transport/web_socket.ts");
  await Promise.resolve();
  await transport.close();
  const read = async () => {
    for await (const _message of (await stream).messages);
  };
  await inTime("it ends", assert.rejects(read()));
  await until("the server sees it, if it was open", async () => {
    const { closedStreams, connections } = await tls.counters();
    return closedStreams > before || connections === 0;
  });
});

test("ClusterTransport leaves nothing of streams that have ended", async () => {
  const { transport } = transportTo({ ...TRUSTED });
  const found = await growthOf(4, async () => {
    const stream = await transport.connect(STREAM);
    let messages = 0;
    for await (const _message of stream.messages) messages++;
    assert.equal(messages, 3);
    await stream.close();
  });
  assert.deepEqual(found, []);
  await transport.close();
});
