import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { silentLogger } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { fetchContext, SourceRun } from "../../sources/source_run.ts";
import { gadget, recordedContext } from "../support/source_context.ts";

test("fetchContext reads by the names of the primary, unless others are given", async () => {
  const read: unknown[] = [];
  const client = {} as never;
  const context = recordedContext(new VirtualClock(), [], {
    client,
    get(_kind, key) {
      read.push(key);
      return Promise.resolve(undefined);
    },
    list(_kind, namespace) {
      read.push(namespace);
      return Promise.resolve([]);
    },
  });
  const run = new SourceRun(context);
  const { signal } = new AbortController();
  const own = fetchContext(run, signal, gadget("a"));
  await own.get(ConfigMap);
  await own.get(ConfigMap, "b", "other");
  await own.list(ConfigMap);
  await own.list(ConfigMap, "*");
  assert.deepEqual(read.splice(0), [
    { namespace: "default", name: "a" },
    { namespace: "other", name: "b" },
    "default",
    undefined,
  ]);
  assert.deepEqual([own.signal, own.client, own.log], [
    signal,
    client,
    silentLogger,
  ]);
  const none = fetchContext(run, signal);
  await assert.rejects(none.get(ConfigMap), /without a primary its name must/);
  await none.get(ConfigMap, "b", "other");
  await none.list(ConfigMap);
  assert.deepEqual(read, [{ namespace: "other", name: "b" }, undefined]);
});

test("SourceRun ends a bounded task with its source", async () => {
  const run = new SourceRun(recordedContext(new VirtualClock()));
  let given: AbortSignal | undefined;
  const task = run.bounded("a fetch", 1_000, (signal) => {
    given = signal;
    return new Promise<never>(() => {});
  });
  run.end();
  await assert.rejects(task);
  assert.equal(given?.aborted, true);
});

test("SourceRun reports its first failure and how many more there are", () => {
  const run = new SourceRun(recordedContext(new VirtualClock()));
  run.failed("Cannot read", new Error("no route"));
  run.failed("Cannot write", "no name");
  const message = () => run.health.message;
  assert.equal(message(), "Cannot read: no route, and 1 more");
  run.worked("Cannot read");
  assert.equal(message(), "Cannot write: no name");
  run.failed("Cannot read", new Error("no route"));
  run.worked();
  assert.deepEqual(run.health, { status: "healthy" });
});

test("SourceRun repeats failed runs for the operation that works again", () => {
  const context = recordedContext(new VirtualClock());
  const run = new SourceRun(context);
  run.failed("first", new Error("no route"));
  run.failed("second", new Error("no route"));
  run.worked("third", "default/c");
  assert.deepEqual(context.retried, []);
  run.worked("first", "default/a");
  run.worked("first", "default/a");
  run.worked();
  assert.deepEqual(context.retried, ["default/a", "*"]);
});

test("SourceRun repeats a warning after a minute, with the number of omitted ones", async () => {
  const clock = new VirtualClock();
  const logged: unknown[] = [];
  const log = {
    ...silentLogger,
    warn: (...line: unknown[]) => void logged.push(line),
  };
  const run = new SourceRun(recordedContext(clock, [], { log }));
  const warn = () => run.warn("Unreadable", { source: "a" });
  const first = ["Unreadable", { source: "a" }];
  await clock.advance(30_000);
  warn();
  warn();
  await clock.advance(59_999);
  warn();
  assert.deepEqual(logged, [first]);
  run.warn("Another", {});
  await clock.advance(1);
  warn();
  await clock.advance(60_000);
  warn();
  assert.deepEqual(logged, [
    first,
    ["Another", {}],
    ["Unreadable", { source: "a", omitted: 2 }],
    first,
  ]);
});

test("SourceRun calls nothing back after its end or a cancellation", async () => {
  const clock = new VirtualClock();
  const run = new SourceRun(recordedContext(clock));
  const calls: string[] = [];
  run.after(1_000, () => calls.push("first"));
  run.after(1_000, () => calls.push("cancelled")).cancel();
  await clock.advance(1_000);
  run.after(1_000, () => calls.push("before the end"));
  run.end();
  assert.equal(clock.pendingTimers, 0);
  run.after(1_000, () => calls.push("after the end"));
  await clock.advance(1_000);
  assert.deepEqual(calls, ["first"]);
});

test("SourceRun that has ended calls nothing back, and reports nothing", async () => {
  const clock = new VirtualClock();
  const said: unknown[] = [];
  const log = { ...silentLogger, warn: (text: string) => void said.push(text) };
  const run = new SourceRun(recordedContext(clock, [], { log }));
  run.end();
  run.after(1_000, () => said.push("called"));
  run.failed("Cannot read", new Error("no route"));
  await clock.advance(2_000);
  assert.deepEqual(said, []);
  assert.deepEqual(run.health, { status: "healthy" });
});
