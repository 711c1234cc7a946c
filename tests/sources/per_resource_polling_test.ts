import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { jsonLogger } from "@coracle/operator/client";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { perResourcePollingSource } from "@coracle/operator/sources";
import { keyOf } from "../../core/api/object_key.ts";
import { gadget, recordedContext } from "../support/source_context.ts";

const a = gadget("a");
const b = gadget("b");

test("perResourcePollingSource keeps nothing of a primary deleted during its fetch", async () => {
  const clock = new VirtualClock();
  const answers: ((found: string[]) => void)[] = [];
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => new Promise((resolve) => answers.push(resolve)),
  });
  const context = recordedContext(clock, [a]);
  await source.start(context);
  const key = { namespace: "default", name: "a" };
  source.onPrimary?.({ type: "deleted", key, object: a });
  answers.shift()?.(["of the deleted"]);
  await clock.settle();
  assert.deepEqual(context.triggered, []);
  assert.equal(clock.pendingTimers, 0, "it is polled no more");
  source.onPrimary?.({ type: "added", key, object: a });
  const read = source.secondaries?.(a);
  await clock.settle();
  answers.shift()?.(["of the new"]);
  assert.deepEqual(await read, ["of the new"]);
  await source.stop();
});

test("perResourcePollingSource keeps what it hears while it reads the primaries", async () => {
  const clock = new VirtualClock();
  const [deleted, changed] = [gadget("deleted"), gadget("changed")];
  const now = { ...changed, metadata: { ...changed.metadata, generation: 2 } };
  const context = recordedContext(clock, [now]);
  const read = Promise.withResolvers<readonly KubernetesObject[]>();
  const readList = () => read.promise;
  const fetched: unknown[] = [];
  const source = perResourcePollingSource({
    name: "remote",
    fetch({ metadata: { name, generation } }) {
      fetched.push([name, generation]);
      return [];
    },
  });
  const started = source.start({
    ...context,
    primaries: { ...context.primaries, readList },
  });
  await clock.settle();
  for (
    const [type, object] of [["deleted", deleted], ["modified", now]] as const
  ) {
    source.onPrimary?.({ type, key: keyOf(object), object });
  }
  read.resolve([deleted, changed]);
  await started;
  await clock.advance(5_000);
  assert.deepEqual(fetched, [["changed", 2], ["changed", 2]]);
  await source.stop();
});

test("perResourcePollingSource is healthy if a fetch for a deleted primary fails", async () => {
  const clock = new VirtualClock();
  const failed = Promise.withResolvers<string[]>();
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => failed.promise,
  });
  await source.start(recordedContext(clock, [a]));
  const key = { namespace: "default", name: "a" };
  source.onPrimary?.({ type: "deleted", key, object: a });
  failed.reject(new Error("no such build"));
  await clock.settle();
  assert.equal(source.health?.().status, "healthy");
  await source.stop();
});

test("perResourcePollingSource refuses an interval or a time limit of zero", () => {
  for (const option of ["interval", "timeout"] as const) {
    assert.throws(
      () =>
        perResourcePollingSource({
          name: "poll",
          fetch: () => [],
          [option]: "0s",
        }),
      {
        name: "RangeError",
        message:
          `Cannot create a polling source: "${option}" must be longer than zero: received 0s`,
      },
    );
  }
});

test("perResourcePollingSource polls after 5 seconds if its interval is zero", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = perResourcePollingSource<typeof a, number>({
    name: "poll",
    fetch: () => [++fetches],
    interval: () => 0,
  });
  await source.start(recordedContext(clock, [a]));
  await clock.advance("11s");
  assert.equal(fetches, 3);
  assert.equal(source.health?.().status, "unhealthy");
  await source.stop();
});

test("perResourcePollingSource polls each primary on its own schedule [PerResourcePollingEventSourceIT]", async () => {
  const clock = new VirtualClock();
  const context = recordedContext(clock, [a, b]);
  const fetched: string[] = [];
  const source = perResourcePollingSource<typeof a, number>({
    name: "poll",
    fetch: (primary) => {
      fetched.push(primary.metadata.name);
      return [fetched.length];
    },
    interval([found = 0], primary) {
      assert.ok(found > 0, "it is given what was fetched");
      return primary.metadata.name === "a" ? "1s" : "3s";
    },
  });
  await source.start(context);
  await clock.advance(3_000);
  assert.equal(source.health?.().status, "healthy");
  const count = (name: string) => fetched.filter((n) => n === name).length;
  assert.equal(count("a"), 4);
  assert.equal(count("b"), 2);
  assert.equal(context.triggered.length, 6);
  assert.deepEqual(
    context.events.filter((event) => event?.initial).length,
    2,
    "the first answer for each",
  );
  source.onPrimary?.({
    type: "deleted",
    key: { namespace: "default", name: "a" },
    object: a,
  });
  await clock.advance(3_000);
  assert.equal(count("a"), 4, "a deleted primary is polled no more");
  await source.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("perResourcePollingSource polls for the newest state, on one schedule", async () => {
  const clock = new VirtualClock();
  const fetched: (string | undefined)[] = [];
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: ({ metadata }) => {
      fetched.push(metadata.resourceVersion);
      return [];
    },
    interval: "1s",
  });
  const key = { namespace: "default", name: "a" };
  const change = (resourceVersion: string) =>
    source.onPrimary?.({
      type: "modified",
      key,
      object: { metadata: { ...key, resourceVersion } },
    });
  await source.start(recordedContext(clock, [a]));
  change("2");
  change("3");
  await clock.advance(2_000);
  assert.deepEqual(fetched, [undefined, "3", "3"]);
  await source.stop();
  change("4");
  await clock.advance(2_000);
  assert.equal(fetched.length, 3);
  assert.equal(clock.pendingTimers, 0);
});

