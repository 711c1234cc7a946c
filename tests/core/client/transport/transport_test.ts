import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, test } from "node:test";
import type { TransportOptions } from "@coracle/operator/client";
import { openHttpTransport } from "../../../../core/client/transport/open_transport.ts";
import { LineSplitter } from "../../../../core/json/line_splitter.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { startTlsServer } from "../../../support/tls_server.ts";
import { until } from "../../../support/until.ts";
import {
  json,
  testEachRequest,
  text,
  withTransport,
} from "../../../support/transport_case.ts";

const server = await startTlsServer();
after(() => server.stop());

const TRUSTED: TransportOptions = {
  server: server.url,
  certificateAuthority: server.authority,
};

test("Transport sends method, path, headers and body, and returns the response", async () => {
  await withTransport(TRUSTED, async (transport) => {
    const response = await transport.send({
      method: "PATCH",
      path: "/echo?dryRun=All",
      headers: { "content-type": "application/json-patch+json" },
      body: '[{"op":"ä"}]',
    });
    assert.equal(response.status, 200);
    const { method, headers, body } = await json(response);
    assert.equal(method, "PATCH");
    assert.equal(body, '[{"op":"ä"}]');
    assert.equal(
      (headers as Record<string, string>)["content-type"],
      "application/json-patch+json",
    );
  });
});

testEachRequest(
  "Transport joins repeated headers and returns error statuses",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const whoami = await transport.send(get("/whoami"));
      assert.equal(whoami.headers["x-repeated"], "one, two");
      await whoami.cancel();
      const missing = await transport.send(get("/missing"));
      assert.equal(missing.status, 404);
      assert.equal(await text(missing), "nothing here");
      const empty = await transport.send(get("/empty"));
      assert.equal(empty.status, 204);
      assert.equal(await text(empty), "");
    });
  },
);

testEachRequest(
  "Transport prefixes every path with the path of the server's URL",
  async (get) => {
    const settings = { ...TRUSTED, server: `${server.url}/prefix/` };
    await withTransport(settings, async (transport) => {
      assert.equal((await transport.send(get("/empty"))).status, 204);
    });
  },
);

testEachRequest("Transport does not follow redirects", async (get) => {
  await withTransport(TRUSTED, async (transport) => {
    const response = await transport.send(get("/redirect"));
    assert.equal(response.status, 302);
    assert.equal(response.headers["location"], "https://elsewhere.invalid/");
    await response.cancel();
  });
});

testEachRequest("Transport decompresses bodies", async (get) => {
  await withTransport(TRUSTED, async (transport) => {
    const response = await transport.send(get("/gzip"));
    assert.equal(response.headers["content-encoding"], undefined);
    assert.equal(await text(response), "compressed ".repeat(20_000));
    const cut = await transport.send(get("/gzip-cut"));
    await assert.rejects(() => text(cut));
    const identity = await transport.send(
      get("/echo", { headers: { "accept-encoding": "identity" } }),
    );
    const { headers } = await json(identity);
    const encoding = (headers as Record<string, string>)["accept-encoding"];
    assert.equal(encoding, "identity");
  });
});

testEachRequest(
  "Transport applies back-pressure while a body is not read",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const before = (await server.counters()).flowBytes;
      const response = await transport.send(get("/flow"));
      let last = -1;
      // The sender stops when all buffers are full.
      await until("the flow stops", async () => {
        const now = (await server.counters()).flowBytes - before;
        const stopped = now === last;
        last = now;
        return stopped;
      }, { every: 200 });
      assert.ok(last < 24 << 20, `${last} bytes were sent to nobody`);
      let read = 0;
      for await (const chunk of response.body) {
        read += chunk.byteLength;
        if (read > 64 << 20) break;
      }
      await until("the server sees that the reader left", async () => {
        const { flowBytes } = await server.counters();
        const { flowBytes: later } = await server.counters();
        return flowBytes === later;
      });
    });
  },
);

