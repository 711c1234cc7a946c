import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../../core/logger.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { fetchContext, SourceRun } from "../../sources/source_run.ts";
import { VirtualClock } from "../../testing/virtual_clock.ts";
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
  await none.list(ConfigMap);
  assert.deepEqual(read, [undefined]);
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