test("perResourcePollingSource fetches immediately when it is first read", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: async () => {
      fetches++;
      await Promise.resolve();
      return ["state"];
    },
    accepts: ({ metadata }) => metadata.name === "a",
  });
  await source.start(recordedContext(clock, [a, b]));
  assert.deepEqual(await source.secondaries?.(a), ["state"]);
  assert.equal(fetches, 1);
  assert.deepEqual(await source.secondaries?.(b), ["state"]);
  assert.equal(fetches, 2, "of a primary that it does not poll");
  await source.stop();
});

test("perResourcePollingSource fails a read before any fetch, and retries", async () => {
  const clock = new VirtualClock();
  let fails = true;
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => {
      if (fails) throw new Error("no route");
      return ["state"];
    },
  });
  await source.start(recordedContext(clock, [a]));
  await assert.rejects(async () => await source.secondaries?.(a), /no route/);
  assert.equal(source.health?.().status, "unhealthy");
  fails = false;
  await clock.advance(5_000);
  assert.equal(source.health?.().status, "healthy");
  await source.stop();
});

test("perResourcePollingSource is unhealthy while one primary fails; logged once", async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log = jsonLogger({ write: (line) => lines.push(line) });
  let reason: string | undefined = "no route";
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: ({ metadata }) => {
      if (metadata.name === "a" && reason !== undefined) {
        throw new Error(reason);
      }
      return [];
    },
    interval: "1s",
  });
  const context = recordedContext(clock, [a, b], { log });
  await source.start(context);
  for (let second = 1; second <= 3; second++) {
    await clock.advance(1_000);
    assert.deepEqual(source.health?.(), {
      status: "unhealthy",
      message: "Cannot poll for default/a: no route",
    });
  }
  assert.equal(lines.length, 1, lines.join("\n"));
  reason = "no name";
  await clock.advance(1_000);
  assert.match(lines[1] ?? "", /"warn".*no name/);
  reason = undefined;
  await clock.advance(1_000);
  assert.match(lines[2] ?? "", /"info".*works again.*default\/a/);
  assert.deepEqual(context.retried, ["default/a"]);
  assert.equal(source.health?.().status, "healthy");
  reason = "no route";
  await clock.advance(1_000);
  const key = { namespace: "default", name: "a" };
  source.onPrimary?.({ type: "deleted", key, object: a });
  assert.equal(source.health?.().status, "healthy", "nobody asks for it now");
  await source.stop();
});

test("perResourcePollingSource forgets the resources of a deleted primary", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => [`answer ${++fetches}`],
  });
  await source.start(recordedContext(clock, [a]));
  assert.deepEqual(await source.secondaries?.(a), ["answer 1"]);
  const key = { namespace: "default", name: "a" };
  source.onPrimary?.({ type: "deleted", key, object: a });
  assert.deepEqual(await source.secondaries?.(a), ["answer 2"]);
  await source.stop();
});

test("perResourcePollingSource is healthy once it can compute its interval again", async () => {
  const clock = new VirtualClock();
  let interval: "0s" | "1s" = "0s";
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => [],
    interval: () => interval,
  });
  const context = recordedContext(clock, [a]);
  await source.start(context);
  await clock.advance(0);
  assert.match(source.health?.().message ?? "", /when to poll/);
  interval = "1s";
  await clock.advance(5_000);
  assert.equal(source.health?.().status, "healthy");
  assert.deepEqual(context.retried, ["default/a"]);
  await source.stop();
});

test("perResourcePollingSource shares the fetch of a read with its schedule", async () => {
  const clock = new VirtualClock();
  const signals: AbortSignal[] = [];
  const answers: PromiseWithResolvers<string[]>[] = [];
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch(_primary, { signal }) {
      signals.push(signal);
      answers.push(Promise.withResolvers());
      return answers.at(-1)!.promise;
    },
    interval: "1s",
  });
  await source.start(recordedContext(clock, [a]));
  answers[0]?.reject(new Error("no route"));
  await clock.settle();
  const read = source.secondaries?.(a);
  await clock.advance(1_000);
  assert.equal(answers.length, 2);
  answers[1]?.resolve(["state"]);
  assert.deepEqual(await read, ["state"]);
  await clock.advance(1_000);
  await source.stop();
  assert.deepEqual(signals.map(({ aborted }) => aborted).at(-1), true);
});