testEachRequest(
  "Transport returns complete responses without interim ones and trailers",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const hinted = await transport.send(get("/early-hints"));
      assert.equal(hinted.status, 200);
      assert.equal(await text(hinted), "after hints");
      const closed = await transport.send(get("/until-close"));
      assert.equal(await text(closed), "until close");
      const slow = await transport.send(get("/slow-count"));
      const numbers = Array.from({ length: 20 }, (_, number) => `${number}\n`);
      assert.equal(await text(slow), numbers.join(""));
    });
  },
);

testEachRequest(
  "Transport keeps a chunk until the next one is requested",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const { body } = await transport.send(get("/count"));
      const splitter = new LineSplitter();
      let lines = 0;
      for await (const chunk of body) {
        splitter.push(chunk);
        while (splitter.next()) {
          const { bytes, start, end } = splitter;
          const line = Buffer.from(bytes.subarray(start, end)).toString();
          assert.equal(line, `${lines} `.repeat(1 + (lines * 37) % 500));
          // Further chunks arrive in the meantime.
          if (lines++ % 50 === 0) await nextTurn();
        }
      }
      assert.equal(splitter.finish(), false);
      assert.equal(lines, 4_000);
    });
  },
);

testEachRequest(
  "Transport does not reuse the chunks of an error response",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const { body } = await transport.send(get("/long-error"));
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      const lines = Array.from({ length: 100 }, (_, line) => `${line} `);
      assert.equal(
        Buffer.concat(chunks).toString(),
        lines.map((line) => line.repeat(1_000)).join(""),
      );
    });
  },
);

testEachRequest(
  "Transport refuses responses that are not HTTP",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      await assert.rejects(
        () => transport.send(get("/garbage-head")),
        /Cannot reach https/,
      );
      const garbage = await transport.send(get("/garbage-body"));
      await assert.rejects(() => text(garbage), /Cannot reach https/);
    });
  },
);

testEachRequest(
  "Transport refuses multi-line headers without quoting the value",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      for (
        const line of ["\r\nx-other: secret", "\nx-other: secret", "\0secret"]
      ) {
        const sent = get("/echo", { headers: { authorization: `a${line}` } });
        await assert.rejects(
          () => transport.send(sent),
          (error: Error) => !error.message.includes("secret"),
        );
      }
    });
  },
);

testEachRequest(
  "Transport sends the query and repeated headers of a request",
  async (get) => {
    const settings = { ...TRUSTED, repeatsHeaders: true };
    await withTransport(settings, async (transport) => {
      const { lines } = await json(
        await transport.send(get("/echo?a=b%20c", {
          headers: { accept: "application/json", authorization: "Bearer x" },
          repeatedHeaders: { "impersonate-group": ["one", "two"] },
        })),
      );
      const sent = (lines as string[]).map((line) => line.toLowerCase());
      for (
        const [name, value] of [
          ["host", `127.0.0.1:${server.port}`],
          ["accept", "application/json"],
          ["authorization", "bearer x"],
          ["impersonate-group", "one"],
          ["impersonate-group", "two"],
        ]
      ) {
        assert.ok(
          sent.some((line, at) => line === name && sent[at + 1] === value),
          `${name}: ${value}`,
        );
      }
    });
  },
);

testEachRequest(
  "Transport ends a response when its reader leaves or cancels",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const before = (await server.counters()).abandoned;
      const left = await transport.send(get("/head-then-silent"));
      for await (const chunk of left.body) {
        assert.equal(new TextDecoder().decode(chunk), "first");
        break;
      }
      const cancelled = await transport.send(get("/head-then-silent"));
      await cancelled.cancel();
      await until(
        "both are given up",
        async () => (await server.counters()).abandoned - before === 2,
      );
    });
  },
);

