import assert from "node:assert/strict";
import { test } from "node:test";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import { withSlowProxy } from "../../../support/slow_proxy.ts";
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