test("perResourcePollingSource can be restarted, and polls accepted primaries only [3.9.9]", async () => {
  const clock = new VirtualClock();
  const fetched: string[] = [];
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: ({ metadata }) => {
      fetched.push(metadata.name);
      return [];
    },
    accepts: ({ metadata }) => metadata.name === "b",
  });
  for (const expected of [1, 2]) {
    await source.start(recordedContext(clock, [a, b]));
    await clock.advance(0);
    assert.equal(fetched.length, expected);
    await source.stop();
  }
  assert.deepEqual(fetched, ["b", "b"]);
  await assert.rejects(
    async () => await source.secondaries?.(a),
    /not started/,
  );
});

test("perResourcePollingSource sees own writes immediately", async () => {
  const clock = new VirtualClock();
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => ["old"],
  });
  await source.start(recordedContext(clock, [a]));
  await clock.advance(0);
  source.ownExternalWrite(a, "new");
  assert.deepEqual(await source.secondaries?.(a), ["new"]);
  source.ownExternalDelete(a, "new");
  assert.deepEqual(await source.secondaries?.(a), []);
  await source.stop();
});

test("perResourcePollingSource keeps nothing that is written after a deletion", async () => {
  const clock = new VirtualClock();
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    id: (text) => text,
    fetch: () => ["fetched", "deleted"],
  });
  // Its primaries do not have it: its last run goes on after its deletion.
  await source.start(recordedContext(clock));
  source.ownExternalWrite(a, "written");
  source.ownExternalDelete(a, "deleted");
  assert.deepEqual(await source.secondaries?.(a), []);
  await source.stop();
});

test("perResourcePollingSource ignores the late answer of a fetch for an earlier read", async () => {
  const clock = new VirtualClock();
  const answers: ((found: string[]) => void)[] = [];
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => new Promise((resolve) => answers.push(resolve)),
  });
  const { primaries } = recordedContext(clock, [a]);
  const context = recordedContext(clock, [], {
    primaries: { ...primaries, readList: () => Promise.resolve([]) },
  });
  await source.start(context);
  // A run reads before the event of its primary arrives.
  const read = source.secondaries?.(a);
  const key = { namespace: "default", name: "a" };
  source.onPrimary?.({ type: "added", key, object: a });
  await clock.settle();
  assert.equal(answers.length, 2);
  answers[1]?.(["new"]);
  await clock.settle();
  answers[0]?.(["old"]);
  assert.deepEqual(await read, ["new"]);
  assert.deepEqual(context.triggered, ["default/a"]);
  await source.stop();
});

for (const part of ["fetch", "interval"] as const) {
  test(`perResourcePollingSource is healthy without the primary whose ${part} failed`, async () => {
    const clock = new VirtualClock();
    const fails = (at: string) => {
      if (at === part) throw new Error("broken");
    };
    const source = perResourcePollingSource<typeof a, string>({
      name: "poll",
      fetch: () => {
        fails("fetch");
        return [];
      },
      interval: () => {
        fails("interval");
        return "1s";
      },
    });
    await source.start(recordedContext(clock, [a]));
    await clock.settle();
    assert.equal(source.health?.().status, "unhealthy");
    const key = { namespace: "default", name: "a" };
    source.onPrimary?.({ type: "deleted", key, object: a });
    assert.equal(source.health?.().status, "healthy");
    await source.stop();
    assert.equal(clock.pendingTimers, 0);
  });
}

test("perResourcePollingSource keeps one schedule when this replica takes over", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => [`${++fetches}`],
    interval: "5s",
  });
  await source.start(recordedContext(clock, [a]));
  await clock.advance(7_000);
  assert.equal(fetches, 2);
  source.onLead?.();
  await clock.advance(4_999);
  assert.equal(fetches, 3);
  await clock.advance(5_000);
  assert.equal(fetches, 4);
  await source.stop();
});

test("perResourcePollingSource fetches once before a read after a failed write", async () => {
  const clock = new VirtualClock();
  let fetches = 0;
  const source = perResourcePollingSource<typeof a, string>({
    name: "poll",
    fetch: () => [`${++fetches}`],
    interval: "1h",
  });
  await source.start(recordedContext(clock, [a]));
  await clock.settle();
  source.ownExternalFailure(a);
  assert.deepEqual(await source.secondaries?.(a), ["2"]);
  assert.deepEqual(await source.secondaries?.(a), ["2"]);
  await source.stop();
});
