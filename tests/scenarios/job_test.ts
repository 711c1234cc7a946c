import assert from "node:assert/strict";
import {
  Client,
  type JobContext,
  noUpdate,
  patchStatus,
  type RunAbortedError,
} from "@coracle/operator/core";
import { ConfigMap, Event } from "@coracle/operator/kinds";
import { inboundSource, pollingSource, watch } from "@coracle/operator/sources";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Wall clock time of a scenario, as hours and minutes. */
function time({ clock }: { readonly clock: JobContext["clock"] }): string {
  return new Date(clock.wallTime()).toISOString().slice(11, 16);
}

/** Advances the time to a minute of the day. */
async function advanceTo(fixture: OperatorFixture, text: string) {
  const now = fixture.clock.wallTime();
  const day = new Date(now).toISOString().slice(0, 10);
  const then = Date.parse(`${day}T${text}:00Z`);
  await fixture.advance(then > now ? then - now : then + 24 * HOUR - now);
}

scenario(
  "a job of a period runs at its start and then each period",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const runs: string[] = [];
    const job = operator.job("poller", { every: "5m" }, (ctx) => {
      runs.push(`${ctx.cause.type} ${ctx.cause.source}`);
    });
    await fixture.start(operator);
    await fixture.settle();
    assert.deepEqual(runs, ["source schedule"]);
    await fixture.advance(20 * MINUTE);
    assert.equal(runs.length, 5);
    job.trigger();
    await fixture.settle();
    assert.equal(runs.at(-1), "requested undefined");
    assert.equal(job.health().name, "poller");
    assert.equal(job.health().active, true);
  },
);

scenario(
  "a job has one run at a time and makes missed times up once",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const runs: string[] = [];
    let running = 0;
    operator.job("slow", { every: "1m" }, async (ctx) => {
      assert.equal(++running, 1);
      runs.push(time(ctx));
      if (runs.length === 1) {
        await new Promise<void>((resolve) =>
          ctx.clock.setTimer(resolve, 10.5 * MINUTE)
        );
      }
      running--;
    });
    await advanceTo(fixture, "12:00");
    await fixture.start(operator);
    await fixture.advance(12 * MINUTE);
    assert.deepEqual(runs, ["12:00", "12:10", "12:11", "12:12"]);
  },
);

scenario(
  "a job of a cron schedule runs at its times in its zone only",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const runs: string[] = [];
    operator.job(
      "nightly",
      { cron: "30 3 * * *", timeZone: "Asia/Kolkata" },
      (ctx) => void runs.push(time(ctx)),
    );
    await advanceTo(fixture, "12:00");
    await fixture.start(operator);
    await fixture.advance(9 * HOUR);
    assert.deepEqual(runs, []);
    const [history] = operator.why("nightly");
    assert.match(String(history?.scheduled), /T22:00:00.000Z$/);
    await fixture.advance(48 * HOUR);
    // 03:30 in India is 22:00 UTC of the day before.
    assert.deepEqual(runs, ["22:00", "22:00"]);
    assert.match(
      operator.metrics(),
      /coracle_job_next_run_timestamp_seconds\{controller="nightly"\} \d+/,
    );
    assert.match(
      operator.metrics(),
      /coracle_job_last_success_timestamp_seconds\{controller="nightly"\} \d+/,
    );
    assert.equal(operator.why("nightly")[0]?.runs.length, 2);
  },
);

scenario(
  "a job with state makes up by one run what a restart has missed",
  async (fixture) => {
    const state = { kind: ConfigMap, name: "schedules" };
    const runs: string[] = [];
    let fails = false;
    const start = async () => {
      const operator = fixture.operator({ namespaces: ["default"] });
      operator.job("nightly", { cron: "0 * * * *", state }, (ctx) => {
        runs.push(time(ctx));
        if (fails) throw new Error("no");
      });
      await fixture.start(operator);
      await fixture.settle();
      return operator;
    };
    await advanceTo(fixture, "11:30");
    const first = await start();
    assert.deepEqual(runs, []);
    await fixture.advance(2 * HOUR);
    assert.deepEqual(runs, ["12:00", "13:00"]);
    const stored = await fixture.client.get(ConfigMap, {
      namespace: "default",
      name: "schedules",
    });
    assert.match(
      String(stored.metadata.annotations?.["jobs.coracle.dev/nightly"]),
      /T13:00:00Z$/,
    );
    await fixture.done(first.stop());
    await fixture.advance(3 * HOUR);
    // Two restarts: the first fails, so that the second makes it up.
    fails = true;
    const second = await start();
    await fixture.done(second.stop());
    fails = false;
    await start();
    assert.deepEqual(runs.slice(2), ["16:30", "16:30"]);
    await fixture.advance(HOUR);
    assert.deepEqual(runs.slice(4), ["17:00"]);
  },
);

