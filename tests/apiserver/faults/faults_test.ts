import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "../../../apiserver/server.ts";
import type { ApiServerOptions } from "../../../apiserver/server_options.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

const C = "/api/v1/namespaces/default/configmaps";

async function withServer(
  work: (server: ApiServer) => Promise<void>,
  options: ApiServerOptions = {},
): Promise<void> {
  const server = await ApiServer.start({ port: false, seed: 1, ...options });
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

async function send(
  server: ApiServer,
  method: "GET" | "POST" | "PUT",
  path: string,
  body?: unknown,
) {
  const response = await server.transport.send({
    method,
    path,
    headers: { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  let text = "";
  for await (const chunk of response.body) {
    text += new TextDecoder().decode(chunk);
  }
  return { status: response.status, headers: response.headers, text };
}

const create = (server: ApiServer, name: string) =>
  send(server, "POST", C, { metadata: { name } });

/** A watch that gathers its lines until it ends. */
function watch(server: ApiServer, query = "") {
  const lines: string[] = [];
  const done = (async () => {
    const { body } = await server.transport.send({
      method: "GET",
      path:
        `${C}?watch=1&fieldSelector=metadata.name!%3Dkube-root-ca.crt&${query}`,
      headers: {},
    });
    let rest = "";
    for await (const chunk of body) {
      const parts = (rest + new TextDecoder().decode(chunk)).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts);
    }
    return rest;
  })();
  return { lines, done };
}

const settle = async () => {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
};

test("a fault hits the requests that it matches, after some and so many times", async () => {
  await withServer(async (server) => {
    const fault = server.faults.add({
      verb: "create",
      resource: "configmaps",
      skip: 1,
      count: 2,
      effect: { status: 503, retryAfter: 7 },
    });
    const seen: number[] = [];
    for (const name of ["a", "b", "c", "d"]) {
      seen.push((await create(server, name)).status);
    }
    assert.deepEqual(seen, [201, 503, 503, 201]);
    assert.equal(fault.hits, 2);
    assert.equal((await send(server, "GET", C)).status, 200);
  });
});

test("a fault tells how long to wait", async () => {
  await withServer(async (server) => {
    server.faults.add({ effect: { status: 429, retryAfter: 7 } });
    const { headers, text } = await send(server, "GET", C);
    assert.equal(headers["retry-after"], "7");
    assert.equal(JSON.parse(text).reason, "TooManyRequests");
    server.faults.clear();
    assert.equal((await send(server, "GET", C)).status, 200);
  });
});

test("faults by chance are the same for the same seed", async () => {
  const pattern = async () => {
    let seen = "";
    await withServer(async (server) => {
      server.faults.add({ probability: 0.5, effect: { status: 500 } });
      for (let index = 0; index < 40; index++) {
        seen += (await send(server, "GET", C)).status === 500 ? "x" : ".";
      }
    });
    return seen;
  };
  const first = await pattern();
  assert.equal(await pattern(), first);
  assert.match(first, /x/);
  assert.match(first, /\./);
});

test("a conflict befalls writes to what is there, and nothing else", async () => {
  await withServer(async (server) => {
    server.faults.add({ count: 1, effect: { conflict: true } });
    assert.equal((await create(server, "a")).status, 201);
    const put = () =>
      send(server, "PUT", `${C}/a`, { metadata: { name: "a" } });
    assert.equal((await put()).status, 409);
    assert.equal((await put()).status, 200);
  });
});

test("a slow answer takes its time on the server's clock", async () => {
  const clock = new VirtualClock();
  await withServer(async (server) => {
    server.faults.add({ verb: "list", effect: { delay: 60_000 } });
    let status = 0;
    const answered = send(server, "GET", C).then((answer) => {
      status = answer.status;
    });
    await clock.advance(59_000);
    assert.equal(status, 0);
    await clock.advance(2_000);
    await answered;
    assert.equal(status, 200);
  }, { clock });
});

test("a connection breaks before the answer or at a byte of it", async () => {
  await withServer(async (server) => {
    server.faults.add({ count: 1, effect: { reset: "request" } });
    await assert.rejects(send(server, "GET", C), /connection was refused/);
    server.faults.add({ count: 1, effect: { cutAfter: 10 } });
    await assert.rejects(send(server, "GET", C), /broken/);
    const { text } = await send(server, "GET", C);
    assert.ok(text.length > 10);
  });
});

test("a watch is cut at a byte, stalls, or is cut at once", async () => {
  await withServer(async (server) => {
    server.faults.add({ verb: "watch", count: 1, effect: { cutAfter: 20 } });
    const cut = watch(server);
    server.faults.add({ verb: "watch", count: 1, effect: { stallAfter: 1 } });
    const stalled = watch(server);
    const open = watch(server);
    await settle();
    await create(server, "a");
    await create(server, "b");
    await assert.rejects(cut.done, /broken/);
    await settle();
    assert.equal(stalled.lines.length, 1);
    assert.equal(open.lines.length, 2);
    assert.equal(server.faults.cutWatches({ resource: "secrets" }), 0);
    assert.equal(server.faults.cutWatches(), 2);
    await assert.rejects(open.done, /broken/);
    await assert.rejects(stalled.done, /broken/);
  });
});

test("open watches expire, end in order or fall silent", async () => {
  await withServer(async (server) => {
    const expired = watch(server);
    await settle();
    server.faults.expireWatches();
    await expired.done;
    assert.match(expired.lines.at(-1) ?? "", /"code":410/);
    const ended = watch(server);
    await settle();
    assert.equal(server.faults.endWatches({ namespace: "default" }), 1);
    assert.equal(await ended.done, "");
    const silent = watch(server);
    await settle();
    server.faults.stallWatches();
    await create(server, "a");
    await settle();
    assert.deepEqual(silent.lines, []);
    silent.done.catch(() => {});
  });
});

test("initial events never end where the bookmark is missing", async () => {
  await withServer(async (server) => {
    server.faults.add({ verb: "watch", effect: { withoutEndBookmark: true } });
    const { lines, done } = watch(
      server,
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    );
    await settle();
    await create(server, "a");
    await settle();
    assert.deepEqual(lines.map((line) => JSON.parse(line).type), ["ADDED"]);
    done.catch(() => {});
  });
});

test("compaction makes old revisions and continue tokens 410", async () => {
  await withServer(async (server) => {
    await create(server, "a");
    await create(server, "b");
    const { text } = await send(server, "GET", `${C}?limit=1`);
    const { metadata } = JSON.parse(text);
    await create(server, "c");
    server.faults.compact();
    const token = encodeURIComponent(metadata.continue);
    assert.equal(
      (await send(server, "GET", `${C}?continue=${token}`)).status,
      410,
    );
    const { lines, done } = watch(
      server,
      `resourceVersion=${metadata.resourceVersion}`,
    );
    await done;
    assert.match(lines[0] ?? "", /"reason":"Expired"/);
  });
});

test("an expired continue token or watch is a fault by rule too", async () => {
  await withServer(async (server) => {
    await create(server, "a");
    server.faults.add({ count: 1, effect: { expired: true } });
    const { text, status } = await send(server, "GET", `${C}?limit=1`);
    assert.equal(status, 200);
    const token = encodeURIComponent(JSON.parse(text).metadata.continue);
    assert.equal(
      (await send(server, "GET", `${C}?limit=1&continue=${token}`)).status,
      410,
    );
    assert.equal(
      (await send(server, "GET", `${C}?limit=1&continue=${token}`)).status,
      200,
    );
  });
});

test("a rotated token makes the old one worthless", async () => {
  await withServer(async (server) => {
    const old = server.token;
    const ask = async (token: string) => {
      const { status } = await server.transport.send({
        method: "GET",
        path: C,
        headers: { authorization: `Bearer ${token}` },
      });
      return status;
    };
    assert.equal(await ask(old), 200);
    const fresh = server.faults.rotateToken();
    assert.equal(await ask(old), 401);
    assert.equal(await ask(fresh), 200);
    assert.equal(server.faults.rotateToken("mine"), "mine");
    assert.equal(server.token, "mine");
  });
});

test("a restart keeps the objects, or not, and refuses meanwhile", async () => {
  const clock = new VirtualClock();
  await withServer(async (server) => {
    await create(server, "a");
    const open = watch(server);
    await settle();
    const restart = server.faults.restart({ downFor: 30_000 });
    await assert.rejects(open.done, /broken/);
    await settle();
    await assert.rejects(send(server, "GET", C), /refused/);
    await clock.advance(31_000);
    await restart;
    assert.equal((await send(server, "GET", `${C}/a`)).status, 200);
    const { lines, done } = watch(server, "resourceVersion=2");
    await done;
    assert.match(lines[0] ?? "", /"code":410/);
    await server.faults.restart({ keepData: false });
    assert.equal((await send(server, "GET", `${C}/a`)).status, 404);
  }, { clock });
});

test("a fault rule with numbers out of range is refused", async () => {
  await withServer(async (server) => {
    const effect = { status: 500 } as const;
    for (const wrong of [{ probability: 2 }, { count: 0 }, { skip: -1 }]) {
      assert.throws(() => server.faults.add({ effect, ...wrong }), RangeError);
    }
    await Promise.resolve();
  });
});
