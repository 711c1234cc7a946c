import assert from "node:assert/strict";
import { noUpdate, patchStatus } from "@coracle/operator/core";
import { ConfigMap, Event } from "@coracle/operator/kinds";
import { pollingSource, watch } from "@coracle/operator/sources";
import { Gadget, scenario } from "../support/operator_fixture.ts";
import { until } from "../support/until.ts";

scenario(
  "Kubernetes Events are written once and then counted",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        runs++;
        ctx.events.normal("Synced", "All parts are there");
        if (runs === 3) ctx.events.warning("Slow", "It took long");
        return noUpdate().rescheduleAfter("1m");
      },
    });
    await fixture.start(operator);
    const gadget = await fixture.create("a");
    await fixture.until(() => runs === 4, 600_000);
    const events = async () => {
      const { items } = await fixture.client.list(Event, {
        namespace: "default",
      });
      return items.filter(({ involvedObject }) =>
        involvedObject.uid === gadget.metadata.uid
      );
    };
    // A stop waits for them by the clock of the scenario, which runs ahead.
    await until("every Event to be written", async () => {
      const counts = (await events()).map(({ count = 0 }) => count);
      return counts.reduce((sum, count) => sum + count, 0) === 5;
    });
    await fixture.done(operator.stop());
    const told = (await events()).map((
      { type, reason, count, involvedObject, reportingComponent },
    ) => [type, reason, count, involvedObject.uid, reportingComponent]);
    assert.deepEqual(told.sort(), [
      ["Normal", "Synced", 4, gadget.metadata.uid, "gadget"],
      ["Warning", "Slow", 1, gadget.metadata.uid, "gadget"],
    ]);
  },
);

scenario(
  "/debug/state shows objects that ran, with conditions and without their data",
  async (fixture) => {
    const operator = fixture.operator({
      probes: { port: 0, host: "127.0.0.1", debug: true },
    });
    operator.register(Gadget, {
      reconcile(gadget) {
        if (gadget.spec.value === "secret-b") throw new Error("Broken");
      },
    }, { retry: false });
    await fixture.start(operator);
    await fixture.create("a", { value: "secret-a" });
    await fixture.create("b", { value: "secret-b" });
    await fixture.until(() =>
      (operator.health().controllers[0]?.exhausted ?? 0) === 1 &&
      operator.why("default/a").some(({ runs }) => runs.length > 0)
    );
    const response = await fetch(
      `http://127.0.0.1:${operator.probePort}/debug/state`,
    );
    const text = await response.text();
    const { state, controllers, caches } = JSON.parse(text);
    assert.equal(state, "started");
    const [{ objects, primaries, exhausted }] = controllers;
    assert.deepEqual({ primaries, exhausted }, { primaries: 2, exhausted: 1 });
    assert.deepEqual(
      objects.map((
        { object, conditions, runs }: Record<string, unknown[]>,
      ) => [object, conditions, (runs?.[0] as { outcome: string }).outcome])
        .sort(),
      [["default/a", [], "success"], ["default/b", [], "failure"]],
    );
    assert.equal(caches.length, 1);
    assert(!text.includes("secret-"), "no field of a spec is shown");
  },
);

scenario(
  "Probes serve liveness, readiness and metrics",
  async (fixture) => {
    const operator = fixture.operator({
      probes: { port: 0, host: "127.0.0.1" },
    });
    operator.register(Gadget, {
      reconcile(gadget) {
        if (gadget.spec.value === "bad") throw new Error("Broken");
        return patchStatus({ value: gadget.spec.value });
      },
    }, { retry: false });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.create("b", { value: "bad" });
    await fixture.until(() =>
      (operator.health().controllers[0]?.exhausted ?? 0) === 1
    );
    const url = `http://127.0.0.1:${operator.probePort}`;
    const get = async (path: string) => {
      const response = await fetch(url + path);
      return { status: response.status, body: await response.text() };
    };
    const [live, ready, metrics, why, missing] = await Promise.all(
      [
        "/healthz",
        "/readyz",
        "/metrics",
        "/debug/why?object=default/a",
        "/other",
      ].map(get),
    );
    assert.equal(live?.status, 200);
    assert.equal(ready?.status, 200);
    assert.equal(JSON.parse(ready?.body ?? "").controllers[0].primaries, 2);
    assert.match(
      metrics?.body ?? "",
      /coracle_reconciliations_total\{controller="gadget",result="success"\} 1/,
    );
    assert.match(
      metrics?.body ?? "",
      /coracle_reconciliations_total\{controller="gadget",result="failure"\} 1/,
    );
    assert.match(
      metrics?.body ?? "",
      /coracle_primaries\{controller="gadget"\} 2/,
    );
    assert.equal(why?.status, 404, "only where it was asked for");
    assert.equal(missing?.status, 404);
    const posted = await fetch(`${url}/healthz`, { method: "POST", body: "x" });
    assert.equal(posted.status, 405);
    await posted.text();
    await fixture.done(operator.stop());
    assert.equal(operator.probePort, undefined);
    await assert.rejects(fetch(`${url}/healthz`));
  },
);

