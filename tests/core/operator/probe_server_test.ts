import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  Operator,
  type ProbeOptions,
  systemClock,
} from "@coracle/operator/core";
import { operatorSettings } from "../../../core/operator/operator_options.ts";
import { probeSettings } from "../../support/probe_settings.ts";
import {
  type ProbeContent,
  ProbeServer,
} from "../../../core/operator/probe_server.ts";
import { until } from "../../support/until.ts";

/** Serves probes, and gives the answer to any bytes. */
async function withProbes(
  content: Partial<ProbeContent>,
  play: (ask: (text: string) => Promise<string>) => Promise<void>,
  options: Partial<ProbeOptions> = {},
): Promise<void> {
  const probes = new ProbeServer({
    state: () => "started",
    health: () => ({ ready: true }),
    why: () => [{}],
    inspect: () => ({ state: "started" }),
    failed() {},
    clock: systemClock,
    metrics: () => "",
    ...content,
  });
  const given = { port: 0, host: "127.0.0.1", ...options };
  await probes.start(probeSettings(given));
  try {
    await play((text) =>
      new Promise((resolve, reject) => {
        const socket = connect(probes.port as number, "127.0.0.1");
        let answer = "";
        socket.setEncoding("utf8").on("data", (part) => answer += part);
        socket.on("error", reject);
        socket.on("close", () => resolve(answer));
        socket.write(text);
      })
    );
  } finally {
    await probes.stop();
  }
}

const get = (target: string) =>
  `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;

test("ProbeServer rejects an invalid request target and continues to serve", () =>
  withProbes({}, async (ask) => {
    for (const target of ["//", "http://[", "///"]) {
      assert.match(await ask(get(target)), /^HTTP\/1.1 400 /, target);
    }
    assert.match(await ask(get("/healthz")), /^HTTP\/1.1 200 /);
  }));

test("ProbeServer responds 500 if a check throws, says so and continues to serve", () => {
  const failures: string[] = [];
  return withProbes({
    health() {
      throw new Error("As asked");
    },
    failed: (error) => failures.push(String(error)),
  }, async (ask) => {
    assert.match(await ask(get("/readyz")), /^HTTP\/1.1 500 /);
    assert.match(await ask(get("/metrics")), /^HTTP\/1.1 200 /);
    assert.deepEqual(failures, ["Error: As asked"]);
    assert.match(await ask(get("/healthz")), /^HTTP\/1.1 500 /);
    assert.match(failures[1] ?? "", /of live\(\): the function must not be/);
  }, { live: () => Promise.reject(new Error("As asked")) as never });
});

test("ProbeServer gives texts of the health to local hosts only, with debug", async () => {
  const seen: [host: string, debug: boolean, withTexts: boolean][] = [];
  for (const debug of [false, true]) {
    for (
      const host of ["127.0.0.1:8080", "operator.team.svc", "evil.example"]
    ) {
      await withProbes({
        health(withTexts) {
          seen.push([host, debug, withTexts]);
          return { ready: true };
        },
      }, async (ask) => {
        const head = `GET /readyz HTTP/1.1\r\nhost: ${host}\r\n`;
        const answer = await ask(`${head}connection: close\r\n\r\n`);
        assert.match(answer, /^HTTP\/1.1 200 /);
      }, { debug });
    }
  }
  assert.deepEqual(seen, [
    ["127.0.0.1:8080", false, false],
    ["operator.team.svc", false, false],
    ["evil.example", false, false],
    ["127.0.0.1:8080", true, true],
    ["operator.team.svc", true, true],
    ["evil.example", true, false],
  ]);
});

test("ProbeServer fails the liveness probe if the user's check fails", async () => {
  let alive = true;
  await withProbes(
    {},
    async (ask) => {
      assert.match(await ask(get("/healthz")), /^HTTP\/1.1 200 /);
      alive = false;
      assert.match(await ask(get("/healthz")), /^HTTP\/1.1 503 /);
      assert.match(await ask(get("/readyz")), /^HTTP\/1.1 200 /);
    },
    { live: () => alive },
  );
});

test("ProbeServer serves the history of an object only if enabled", async () => {
  const asked: string[] = [];
  const content: Partial<ProbeContent> = {
    why(object) {
      asked.push(object);
      return object === "default/a" ? [{}] : [];
    },
  };
  const path = "/debug/why?object=default/";
  await withProbes(content, async (ask) => {
    assert.match(await ask(get(`${path}a`)), /^HTTP\/1.1 200 /);
    assert.match(await ask(get(`${path}b`)), /^HTTP\/1.1 503 /);
    assert.match(await ask(get("/debug/state")), /"state": "started"/);
    assert.match(
      await ask(get("/other")),
      /one of \/healthz, \/livez, \/readyz, \/metrics, \/debug\/why, \/debug\/state, \/debug\/profile\/cpu\s/,
    );
  }, { debug: true });
  await withProbes(content, async (ask) => {
    assert.match(
      await ask(get(`${path}a`)),
      /^HTTP\/1.1 404 [^]*one of \/healthz, \/livez, \/readyz, \/metrics\s/,
    );
    assert.match(await ask(get("/debug/state")), /^HTTP\/1.1 404 /);
  });
  assert.deepEqual(asked, ["default/a", "default/b"]);
});

test("ProbeServer refuses debug pages to foreign host names (DNS rebinding)", () =>
  withProbes({}, async (ask) => {
    const from = (host: string, target = "/debug/state") =>
      ask(
        `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
      );
    for (
      const host of [
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "operator",
        "operator.shop.svc:8080",
        "operator.shop.svc.cluster.local",
      ]
    ) {
      assert.match(await from(host), /^HTTP\/1.1 200 /, host);
    }
    for (
      const host of [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.dev",
        "a.b-svc",
        "a.mylocal",
      ]
    ) {
      assert.match(await from(host), /^HTTP\/1.1 421 /, host);
      assert.match(await from(host, "/debug/why"), /^HTTP\/1.1 421 /, host);
      assert.match(await from(host, "/healthz"), /^HTTP\/1.1 200 /, host);
    }
  }, { debug: true }));

