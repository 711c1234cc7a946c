import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { openTunnel } from "../../../../core/client/transport/tunnel.ts";
import { LeakGuard } from "../../../support/leaks.ts";
import { inTime } from "../../../support/in_time.ts";
import { until } from "../../../support/until.ts";

const SCHEMES = ["http", "socks5", "socks5h"] as const;
/** Successful answers of a SOCKS5 proxy. */
const SOCKS = ["\x05\x00", "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"];

/** A proxy that answers each message with the next answer. */
async function withProxy(
  answers: readonly string[],
  run: (proxy: {
    readonly host: string;
    readonly received: string[];
    readonly open: ReadonlySet<Socket>;
  }) => Promise<void>,
): Promise<void> {
  const received: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    const left = [...answers];
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
    socket.on("data", (data) => {
      received.push(data.toString("latin1"));
      const answer = left.shift();
      if (answer !== undefined) socket.write(answer, "latin1");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await run({ host: `127.0.0.1:${port}`, received, open });
  } finally {
    for (const socket of open) socket.destroy();
    server.close();
  }
}

test("openTunnel refuses an unknown scheme without showing the password", async () => {
  await assert.rejects(
    openTunnel("socks4://jane:s3cret@127.0.0.1:1", new URL("https://api"), {
      timeout: 10_000,
    }),
    ({ message }: Error) =>
      /its scheme must be .*: received socks4:$/.test(message) &&
      !message.includes("s3cret"),
  );
});

test("openTunnel names host and port of the server", async () => {
  const targets: Readonly<Record<string, string>> = {
    "https://api.internal": "api.internal:443",
    "http://api.internal": "api.internal:80",
    "https://api.internal:6443/prefix": "api.internal:6443",
    "https://[fd00::1]": "[fd00::1]:443",
  };
  for (const [server, target] of Object.entries(targets)) {
    await withProxy(["HTTP/1.1 200 OK\r\n\r\n"], async ({ host, received }) => {
      const options = { timeout: 10_000 };
      const tunnel = await openTunnel(
        `http://ja%3Ane:p%40ss@${host}`,
        new URL(server),
        options,
      );
      tunnel.destroy();
      const [request = ""] = received;
      assert.equal(request.split("\r\n", 1)[0], `CONNECT ${target} HTTP/1.1`);
      for (
        const header of [
          `host: ${target}`,
          `proxy-authorization: Basic ${btoa("ja:ne:p@ss")}`,
        ]
      ) assert.ok(request.toLowerCase().includes(header.toLowerCase()), header);
    });
  }
});

for (const scheme of SCHEMES) {
  test(`openTunnel connects to a proxy at an IPv6 address: ${scheme}`, async () => {
    // Without a listener: the error says where it connected.
    const opened = openTunnel(`${scheme}://[::1]:1`, new URL("https://api"), {
      timeout: 30_000,
    });
    await assert.rejects(opened, (error: Error) => {
      assert.match(`${(error.cause as Error).message}`, /::1:1/);
      return true;
    });
  });
}

test("openTunnel connects to port 1080 of a SOCKS5 proxy without a port", async () => {
  const opened = openTunnel("socks5://127.0.0.1", new URL("https://api"), {
    timeout: 30_000,
  });
  await assert.rejects(opened, (error: Error) => {
    assert.match(`${(error.cause as Error).message}`, /127\.0\.0\.1:1080/);
    return true;
  });
});

test("openTunnel gives the bytes that follow the answer of the proxy", () =>
  withProxy(["HTTP/1.1 200 OK\r\n\r\nearly"], async ({ host }) => {
    const socket = await openTunnel(`http://${host}`, new URL("http://api"), {
      timeout: 10_000,
    });
    const [data] = await inTime("the bytes", once(socket, "data"));
    assert.equal(String(data), "early");
    socket.destroy();
  }));

test("openTunnel closes its socket when the proxy refuses", async () => {
  const refusals: readonly (readonly [string, readonly string[]])[] = [
    ...["204 No Content", "302 Found", "407 Proxy Authentication Required"]
      .map((status) => ["http", [`HTTP/1.1 ${status}\r\n\r\n`]] as const),
    ["socks5", ["\x05\xff"]],
    ["socks5", ["\x05\x00", "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"]],
  ];
  for (const [scheme, answers] of refusals) {
    await withProxy(answers, async ({ host, open }) => {
      const opened = openTunnel(`${scheme}://${host}`, new URL("https://api"), {
        timeout: 10_000,
      });
      await assert.rejects(
        inTime("the refusal", opened),
        /^Error: Cannot connect through the proxy/,
      );
      await until("its socket is closed", () => open.size === 0);
    });
  }
});

for (const scheme of SCHEMES) {
  test(`openTunnel ends when its signal aborts or its time is over: ${scheme}`, async () => {
    for (const end of ["time", "signal"]) {
      await withProxy([], async ({ host, open, received }) => {
        const guard = new LeakGuard();
        const abort = new AbortController();
        const clock = new VirtualClock();
        const opened = openTunnel(
          `${scheme}://${host}`,
          new URL("https://api"),
          { timeout: 100, signal: abort.signal, clock },
        );
        const rejected = assert.rejects(
          inTime("its end", opened),
          end === "time" ? /received nothing within 100 ms/ : /enough/,
        );
        await until("the proxy is asked", () => received.length > 0);
        if (end === "time") await clock.advance(100);
        else abort.abort(new Error("enough"));
        await rejected;
        await until("its socket is closed", () => open.size === 0);
        guard.check(clock);
      });
    }
  });

  test(`openTunnel leaves no listener once it is open: ${scheme}`, async () => {
    const answers = scheme === "http" ? ["HTTP/1.1 200 OK\r\n\r\n"] : SOCKS;
    await withProxy(answers, async ({ host, open }) => {
      const guard = new LeakGuard();
      const abort = new AbortController();
      const tunnel = await openTunnel(
        `${scheme}://${host}`,
        new URL("https://api"),
        { timeout: 60_000, signal: abort.signal },
      );
      guard.check(new VirtualClock());
      // The signal was that of the attempt.
      abort.abort(new Error("enough"));
      assert.equal(tunnel.destroyed, false);
      tunnel.destroy();
      await until("it is closed", () => open.size === 0);
    });
  });
}
