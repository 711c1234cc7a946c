import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  Client,
  MetricsRegistry,
  Operator,
  silentLogger,
  type Transport,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { modulesLoaded } from "../../../core/clock.ts";
import { readLimited } from "../../../core/config/limited_file.ts";
import { openSnapshots } from "../../../core/operator/operator_snapshots.ts";
import { inTime } from "../../support/in_time.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

test("Virtual clocks wait until the folder of snapshots is opened", async () => {
  const path = temporaryFolder();
  writeText(path, "gadget.snapshot", "");
  const waits: boolean[] = [];
  const clock = new VirtualClock();
  // The time is read in the middle of the opening, for the age of each file.
  clock.wallTime = () => {
    waits.push(modulesLoaded() !== undefined);
    return 0;
  };
  const client = { get: () => Promise.resolve({ metadata: { uid: "a" } }) };
  const snapshot = { path, every: 1_000, exclude: [], resync: false };
  const folder = await openSnapshots({
    cache: { snapshot } as never,
    clock,
    logger: silentLogger,
    metrics: new MetricsRegistry(),
  }, client as unknown as Client);
  assert.notEqual(folder, undefined);
  assert.deepEqual(waits, [true]);
  await folder?.close();
});

test("Operator stops at once while it asks whose snapshots it may use", async () => {
  const asked = Promise.withResolvers<void>();
  // Nothing is answered, and only the signal of the caller ends a request.
  const transport: Transport = {
    send: ({ signal }) =>
      new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        asked.resolve();
      }),
    close: () => Promise.resolve(),
  };
  const operator = new Operator({
    client: new Client({ transport }),
    cache: { snapshot: { path: temporaryFolder() } },
    logger: silentLogger,
  });
  operator.register(ConfigMap, { reconcile() {} });
  const started = assert.rejects(operator.start(), /it was stopped/);
  await asked.promise;
  await inTime("the operator stops", operator.stop(), 5_000);
  await started;
});

test("Virtual clocks wait until a file is read", async () => {
  const file = writeText(temporaryFolder(), "level", "debug");
  const text = readLimited(file, 100);
  assert.notEqual(modulesLoaded(), undefined);
  assert.equal(await text, "debug");
});