test("ProbeServer answers by health, to HEAD as well, and is not cached", () => {
  let ready = false;
  const caches = new Map([["gadgets", 1]]);
  const health = () => ({ ready, caches });
  return withProbes({ health }, async (ask) => {
    const early = await ask(get("/readyz"));
    assert.match(early, /^HTTP\/1.1 503 /);
    assert.match(early, /^cache-control: no-store\r$/mi);
    assert.match(early, /"gadgets": 1/);
    ready = true;
    assert.match(await ask(get("/readyz")), /^HTTP\/1.1 200 /);
    const head = get("/readyz").replace("GET", "HEAD");
    assert.match(await ask(head), /^HTTP\/1.1 200 /);
    assert.match(await ask(head.replace("HEAD", "PUT")), /^HTTP\/1.1 405 /);
    const foreign = get("/debug/why").replace("host: x", "host: x.example");
    assert.match(await ask(foreign), /^HTTP\/1.1 404 /);
  });
});

test("Operator that was not started is neither ready nor leading", () => {
  const { started, ready, leading } = new Operator().health();
  assert.deepEqual([started, ready, leading], [false, false, false]);
});

test("Operator rejects an invalid probe port", () => {
  for (const port of [-1, 1.5, 65_536]) {
    assert.throws(
      () => operatorSettings({ probes: { port } }, undefined),
      /^RangeError: .*probes: "port" must be .* 0 to 65535: received/,
    );
  }
});

test("ProbeServer rejects a port that is in use", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  await assert.rejects(
    withProbes({}, () => Promise.resolve(), { port }),
    new RegExp(
      `^Error: Cannot serve probes on 127\\.0\\.0\\.1:${port}: (?!received)`,
    ),
  );
  await new Promise((resolve) => other.close(resolve));
});

/** A server that the test starts, and how it does so. */
function plainServer() {
  const probes = new ProbeServer({
    clock: systemClock,
    state: () => "started",
    health: () => ({ ready: true }),
    why: () => [{}],
    inspect: () => ({ state: "started" }),
    failed() {},
    metrics: () => "",
  });
  const start = async (port: number) => {
    const options: ProbeOptions = { port, host: "127.0.0.1" };
    await probes.start(probeSettings(options));
    return probes.port as number;
  };
  return { probes, start };
}

