import assert from "node:assert/strict";
import { test } from "node:test";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { openWebSocket } from "../../../../core/client/transport/web_socket.ts";
import { withSlowProxy } from "../../../support/slow_proxy.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { text } from "../../../support/transport_case.ts";

const SERVER = "http://server.invalid";

test("Transport calls beforeSend again once it is connected", () =>
  withSlowProxy(async (proxy, proxyUrl) => {
    const transport = await openHttpTransport({ server: SERVER, proxyUrl });
    const received: string[] = [];
    const sent = transport.send({
      method: "PUT",
      path: "/object",
      headers: {},
      body: "content",
      beforeSend: () => received.push(proxy.received),
    });
    try {
      await proxy.waiting();
      const before = received.length;
      proxy.open();
      assert.equal(await text(await sent), "{}");
      assert.deepEqual(received.slice(before), [""]);
      assert.match(proxy.received, /^PUT \/object [^]*content$/);
    } finally {
      await transport.close();
    }
  }));

test("Transport sends nothing if beforeSend throws after connecting", () =>
  withSlowProxy(async (proxy, proxyUrl) => {
    const transport = await openHttpTransport({ server: SERVER, proxyUrl });
    let isAllowed = true;
    const refused = assert.rejects(
      transport.send({
        method: "PUT",
        path: "/object",
        headers: {},
        body: "content",
        beforeSend() {
          if (!isAllowed) throw new RangeError("No longer allowed");
        },
      }),
      new RangeError("No longer allowed"),
    );
    try {
      await proxy.waiting();
      isAllowed = false;
      proxy.open();
      await refused;
      assert.equal(proxy.received, "");
      await transport.retire();
    } finally {
      await transport.close();
    }
  }));

/** Bun's WebSockets connect and send in one step. */
const CHECKS_WEB_SOCKETS = currentRuntime() !== "bun";

test("openWebSocket sends nothing if beforeSend throws after connecting", () =>
  withSlowProxy(async (proxy, proxyUrl) => {
    if (!CHECKS_WEB_SOCKETS) return;
    let isAllowed = true;
    const refused = assert.rejects(
      openWebSocket({
        path: "/exec",
        headers: {},
        protocols: [],
        beforeSend() {
          if (!isAllowed) throw new RangeError("No longer allowed");
        },
      }, { server: SERVER, proxyUrl }),
      new RangeError("No longer allowed"),
    );
    await proxy.waiting();
    isAllowed = false;
    proxy.open();
    await refused;
    assert.equal(proxy.received, "");
  }));

test("openWebSocket calls beforeSend only after the TLS handshake", async () => {
  if (!CHECKS_WEB_SOCKETS) return;
  const server = await startTlsServer();
  let calls = 0;
  const request = {
    path: "/stream/echo",
    headers: {},
    protocols: [],
    beforeSend: () => void calls++,
  };
  const trusted = { certificateAuthority: server.authority };
  try {
    await assert.rejects(
      openWebSocket(request, {
        ...trusted,
        server: `https://127.0.0.1:${server.stalledPort}`,
        connectTimeout: 100,
      }),
      /Cannot reach/,
    );
    assert.equal(calls, 0, "the handshake never ends");
    const options = { ...trusted, server: server.url };
    const stream = await openWebSocket(request, options);
    await stream.close();
    assert.equal(calls, 1);
  } finally {
    await server.stop();
  }
});
