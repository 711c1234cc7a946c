import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type ApiServerOptions } from "@coracle/dev/apiserver";
import { ConfigMap } from "@coracle/operator/kinds";

const HOOKS =
  "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
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

test("a fault hits matching requests according to skip and count", async () => {
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

test("a fault sets Retry-After", async () => {
  await withServer(async (server) => {
    server.faults.add({ effect: { status: 429, retryAfter: 7 } });
    const { headers, text } = await send(server, "GET", C);
    assert.equal(headers["retry-after"], "7");
    assert.equal(JSON.parse(text).reason, "TooManyRequests");
    server.faults.clear();
    assert.equal((await send(server, "GET", C)).status, 200);
  });
});

test("faults with a probability are reproducible by seed", async () => {
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

test("a conflict fault changes the object, and the server answers the write", async () => {
  await withServer(async (server) => {
    const before = JSON.parse((await create(server, "a")).text).metadata;
    const events = watch(server, `resourceVersion=${before.resourceVersion}`);
    server.faults.add({ count: 2, effect: { conflict: true } });
    assert.equal((await create(server, "b")).status, 201);
    const { resourceVersion } = before;
    const put = (metadata: object) =>
      send(server, "PUT", `${C}/a`, {
        metadata: { name: "a", ...metadata },
        data: { color: "blue" },
      });
    const refused = await put({ resourceVersion });
    assert.equal(refused.status, 409);
    assert.equal(JSON.parse(refused.text).reason, "Conflict");
    const { text } = await send(server, "GET", `${C}/a`);
    const after = JSON.parse(text).metadata;
    assert.notEqual(after.resourceVersion, resourceVersion);
    assert.deepEqual({ ...after, resourceVersion }, before);
    assert.equal((await put({})).status, 200, "it is unconditional");
    assert.equal((await put({ resourceVersion })).status, 409);
    server.faults.endWatches();
    await events.done;
    const changes = events.lines.map((line) => JSON.parse(line)).filter((
      { type, object },
    ) => type === "MODIFIED" && object.metadata.name === "a");
    assert.equal(changes.length, 5, "two for each conflict, and the update");
  });
});

test("a conflict fault refuses patches as when an object keeps changing", async () => {
  await withServer(async (server) => {
    const fault = server.faults.add({ effect: { conflict: true } });
    const patch = async (type: string, path: string, body: unknown) => {
      const response = await server.transport.send({
        method: "PATCH",
        path: `/api/v1/namespaces/${path}`,
        headers: { "content-type": `application/${type}` },
        body: JSON.stringify(body),
      });
      await response.cancel();
      return response.status;
    };
    const metadata = { name: "default" };
    const merged = await patch("merge-patch+json", "default", {});
    const status = await patch("merge-patch+json", "default/status", {});
    const tested = await patch("json-patch+json", "default", [
      { op: "test", path: "/metadata/resourceVersion", value: "1" },
    ]);
    const untested = await patch("json-patch+json", "default", []);
    const applied = await patch(
      "apply-patch+yaml",
      "default?fieldManager=a&force=true",
      { apiVersion: "v1", kind: "Namespace", metadata },
    );
    const absent = await patch("merge-patch+json", "absent", {});
    const created = await patch(
      "apply-patch+yaml",
      "new?fieldManager=a",
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "new" } },
    );
    assert.deepEqual(
      { merged, status, tested, untested, applied, absent, created },
      {
        merged: 409,
        status: 409,
        tested: 422,
        untested: 409,
        applied: 409,
        absent: 404,
        created: 201,
      },
    );
    assert.equal(fault.hits, 7);
  });
});

test("a delayed answer waits on the server's clock", async () => {
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

test("a fault breaks a connection before the answer or at a byte of it", async () => {
  await withServer(async (server) => {
    server.faults.add({ count: 1, effect: { reset: "request" } });
    await assert.rejects(send(server, "GET", C), /connection was refused/);
    server.faults.add({ count: 1, effect: { cutAfter: 10 } });
    await assert.rejects(send(server, "GET", C), /broken/);
    const { text } = await send(server, "GET", C);
    assert.ok(text.length > 10);
  });
});

test("faults cut a watch at a byte, stall it, or cut it immediately", async () => {
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

test("open watches can be expired, ended and stalled", async () => {
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

test("a fault omits the bookmark that ends initial events", async () => {
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

test("compaction expires old revisions and continue tokens", async () => {
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

test("a fault rule expires continue tokens and watches", async () => {
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

test("rotateToken invalidates the old token", async () => {
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

test("restart keeps or drops objects, and rejects connections while down", async () => {
  const clock = new VirtualClock();
  await withServer(async (server) => {
    await create(server, "a");
    const open = watch(server);
    await settle();
    const restart = server.faults.restart({ downFor: "30s" });
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

test("a stop during a restart or a delay ends both, and the port stays free", async () => {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ tls: false, clock });
  server.faults.add({ verb: "list", effect: { delay: 60_000 } });
  const delayed = assert.rejects(send(server, "GET", C), /refused/);
  await settle();
  await server.faults.restart();
  const { url } = server;
  const restart = server.faults.restart();
  const another = server.faults.restart({ downFor: "1h" });
  await server.stop();
  await Promise.all([delayed, restart, another]);
  await assert.rejects(fetch(url));
  assert.equal(clock.pendingTimers, 0);
});

test("two restarts at once keep the objects", async () => {
  await withServer(async (server) => {
    await create(server, "a");
    await Promise.all([server.faults.restart(), server.faults.restart()]);
    assert.equal((await send(server, "GET", `${C}/a`)).status, 200);
  });
});

test("a write that a restart overtakes is not reported as stored", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  await withServer(async (server) => {
    await send(server, "POST", HOOKS, {
      metadata: { name: "slow" },
      webhooks: [{
        name: "slow.example.com",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        clientConfig: { service: { namespace: "ops", name: "slow" } },
        rules: [{
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["CREATE"],
          resources: ["configmaps"],
        }],
      }],
    });
    const written = assert.rejects(create(server, "a"), /refused/);
    await asked.promise;
    await server.faults.restart();
    answer.resolve();
    await written;
    assert.equal((await send(server, "GET", `${C}/a`)).status, 404);
  }, {
    services: {
      "ops/slow": async (review) => {
        asked.resolve();
        await answer.promise;
        return {
          ...review,
          response: { uid: review.request.uid, allowed: true },
        };
      },
    },
  });
});

test("dropped connections are those of every client of the server", async () => {
  await withServer(async (server) => {
    const client = server.clientFor({
      name: "eve",
      groups: ["system:masters"],
    });
    const watched = assert.rejects(async () => {
      for await (const _ of client.watch(ConfigMap));
    }, /broken/);
    while (server.watchCounts.open === 0) await settle();
    server.faults.dropConnections();
    await watched;
    assert.equal(server.watchCounts.open, 0);
  });
});

test("a fault rule with numbers out of range is rejected", async () => {
  await withServer(async (server) => {
    const effect = { status: 500 } as const;
    for (const wrong of [{ probability: 2 }, { count: 0 }, { skip: -1 }]) {
      assert.throws(() => server.faults.add({ effect, ...wrong }), RangeError);
    }
    for (const effect of [{ status: 99 }, { delay: -1 }] as never[]) {
      assert.throws(() => server.faults.add({ effect }), RangeError);
    }
    for (
      const effect of [
        { delay: "1s" },
        { reset: "request", cutAfter: "9" },
        { conflict: "yes" },
      ] as never[]
    ) assert.throws(() => server.faults.add({ effect }), TypeError);
    for (const verb of ["creat", ["get", "Watch"], [7]] as never[]) {
      const refusal = {
        name: "RangeError",
        message:
          /"verb" must be one of get, list, watch, create, update, patch, delete, deletecollection: received ("creat"|"Watch"|7)$/,
      };
      const effect = { status: 500 } as const;
      assert.throws(() => server.faults.add({ verb, effect }), refusal);
      assert.throws(() => server.faults.cutWatches({ verb }), refusal);
    }
    await assert.rejects(
      server.faults.restart({ downFor: "soon" as never }),
      /"downFor" must be a duration: .*received "soon"/,
    );
  });
});

test("an answer is lost after the server has handled the request", async () => {
  await withServer(async (server) => {
    const effect = { reset: "answer" } as const;
    server.faults.add({ verb: "create", count: 1, effect });
    await assert.rejects(create(server, "a"), /connection was refused/);
    assert.equal((await send(server, "GET", `${C}/a`)).status, 200);
  });
});

test("a fault refuses a request as admission and missing rights do", async () => {
  await withServer(async (server) => {
    const expected = { 403: "Forbidden", 422: "Invalid" } as const;
    for (const status of [403, 422] as const) {
      server.faults.add({ verb: "create", count: 1, effect: { status } });
      const answer = await create(server, "a");
      assert.equal(answer.status, status);
      assert.equal(JSON.parse(answer.text).reason, expected[status]);
    }
  });
});

const names = (lines: readonly string[]) =>
  lines.map((line) => {
    const { type, object } = JSON.parse(line);
    return `${type} ${object.metadata.name ?? ""}`;
  });

test("a stale server lists and watches an earlier revision until it catches up", async () => {
  await withServer(async (server) => {
    await settle(); // The server's own objects come first.
    const first = JSON.parse((await create(server, "a")).text);
    await create(server, "b");
    const staleAt = Number(first.metadata.resourceVersion);
    const fault = server.faults.add({
      resource: "configmaps",
      effect: { staleAt },
    });
    const listed = JSON.parse((await send(server, "GET", C)).text).items;
    const plain = watch(server);
    const whole = watch(
      server,
      "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
    );
    const resumed = watch(server, `resourceVersion=${staleAt}`);
    await create(server, "c");
    await settle();
    const isOurs = (name: string) => name.length === 1;
    assert.deepEqual(
      listed.map((item: { metadata: { name: string } }) => item.metadata.name)
        .filter(isOurs),
      ["a"],
    );
    assert.deepEqual(names(plain.lines), ["ADDED a"]);
    assert.deepEqual(names(whole.lines), ["ADDED a", "BOOKMARK "]);
    assert.deepEqual(names(resumed.lines), []);
    assert.equal((await send(server, "GET", `${C}/c`)).status, 200);
    fault.remove();
    await create(server, "d");
    await settle();
    const later = ["ADDED b", "ADDED c", "ADDED d"];
    assert.deepEqual(names(plain.lines), ["ADDED a", ...later]);
    assert.deepEqual(names(whole.lines), ["ADDED a", "BOOKMARK ", ...later]);
    assert.deepEqual(names(resumed.lines), later);
    assert.equal(server.faults.endWatches(), 3);
    await Promise.all([plain.done, whole.done, resumed.done]);
  });
});

test("withheld events are missing in a watch, and later ones are not", async () => {
  await withServer(async (server) => {
    const { text } = await create(server, "a");
    const from = Number(JSON.parse(text).metadata.resourceVersion) + 1;
    server.faults.add({
      verb: "watch",
      effect: { withhold: { from, to: from + 1 } },
    });
    const { lines, done } = watch(server);
    await settle();
    for (const name of ["b", "c"]) await create(server, name);
    await settle();
    assert.deepEqual(names(lines), ["ADDED a", "ADDED c"]);
    server.faults.endWatches();
    await done;
  });
});
