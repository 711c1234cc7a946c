import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  type Context,
  removeFinalizer,
  silentLogger,
} from "@coracle/operator/core";
import {
  Failed,
  intervalSchedule,
  Stalled,
  type Step,
  summarized,
  type SummarizedDefinition,
} from "@coracle/operator/workflows";
import { applyMergePatch } from "../../../core/patch/merge_patch.ts";
import { conditionText, FETCHED } from "../../support/release_fixture.ts";
import { Release } from "../../support/release_kind.ts";

const KEY = { namespace: "default", name: "web" };

/** Refusal of a write that names an object. */
const refusal = (status: number, name?: string) =>
  new ApiError(`Refused with ${status}`, {
    status,
    reason: status === 404 ? "NotFound" : "InternalError",
    ...(name !== undefined && { details: { name } }),
  });

/** Runs of a `summarized` reconciler without a server, which keeps one object. */
function runsOf(
  steps: readonly Step<Release>[],
  definition: Partial<SummarizedDefinition<Release>> = {},
) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const interrupt = new AbortController();
  const patches: unknown[] = [];
  const events: string[] = [];
  const logged: string[] = [];
  const log = (level: string) => (text: string) =>
    void logged.push(`${level} ${text}`);
  const server = {
    stored: {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Release",
      metadata: { ...KEY, uid: "1", generation: 1, resourceVersion: "1" },
      spec: { version: "1" },
    } as Release,
    /** Errors of the next patches; undefined for one that is stored. */
    answers: [] as (Error | undefined)[],
  };
  const ctx = {
    key: KEY,
    clock,
    signal: stop.signal,
    interrupted: interrupt.signal,
    log: {
      ...silentLogger,
      info: log("info"),
      warn: log("warn"),
      error: log("error"),
    },
    events: {
      normal: (reason: string) => void events.push(`Normal ${reason}`),
      warning: (reason: string) => void events.push(`Warning ${reason}`),
    },
    patch(_kind: unknown, _key: unknown, body: object) {
      const error = server.answers.shift();
      if (error !== undefined) return Promise.reject(error);
      patches.push(body);
      server.stored = applyMergePatch(server.stored, body) as Release;
      return Promise.resolve(structuredClone(server.stored));
    },
  } as unknown as Context<Release>;
  const reconciler = summarized<Release>(Release, {
    schedule: () => intervalSchedule("1m"),
    ...definition,
  }, steps);
  return {
    clock,
    stop,
    interrupt,
    patches,
    events,
    logged,
    server,
    reconcile: async () =>
      await reconciler.reconcile(structuredClone(server.stored), ctx),
    cleanup: async () =>
      await reconciler.cleanup?.(structuredClone(server.stored), ctx),
    text: (type: string) => conditionText(server.stored, type),
  };
}

test("summarized ends in peace when its object is gone, and reports nothing", async () => {
  const notification = {
    revision: ({ status }: Release) => status?.revision,
  };
  for (const writes of [0, 1]) {
    const run = runsOf([({ object }) => {
      object.status = { ...object.status, revision: "2" };
    }], { notification });
    run.server.answers = [...Array(writes), refusal(404, "web")];
    const result = await run.reconcile();
    assert.equal(result?.delay, undefined);
    assert.deepEqual(run.events, []);
    assert.equal(run.patches.length, writes);
  }
});

test("summarized passes on a 404 that names no object, alone or among others", async () => {
  const kindless = runsOf([() => {}]);
  kindless.server.answers = [refusal(404)];
  await assert.rejects(kindless.reconcile(), /Refused with 404/);
  const mixed = runsOf([({ object }) => {
    object.spec.version = "2";
  }]);
  mixed.server.answers = [undefined, refusal(404, "web"), refusal(500)];
  await assert.rejects(mixed.reconcile(), /several parts failed/);
});

test("summarized throws both errors if a run fails and its status is refused", async () => {
  const run = runsOf([() => {
    throw new Error("no route");
  }]);
  run.server.answers = [undefined, refusal(500)];
  await assert.rejects(run.reconcile(), (error: unknown) => {
    assert.ok(error instanceof AggregateError);
    const messages = error.errors.map(({ message }) => message);
    assert.deepEqual(messages, ["no route", "Refused with 500"]);
    return true;
  });
});