scenario(
  "a new leader goes on with a schedule, and repeats nothing",
  async (fixture) => {
    const runs: string[] = [];
    const start = async (identity: string) => {
      const operator = fixture.operator({
        namespaces: ["default"],
        leaderElection: { name: "lock", identity },
      });
      const polled = pollingSource({
        name: "polled",
        interval: "4m",
        leaderOnly: true,
        fetch: () => {
          runs.push(`${identity} polls`);
          return new Map();
        },
      });
      operator.job("often", {
        every: "4m",
        state: { kind: ConfigMap, name: "schedules", namespace: "default" },
      }, (ctx) => void runs.push(`${identity} ${time(ctx)}`));
      operator.job("polling", { sources: [polled] }, () => {});
      operator.job(
        "each",
        { every: "24h", leaderOnly: false },
        () => void runs.push(`${identity} for itself`),
      );
      await fixture.start(operator);
      return operator;
    };
    await advanceTo(fixture, "12:00");
    const a = await start("a");
    await fixture.until(() => a.health().leading);
    const b = await start("b");
    await fixture.advance(6 * MINUTE);
    assert.deepEqual(runs.sort(), [
      "a 12:00",
      "a 12:04",
      "a for itself",
      "a polls",
      "a polls",
      "b for itself",
    ]);
    runs.length = 0;
    await fixture.done(a.stop());
    await fixture.until(() => b.health().leading);
    await fixture.advance(MINUTE);
    assert.deepEqual(runs, ["b polls"]);
    await fixture.advance(2 * MINUTE);
    assert.deepEqual(runs, ["b polls", "b 12:08"]);
  },
);

scenario(
  "a run of a job ends with the lease of its replica, before another runs",
  async (fixture) => {
    const told: string[] = [];
    let isCut = false;
    const { clock, transport } = fixture;
    const cut = new Client({
      transport: {
        ...transport,
        send: (request) =>
          isCut && request.path.includes("/leases")
            ? Promise.reject(new Error("connection refused"))
            : transport.send(request),
        close: () => Promise.resolve(),
      },
      namespace: "default",
    }, { clock });
    const start = async (identity: string, client?: Client) => {
      const operator = fixture.operator({
        namespaces: ["default"],
        leaderElection: { name: "long-job", identity },
        ...client && { client },
      });
      operator.job("long", { every: "1h" }, async (ctx) => {
        told.push(`${identity} begins`);
        await new Promise<void>((resolve) =>
          ctx.signal.addEventListener("abort", () => resolve())
        );
        const { abortCause } = ctx.signal.reason as RunAbortedError;
        told.push(`${identity} ends: ${abortCause}`);
        await ctx.apply(ConfigMap, {
          metadata: { namespace: "default", name: "late" },
        }).catch(({ message }) => told.push(message));
      });
      await fixture.start(operator);
      return operator;
    };
    const a = await start("a", cut);
    await fixture.until(() => told.length === 1);
    const b = await start("b");
    isCut = true;
    await fixture.until(() => b.health().leading);
    await fixture.advance(MINUTE);
    assert.deepEqual(told.splice(0), [
      "a begins",
      "a ends: leadership",
      "Cannot continue the run of long: leadership was lost",
      "b begins",
    ]);
    isCut = false;
    await fixture.done(b.stop());
    await fixture.until(() => a.health().leading);
    await fixture.advance(MINUTE);
    assert.deepEqual(told, [
      "b ends: shutdown",
      "Cannot continue the run of long: the operator stops",
      "a begins",
    ]);
  },
);

