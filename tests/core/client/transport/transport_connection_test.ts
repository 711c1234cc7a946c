import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { TransportOptions } from "@coracle/operator/client";
import { startTlsServer } from "../../../support/tls_server.ts";
import {
  get,
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

// A runtime may free a connection one turn of the event loop after its response,
// so that an immediate request opens a second one; there is never a third.
const CONNECTIONS_IN_A_ROW = 2;

test("Transport reuses its connections", async () => {
  await withTransport(TRUSTED, async (transport) => {
    const before = (await server.counters()).handshakes;
    for (let count = 0; count < 20; count++) {
      const response = await transport.send(get("/whoami"));
      if (count % 2 === 0) await text(response);
      else await response.cancel();
    }
    const handshakes = (await server.counters()).handshakes - before;
    assert.ok(handshakes <= CONNECTIONS_IN_A_ROW, `${handshakes} handshakes`);
  });
});

testEachRequest(
  "Transport refuses a server with an unknown certificate authority",
  async (get) => {
    await withTransport({ server: server.url }, async (transport) => {
      await assert.rejects(
        () => transport.send(get("/whoami")),
        /^Error: Cannot reach https:\/\/127\.0\.0\.1:\d+: the connection failed: received .*(self.signed|UnknownIssuer)/,
      );
    });
  },
);

testEachRequest("Transport refuses a server with another name", async (get) => {
  const settings = {
    ...TRUSTED,
    server: `https://localhost:${server.port}`,
  };
  await withTransport(settings, async (transport) => {
    await assert.rejects(() => transport.send(get("/whoami")), /Cannot reach/);
  });
});

testEachRequest(
  "Transport accepts the server name of its options",
  async (get) => {
    for (
      const [serverName, good] of [["api.internal", true], ["api.x", false]]
    ) {
      const settings = { ...TRUSTED, serverName: serverName as string };
      await withTransport(settings, async (transport) => {
        const sent = transport.send(get("/whoami"));
        if (!good) return await assert.rejects(sent, /Cannot reach/);
        const { serverName, host } = await json(await sent);
        assert.equal(serverName, "api.internal");
        assert.equal(host, `127.0.0.1:${server.port}`);
      });
    }
  },
);

testEachRequest(
  "Transport names the server in its handshake, unless it has only an address",
  async (get) => {
    for (const host of ["localhost", "127.0.0.1"]) {
      const settings = {
        server: `https://${host}:${server.port}`,
        insecureSkipTlsVerify: true,
      };
      await withTransport(settings, async (transport) => {
        const { serverName } = await json(await transport.send(get("/whoami")));
        assert.equal(serverName || undefined, /^l/.exec(host)?.input);
      });
    }
  },
);

testEachRequest(
  "Transport accepts any certificate with insecureSkipTlsVerify",
  async (get) => {
    const settings = { server: server.url, insecureSkipTlsVerify: true };
    await withTransport(settings, async (transport) => {
      assert.equal(
        (await json(await transport.send(get("/whoami")))).user,
        null,
      );
    });
  },
);

testEachRequest(
  "Transport presents its own client certificate",
  async (get) => {
    for (const user of ["jane", "joe", "jane"] as const) {
      const settings = { ...TRUSTED, ...server.clients[user] };
      await withTransport(settings, async (transport) => {
        const { user: seen } = await json(await transport.send(get("/whoami")));
        assert.equal(seen, user);
      });
    }
    await withTransport(TRUSTED, async (transport) => {
      assert.equal(
        (await json(await transport.send(get("/whoami")))).user,
        null,
      );
    });
  },
);

testEachRequest(
  "Transport presents its certificate unverified and through a proxy",
  async (get) => {
    const proxyUrl = `http://127.0.0.1:${server.proxyPort}`;
    for (
      const parts of [{ insecureSkipTlsVerify: true }, { proxyUrl }, {
        proxyUrl,
        serverName: "api.internal",
      }, { proxyUrl, insecureSkipTlsVerify: true }]
    ) {
      const settings = { ...TRUSTED, ...server.clients.jane, ...parts };
      await withTransport(settings, async (transport) => {
        const { user } = await json(await transport.send(get("/whoami")));
        assert.equal(user, "jane", JSON.stringify(parts));
      });
    }
  },
);

test("Transport reuses its tunnels through a proxy", async () => {
  const settings = {
    ...TRUSTED,
    proxyUrl: `http://127.0.0.1:${server.proxyPort}`,
  };
  await withTransport(settings, async (transport) => {
    const before = await server.counters();
    for (let count = 0; count < 10; count++) {
      await text(await transport.send(get("/whoami")));
    }
    const now = await server.counters();
    const tunnels = now.tunnels - before.tunnels;
    assert.ok(tunnels >= 1 && tunnels <= CONNECTIONS_IN_A_ROW, `${tunnels}`);
    assert.equal(now.handshakes - before.handshakes, tunnels);
  });
});

testEachRequest("Transport connects through a SOCKS5 proxy", async (get) => {
  const proxyUrl = `socks5://127.0.0.1:${server.socksPort}`;
  const settings = { ...TRUSTED, ...server.clients.jane, proxyUrl };
  await withTransport(settings, async (transport) => {
    const before = await server.counters();
    for (let count = 0; count < 10; count++) {
      const { user } = await json(await transport.send(get("/whoami")));
      assert.equal(user, "jane");
    }
    const tunnels = (await server.counters()).tunnels - before.tunnels;
    assert.ok(tunnels >= 1 && tunnels <= CONNECTIONS_IN_A_ROW, `${tunnels}`);
  });
});

testEachRequest(
  "Transport authenticates at a proxy with the user of its URL",
  async (get) => {
    const host = `127.0.0.1:${server.guardedProxyPort}`;
    await withTransport(
      { ...TRUSTED, proxyUrl: `http://jane:p%40ss@${host}` },
      async (transport) => {
        assert.equal((await transport.send(get("/empty"))).status, 204);
      },
    );
    await withTransport(
      { ...TRUSTED, proxyUrl: `http://jane:wrong@${host}` },
      async (transport) => {
        await assert.rejects(
          () => transport.send(get("/empty")),
          (error: Error) =>
            error.message.startsWith("Cannot reach") &&
            !error.message.includes("wrong"),
        );
      },
    );
  },
);