test("summarized writes nothing more in a run that is aborted", async () => {
  const reason = new Error("the operator stops");
  const run = runsOf([() => {
    run.stop.abort(reason);
    throw new Error("the connection was closed");
  }]);
  await assert.rejects(run.reconcile(), /the connection was closed/);
  assert.equal(run.patches.length, 1, "that it began");
});

test("summarized takes an abort for a failure unless the run was interrupted", async () => {
  for (const isInterrupted of [false, true]) {
    const fetched = { type: "FetchFailed", reason: "Unreachable" };
    const run = runsOf([(step) =>
      step.failing(fetched, () => {
        if (isInterrupted) run.interrupt.abort(new Error("a change"));
        throw new DOMException("The fetch was aborted", "AbortError");
      })], FETCHED);
    const ended = run.reconcile();
    if (isInterrupted) await ended;
    else await assert.rejects(ended, /The fetch was aborted/);
    const failed = isInterrupted
      ? "none"
      : "True Unreachable: The fetch was aborted";
    assert.equal(run.text("FetchFailed"), failed);
    assert.equal(run.events.length, isInterrupted ? 0 : 1);
  }
});

test("summarized gives a failure the reason of its outcome, if it is one", async () => {
  const fetched = { type: "FetchFailed", reason: "Unreachable" };
  const run = runsOf([(step) =>
    step.failing(fetched, () => {
      throw new Failed("NoSuchTag", "There is no tag 2", { log: true });
    })], FETCHED);
  await assert.rejects(run.reconcile());
  assert.equal(run.text("FetchFailed"), "True NoSuchTag: There is no tag 2");
  assert.deepEqual(run.events, ["Warning NoSuchTag"]);
  assert.deepEqual(run.logged, ["error A step has ended the run"]);
});

test("summarized calls its processors with the error of an invalid schedule", async () => {
  const seen: unknown[] = [];
  const run = runsOf([() => {}], {
    schedule: () => intervalSchedule("soon" as "1m"),
    processors: [({ error }) => {
      if (error instanceof Stalled) seen.push(error.reason);
    }],
  });
  await run.reconcile();
  assert.deepEqual(seen, ["InvalidSchedule"]);
});

test("summarized pauses between requests for another run, until one ends otherwise", async () => {
  const results: ("requeue" | "success")[] = [
    "requeue",
    "requeue",
    "requeue",
    "success",
    "requeue",
  ];
  const delays: (number | undefined)[] = [];
  const run = runsOf([() => results.shift()]);
  while (results.length > 0) delays.push((await run.reconcile())?.delay);
  const [first, second, third, ended, again] = delays;
  assert.deepEqual([second, third, ended], [100, 200, 60_000]);
  assert.equal(again, first, "it begins from the start");
  assert.ok(Number(first) < 100);
});

test("summarized succeeds if any of its steps does, and leaves Ready to one that does", async () => {
  for (
    const [results, isReady] of [
      [["empty", "success"], true],
      [["success", "empty"], true],
      [["empty"], false],
    ] as const
  ) {
    const run = runsOf(results.map((result) => () => result));
    await run.reconcile();
    assert.equal(run.text("Ready").startsWith("True"), isReady, `${results}`);
  }
});

test("summarized removes the finalizer after steps without a result", async () => {
  for (const result of ["empty", "success", undefined] as const) {
    const run = runsOf([() => {}], { cleanup: [() => result] });
    assert.equal(await run.cleanup(), removeFinalizer());
    assert.deepEqual(run.patches, []);
  }
});

test("summarized keeps what a condition says of a failure", async () => {
  const run = runsOf([(step) => {
    step.set({
      type: "FetchFailed",
      status: "True",
      reason: "DiskFull",
      message: "no space",
    });
    throw new Error("no route");
  }], FETCHED);
  await assert.rejects(run.reconcile(), /no route/);
  assert.equal(run.text("Ready"), "False DiskFull: no space");
});

test("summarized writes nothing for a condition that is set again with another query", async () => {
  let query = 0;
  const run = runsOf([(step) => {
    const message = `Stored at https://example.com/a?token=${query++}`;
    step.remove("Stored");
    step.set({ type: "Stored", status: "True", reason: "Done", message });
  }]);
  await run.reconcile();
  const before = structuredClone(run.server.stored);
  await run.clock.advance(60_000);
  await run.reconcile();
  assert.deepEqual(run.server.stored, before);
});
