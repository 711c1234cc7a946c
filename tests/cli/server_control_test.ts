import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { ConfigMap, CronJob, Job } from "@coracle/operator/kinds";
import { serveControl } from "../../dev/cli/server_control.ts";
import type { LocalServer } from "../../dev/cli/window/local_server.ts";
import { RunningClock } from "../../dev/testing/running_clock.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

const clock = new RunningClock();
let server: ApiServer;
let control: LocalServer;
let access: {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

before(async () => {
  server = await ApiServer.start({ clock, port: false, controllers: ["*"] });
  const file = join(temporaryFolder(), "control.json");
  control = await serveControl({ faults: server.faults, clock }, file);
  access = JSON.parse(await readFile(file, "utf8"));
});

after(async () => {
  await control?.close();
  await server?.stop();
});

async function ask(
  path: string,
  body: unknown = {},
  headers: Readonly<Record<string, string>> = access.headers,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${access.url}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

async function done(path: string, body?: unknown): Promise<unknown> {
  const { status, text } = await ask(path, body);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

test("A request adds a fault, counts its hits and removes it", async () => {
  const { client } = server;
  const find = () =>
    client.find(ConfigMap, { namespace: "default", name: "a" });
  const effect = { status: 403 };
  const verb = "get";
  const fault = await done("/add", { verb, resource: "configmaps", effect });
  await assert.rejects(find(), /403|Forbidden/i);
  assert.deepEqual(await done("/hits", fault), { hits: 1 });
  await done("/remove", fault);
  assert.equal(await find(), undefined);
  assert.deepEqual(await done("/hits", fault), { hits: 1 });
  await done("/add", { verb, resource: "configmaps", effect });
  await done("/clear");
  assert.equal(await find(), undefined);
});

test("A request ends watches and says how many", async () => {
  const watch = server.client.watch(ConfigMap, { namespace: "default" });
  const ended = (async () => {
    for await (const _event of watch);
  })();
  await until("the watch is open", () => server.watchCounts.open > 0);
  const match = { resource: "configmaps", namespace: "default" };
  assert.deepEqual(await done("/endWatches", match), { watches: 1 });
  await ended;
  for (const path of ["/cutWatches", "/stallWatches", "/expireWatches"]) {
    assert.deepEqual(await done(path, match), { watches: 0 });
  }
});

test("A request restarts the server, without its objects if told", async () => {
  const { client } = server;
  const metadata = { namespace: "default", name: "kept" };
  await client.create(ConfigMap, { metadata });
  await done("/restart");
  await client.get(ConfigMap, metadata);
  const { status, text } = await ask("/restart", { downFor: "soon" });
  assert.equal(status, 400);
  assert.match(text, /"downFor" must be a duration/);
  await client.get(ConfigMap, metadata);
  await done("/restart", { keepData: false });
  assert.equal(await client.find(ConfigMap, metadata), undefined);
  for (const path of ["/compact", "/goAway", "/dropConnections"]) {
    assert.deepEqual(await done(path), {});
  }
});

test("A request moves the clock, and a CronJob becomes due", async () => {
  const { client } = server;
  const metadata = { namespace: "default", name: "hourly" };
  const template = {
    spec: {
      restartPolicy: "Never" as const,
      containers: [{ name: "a", image: "a" }],
    },
  };
  await client.create(CronJob, {
    metadata,
    spec: {
      schedule: "0 * * * *",
      jobTemplate: { spec: { template } },
    },
  });
  const before = clock.wallTime();
  const { now } = await done("/advance", { by: "1h" }) as { now: string };
  // The clock that fires timers has fractions of a millisecond, and this one none.
  assert(Date.parse(now) >= before + 3_600_000 - 1, now);
  await until("the Job exists", async () => {
    const { items } = await client.list(Job, { namespace: "default" });
    return items.length === 1;
  });
  await done("/jump", { by: "24h" });
  assert(clock.wallTime() >= before + 25 * 3_600_000 - 2);
});

test("Requests that are wrong are refused with what is right", async () => {
  const wrong = [
    ["/add", { effect: { status: 200 } }, /"status" must be one of 403/],
    ["/add", { verb: "read", effect: { status: 503 } }, /verb/],
    ["/hits", { id: 99 }, /"id" must be one that \/add has returned.*99/],
    ["/cutWatches", { kind: "Pod" }, /kind/],
    ["/advance", {}, /by|duration/],
    ["/add", [], /the body must be a JSON object/],
  ] as const;
  for (const [path, body, expected] of wrong) {
    const { status, text } = await ask(path, body);
    assert.equal(status, 400, `${path}: ${text}`);
    assert.match(text, expected);
  }
  const unknown = await ask("/other");
  assert.equal(unknown.status, 404);
  assert.match(unknown.text, /one of \/add \/hits /);
  assert.equal((await ask("/compact", {}, {})).status, 403);
});