scenario(
  "/readyz shows counts and names, and texts of errors only with debug",
  async (fixture) => {
    const secret = "s3cret at 10.0.0.7";
    for (const debug of [false, true]) {
      const operator = fixture.operator({
        probes: { port: 0, host: "127.0.0.1", debug },
        leaderElection: { name: "lock", namespace: "default", identity: "a" },
      });
      let isBroken = false;
      operator.register(Gadget, { reconcile() {} }, {
        sources: [
          pollingSource({
            name: "tags",
            interval: "1s",
            fetch() {
              if (isBroken) throw new Error(secret);
              return new Map();
            },
          }),
        ],
      });
      await fixture.start(operator);
      await fixture.until(() => operator.health().leading);
      isBroken = true;
      const fault = fixture.faults.add({ effect: { status: 403 } });
      fixture.faults.endWatches();
      await fixture.until(() => {
        const { lease, controllers: [controller] } = operator.health();
        return lease?.error !== undefined &&
          controller?.sources.get("tags")?.message !== undefined &&
          controller.informers[0]?.watches[0]?.lastError !== undefined;
      });
      const url = `http://127.0.0.1:${operator.probePort}/readyz`;
      const text = await (await fetch(url)).text();
      for (const word of [secret, "Forbidden", "Cannot", "lastError"]) {
        assert.equal(text.includes(word), debug, `${word}: ${text}`);
      }
      const { lease, controllers: [controller] } = JSON.parse(text);
      assert.equal(lease.name, "default/lock");
      assert.ok(lease.failingFor >= 0);
      assert.equal(controller.sources.tags.status, "unhealthy");
      assert.ok(controller.informers[0].watches[0].consecutiveFailures > 0);
      fault.remove();
      await fixture.done(operator.stop());
    }
  },
  { embedded: "it needs faults of the server" },
);

scenario(
  "An operator explains why an object ran, its writes and what is next",
  async (fixture) => {
    const operator = fixture.operator();
    let fails = true;
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
        });
        if (fails) throw new Error("Not yet");
        return patchStatus({ value: gadget.spec.value }).rescheduleAfter("1m");
      },
    }, {
      retry: { initial: "2s", jitter: 0 },
      sources: [watch(ConfigMap)],
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => operator.why("default/a")[0]?.runs.length === 1);
    fails = false;
    await fixture.until(() => operator.why("default/a")[0]?.runs.length === 2);
    await fixture.client.patch(ConfigMap, { namespace: "default", name: "a" }, {
      data: { by: "others" },
    });
    await fixture.until(() => operator.why("default/a")[0]?.runs.length === 3);
    const [history] = operator.why({ namespace: "default", name: "a" });
    assert.deepEqual(
      history?.runs.map((
        { cause, outcome, attempt, error, next, writes },
      ) => [cause, outcome, attempt, error, next, writes]),
      [
        ["added", "failure", 0, "Error: Not yet", "retry in 2s", [
          "apply v1 ConfigMap default/a",
        ]],
        // What is as the run before left it is not applied again.
        ["retry", "success", 1, undefined, "reschedule in 1m", [
          "patch status of sample.coracle.dev/v1 Gadget default/a",
        ]],
        [
          "source v1 ConfigMap: ConfigMap default/a",
          "success",
          0,
          undefined,
          "reschedule in 1m",
          ["apply v1 ConfigMap default/a"],
        ],
      ],
    );
    assert.deepEqual(operator.why("default/unknown"), []);
  },
);

scenario(
  "The history of an object says since when its run is running",
  async (fixture) => {
    const { promise: end, resolve } = Promise.withResolvers<void>();
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile: () => end });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => operator.health().controllers[0]?.running === 1);
    const before = operator.why("default/a")[0]?.runningFor ?? NaN;
    await fixture.advance(65_000);
    const [history] = operator.why("default/a");
    assert.equal(history?.running, true);
    assert.equal((history.runningFor ?? NaN) - before, 65_000);
    resolve();
    await fixture.until(() => operator.why("default/a")[0]?.running === false);
    assert.equal(operator.why("default/a")[0]?.runningFor, undefined);
  },
);

scenario(
  "Log lines of a run name the object, and its summary the cause",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        ctx.log.info("Working");
      },
    });
    await fixture.start(operator);
    const gadget = await fixture.create("a");
    await fixture.until(() =>
      fixture.log.some(({ message }) => message === "Reconciled")
    );
    const { fields } =
      fixture.log.find(({ message }) => message === "Working") ??
        {};
    assert.deepEqual(fields, {
      controller: "gadget",
      kind: "Gadget",
      namespace: "default",
      name: "a",
      uid: gadget.metadata.uid,
      resourceVersion: gadget.metadata.resourceVersion,
      generation: 1,
    });
    const run = fixture.log.find(({ message }) => message === "Reconciled");
    assert.equal(run?.fields["object"], "default/a");
    assert.equal(run?.fields["cause"], "added");
  },
);