scenario(
  "a job with watches and a debounce runs once for a burst of changes",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const runs: string[][] = [];
    operator.job("sync", {
      watches: [watch(ConfigMap, { labelSelector: "app=dns" })],
      debounce: "2s",
    }, async (ctx) => {
      const found = await ctx.list(ConfigMap);
      runs.push(found.map(({ metadata }) => metadata.name).sort());
      if (runs.length === 2) assert.equal(ctx.cause.source, "v1 ConfigMap");
    });
    await fixture.start(operator);
    await fixture.settle();
    assert.deepEqual(runs, [[]]);
    const create = (name: string) =>
      fixture.client.create(ConfigMap, {
        metadata: { namespace: "default", name, labels: { app: "dns" } },
      });
    const names = ["a", "b", "c", "d"];
    for (const name of names) {
      await create(name);
      await fixture.advance(1_500);
    }
    assert.equal(runs.length, 1);
    await fixture.advance(500);
    assert.deepEqual(runs.slice(1), [names]);
    // Changes that never pause delay a run by ten times the quiet time.
    for (let index = 0; index < 20; index++) {
      await create(`e${index}`);
      await fixture.advance(1_000);
    }
    assert.equal(runs.length, 3);
    await fixture.advance(MINUTE);
    assert.equal(runs.length, 3);
  },
);

scenario(
  "a job writes without an owner, and its Events name the job",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const errors: string[] = [];
    const inbound = inboundSource("calls");
    operator.job("writer", { sources: [inbound] }, async (ctx) => {
      const metadata = { namespace: "default", name: "made" };
      await ctx.apply(ConfigMap, { metadata, data: { by: ctx.fieldManager } });
      await ctx.create(ConfigMap, {
        metadata: { ...metadata, name: "created" },
      });
      ctx.events.normal("Written", "Wrote it");
      await ctx.apply(ConfigMap, { metadata }, { owned: true })
        .catch((error) => errors.push(error.message));
      assert.equal(await ctx.get(ConfigMap, "none", "default"), undefined);
    });
    await fixture.start(operator);
    await fixture.settle();
    assert.deepEqual(errors, [
      "Cannot own an object: a job has no primary that could",
    ]);
    for (const name of ["made", "created"]) {
      const { metadata } = await fixture.client.get(ConfigMap, {
        namespace: "default",
        name,
      });
      assert.equal(metadata.ownerReferences, undefined);
      assert.equal(metadata.annotations, undefined);
    }
    // A real cluster has Events of its own there.
    const { items } = await fixture.client.list(Event, {
      namespace: "default",
      fieldSelector: "involvedObject.kind=OperatorJob",
    });
    assert.deepEqual(
      items.map(({ involvedObject, reason }) => [
        involvedObject.kind,
        involvedObject.name,
        reason,
      ]),
      [["OperatorJob", "writer", "Written"]],
    );
  },
);

scenario(
  "a job that fails is retried, and its time limit aborts it",
  async (fixture) => {
    const operator = fixture.operator({ namespaces: ["default"] });
    const outcomes: string[] = [];
    operator.job(
      "startup",
      { retry: { initial: "10s", maxAttempts: 3 } },
      () => {
        outcomes.push("startup");
        if (outcomes.length < 3) throw new Error("not yet");
      },
    );
    await fixture.start(operator);
    await fixture.advance(MINUTE);
    assert.deepEqual(outcomes, ["startup", "startup", "startup"]);
    operator.job("hanging", { timeout: "5s", retry: false }, async (ctx) => {
      await new Promise((_, reject) =>
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))
      );
    });
    operator.job("patching", { retry: false }, () => patchStatus({ a: 1 }));
    let again = 0;
    operator.job(
      "again",
      {},
      () => again++ < 2 ? noUpdate().rescheduleAfter("10s") : undefined,
    );
    await fixture.advance(MINUTE);
    assert.equal(again, 3);
    const errorOf = (name: string) => operator.why(name)[0]?.runs[0]?.error;
    assert.match(String(errorOf("hanging")), /5 s|5s|5000 ms|longer/);
    assert.match(
      String(errorOf("patching")),
      /Cannot use the result of job "patching": a job has no primary to patch/,
    );
  },
);