testEachRequest(
  "Transport ends a request when its signal aborts, in every state",
  async (get) => {
    const reason = new Error("enough");
    await withTransport(TRUSTED, async (transport) => {
      await assert.rejects(
        () =>
          transport.send(get("/empty", { signal: AbortSignal.abort(reason) })),
        reason,
      );
      const { abandoned: before, silent: asked } = await server.counters();
      const waiting = new AbortController();
      const silent = transport.send(get("/silent", { signal: waiting.signal }));
      const refused = assert.rejects(silent, reason);
      // An abort before the handshake would be that of another state.
      await until(
        "the request has arrived",
        async () => (await server.counters()).silent > asked,
      );
      waiting.abort(reason);
      await refused;
      const reading = new AbortController();
      const response = await transport.send(
        get("/head-then-silent", { signal: reading.signal }),
      );
      setTimeout(() => reading.abort(reason), 50);
      await assert.rejects(() => text(response), reason);
      await until(
        "both are given up",
        async () => (await server.counters()).abandoned - before === 2,
      );
    });
    const stalled = `https://127.0.0.1:${server.stalledPort}`;
    await withTransport({ ...TRUSTED, server: stalled }, async (transport) => {
      const connecting = new AbortController();
      const sent = transport.send(get("/", { signal: connecting.signal }));
      setTimeout(() => connecting.abort(reason), 50);
      await assert.rejects(sent, reason);
    });
  },
);

testEachRequest(
  "Transport reports failed and broken connections",
  async (get) => {
    await withTransport(
      { ...TRUSTED, server: "https://127.0.0.1:1" },
      async (transport) => {
        await assert.rejects(
          () => transport.send(get("/")),
          /^Error: Cannot reach https:\/\/127\.0\.0\.1:1: the connection failed: received /,
        );
      },
    );
    await withTransport(TRUSTED, async (transport) => {
      await assert.rejects(
        () => transport.send(get("/reset-head")),
        /Cannot reach https/,
      );
      const response = await transport.send(get("/reset-body"));
      await assert.rejects(() => text(response), /Cannot reach https/);
      assert.equal((await transport.send(get("/empty"))).status, 204);
    });
  },
);

for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
  test(`A ${method} on a kept connection that is reset is not sent again`, async () => {
    await withTransport(TRUSTED, async (transport) => {
      const write = (path: string) =>
        transport.send({ method, path, headers: {}, body: "{}" });
      await text(await write("/echo"));
      const before = (await server.counters()).resets;
      await assert.rejects(() => write("/reset-write"), /Cannot reach https/);
      assert.equal((await server.counters()).resets - before, 1);
    });
  });
}

testEachRequest(
  "Transport.close ends all requests and is safe to call twice",
  async (get) => {
    const transport = await openHttpTransport(TRUSTED);
    const before = (await server.counters()).abandoned;
    const silent = transport.send(get("/silent"));
    const response = await transport.send(get("/head-then-silent"));
    const body = text(response);
    const failures = Promise.all([
      assert.rejects(silent, /Cannot reach/),
      assert.rejects(body, /Cannot reach/),
    ]);
    await until(
      "the silent request arrived",
      async () => (await server.counters()).connections >= 2,
    );
    await transport.close();
    await transport.close();
    await failures;
    await assert.rejects(
      () => transport.send(get("/empty")),
      /the connections were closed/,
    );
    await until(
      "the server sees both given up",
      async () => (await server.counters()).abandoned - before === 2,
    );
  },
);

test("openHttpTransport refuses invalid URLs of servers", async () => {
  for (const url of ["", "tcp://host", "host:6443"]) {
    await assert.rejects(() => openHttpTransport({ server: url }), {
      name: "TypeError",
      message: /^Cannot connect to a cluster: "server" must be a URL/,
    });
  }
});

testEachRequest(
  "Transport removes its listeners from a signal when a response has ended",
  async (get) => {
    await withTransport(TRUSTED, async (transport) => {
      const { signal } = new AbortController();
      const listeners = new Set<unknown>();
      Object.assign(signal, {
        addEventListener: (_type: string, listener: unknown) =>
          listeners.add(listener),
        removeEventListener: (_type: string, listener: unknown) =>
          listeners.delete(listener),
      });
      for (const path of ["/empty", "/missing", "/gzip"]) {
        await text(await transport.send(get(path, { signal })));
        await (await transport.send(get(path, { signal }))).cancel();
      }
      const broken = await transport.send(get("/gzip-cut", { signal }));
      await assert.rejects(() => text(broken));
      await until("all are removed", () => listeners.size === 0);
    });
  },
);