test("ProbeServer that was stopped frees its port, and stops once more", async () => {
  const { probes, start } = plainServer();
  const port = await start(0);
  await probes.stop();
  await probes.stop();
  assert.equal(await start(port), port);
  await probes.stop();
});

test("ProbeServer listens on the given address only", async () => {
  const { probes, start } = plainServer();
  const port = await start(0);
  const isOpen = await new Promise((resolve) => {
    const socket = connect(port, "127.0.0.2");
    socket.on("error", () => resolve(false));
    socket.on("connect", () => resolve(socket.destroy() && true));
  });
  await probes.stop();
  assert.equal(isOpen, false);
});

test("ProbeServer serves /livez as /healthz", () =>
  withProbes({ state: () => "stopping" }, async (ask) => {
    for (const path of ["/livez", "/healthz"]) {
      assert.match(
        await ask(get(path)),
        /^HTTP\/1.1 503 [^]*"state": "stopping"/,
      );
    }
  }, { live: () => false }));

test("ProbeServer has no port when it has stopped, and no open connection", async () => {
  const { probes, start } = plainServer();
  const port = await start(0);
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await once(socket, "data");
  const closed = once(socket.resume(), "close");
  await probes.stop();
  assert.equal(probes.port, undefined);
  await closed;
});

test("ProbeServer records a profile of the CPU, and of the heap but on Bun", async () => {
  const clock = new VirtualClock();
  const body = (answer: string) =>
    JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1));
  await withProbes({ clock }, async (ask) => {
    const record = async (target: string) => {
      const answer = ask(get(target));
      await until("the profile has begun", () => clock.pendingTimers > 0);
      assert.match(await ask(get(target)), /^HTTP\/1.1 409 /);
      await clock.advance(10_000);
      return await answer;
    };
    const cpu = await record("/debug/profile/cpu");
    assert.match(cpu, /^HTTP\/1.1 200 /);
    assert.ok(Array.isArray(body(cpu).nodes));
    if (process.versions["bun"] !== undefined) {
      const heap = await ask(get("/debug/profile/heap"));
      assert.match(heap, /^HTTP\/1.1 501 /);
      assert.match(heap, /this runtime has no profiles of the heap/);
    } else {
      assert.equal(
        typeof body(await record("/debug/profile/heap")).head,
        "object",
      );
    }
    for (const seconds of ["0", "-1", "61", "x", ""]) {
      const answer = await ask(get(`/debug/profile/cpu?seconds=${seconds}`));
      assert.match(answer, /^HTTP\/1.1 400 /, seconds);
    }
    assert.match(await ask(get("/debug/profile/all")), /^HTTP\/1.1 404 /);
  }, { debug: true });
  await withProbes({}, async (ask) => {
    const answer = await ask(get("/debug/profile/cpu?seconds=1"));
    assert.match(answer, /^HTTP\/1.1 404 /);
  });
});

test("ProbeServer ends a profile whose client is gone", async () => {
  const clock = new VirtualClock();
  const probes = new ProbeServer({ clock } as unknown as ProbeContent);
  await probes.start(
    probeSettings({ port: 0, host: "127.0.0.1", debug: true }),
  );
  try {
    const socket = connect(probes.port as number, "127.0.0.1");
    socket.write(get("/debug/profile/cpu?seconds=60"));
    await until("the profile has begun", () => clock.pendingTimers > 0);
    socket.destroy();
    await until("the profile has ended", () => clock.pendingTimers === 0);
  } finally {
    await probes.stop();
  }
});

test("ProbeServer records no profile for a page of another name", async () => {
  await withProbes({}, async (ask) => {
    const head = "GET /debug/profile/cpu HTTP/1.1\r\nhost: evil.example\r\n";
    assert.match(
      await ask(`${head}connection: close\r\n\r\n`),
      /^HTTP\/1.1 403 .*profiles are for the loopback interface/s,
    );
  }, { debug: true });
});
