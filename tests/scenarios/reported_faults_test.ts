/**
 * Faults as users of other operator frameworks have reported them, tried as programs
 * on whole operators.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  crdPresent,
  defineKind,
  kubernetesDependent,
  noUpdate,
  type ObjectOf,
  type Operator,
  type OperatorOptions,
  patchStatus,
  setStatus,
  Workflow,
} from "@coracle/operator";
import { InformerPool } from "@coracle/operator/core";
import { ConfigMap, Event, Lease, Namespace } from "@coracle/operator/kinds";
import { z } from "zod";
import { findMap, registerWorkflow } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const MINUTE_MS = 60_000;

/** Requests of a verb for gadgets since there had been a number of requests. */
const asked = (fixture: OperatorFixture, verb: string, since: number) =>
  fixture.requests.slice(since).filter((one) =>
    one.verb === verb && one.resource === "gadgets"
  ).length;

// kubernetes-client/javascript#1933
scenario(
  "A server that is back after ten minutes gets a few watches, and not tens",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: ({ spec }) => void seen.push(spec.value),
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.includes("first"));
    const away = fixture.faults.add({
      verb: ["list", "watch"],
      resource: "gadgets",
      effect: { status: 503 },
    });
    fixture.faults.cutWatches({ resource: "gadgets" });
    const before = fixture.requests.length;
    await fixture.advance(10 * MINUTE_MS);
    const tried = asked(fixture, "watch", before);
    assert.ok(tried > 2 && tried < 60, `${tried} watches in ten minutes`);
    away.remove();
    await fixture.advance(MINUTE_MS);
    const back = fixture.requests.length;
    await fixture.change("a", { value: "second" });
    await fixture.until(() => seen.includes("second"));
    await fixture.advance(2 * MINUTE_MS);
    assert.ok(asked(fixture, "watch", back) <= 1, "a watch goes on");
  },
);

// kubernetes-client/javascript#570
scenario(
  "Watches that break each second deliver no change a second time",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: ({ metadata, spec }) =>
        void seen.push(`${metadata.name} ${spec.value}`),
    });
    await fixture.start(operator);
    for (const name of ["a", "b"]) await fixture.create(name);
    await fixture.until(() => seen.length === 2);
    await fixture.remove("b");
    for (let at = 0; at < 30; at++) {
      fixture.faults.cutWatches({ resource: "gadgets" });
      if (at % 10 === 0) fixture.faults.compact();
      await fixture.advance(1_000);
    }
    await fixture.advance(MINUTE_MS);
    assert.deepEqual(seen.toSorted(), ["a first", "b first"]);
    assert.equal(operator.health().controllers[0]?.primaries, 1);
  },
  { embedded: "a real cluster does not forget its past at once" },
);

// kubernetes-client/javascript#956
scenario(
  "A released informer calls no handler, although another lease goes on",
  async (fixture) => {
    const pool = new InformerPool(fixture.client, { clock: fixture.clock });
    const seen: string[] = [];
    const lease = (who: string) => {
      const one = pool.acquire(Gadget);
      one.informer.addHandler(({ type }) => void seen.push(`${who} ${type}`));
      return one;
    };
    const leases = [];
    for (let view = 0; view < 5; view++) {
      const one = lease(`view ${view}`);
      await fixture.done(one.informer.synced);
      if (view < 4) await fixture.done(one.release());
      else leases.push(one);
    }
    await fixture.create("a");
    await fixture.until(() => seen.length > 0);
    await fixture.advance(MINUTE_MS);
    assert.deepEqual(seen, ["view 4 added"]);
    await fixture.done(leases[0]?.release() ?? Promise.resolve());
    await fixture.done(pool.stop());
    await fixture.change("a", { value: "second" });
    await fixture.advance(MINUTE_MS);
    assert.deepEqual(seen, ["view 4 added"]);
  },
);

/** Replica with a lock; `seen` has what it runs. */
function replica(
  fixture: OperatorFixture,
  identity: string,
  options: OperatorOptions = {},
): { readonly operator: Operator; readonly seen: string[] } {
  const seen: string[] = [];
  const operator = fixture.operator({
    leaderElection: { name: "lock", identity },
    ...options,
  });
  operator.register(Gadget, {
    reconcile({ spec }) {
      seen.push(spec.value);
      return patchStatus({ value: `${spec.value} by ${identity}` });
    },
  }, { namespaces: ["default"] });
  return { operator, seen };
}

// kubernetes-sigs/controller-runtime#3298
scenario(
  "A leader without a network says so, and leads and runs when it is back",
  async (fixture) => {
    const { operator, seen } = replica(fixture, "a");
    await fixture.start(operator);
    await fixture.until(() => operator.health().leading);
    fixture.faults.cutWatches();
    const away = fixture.faults.add({ effect: { reset: "request" } });
    await fixture.advance(10 * MINUTE_MS);
    const { leading, healthy } = operator.health();
    assert.deepEqual({ leading, healthy }, { leading: false, healthy: false });
    assert.ok(
      fixture.log.some(({ level, message }) =>
        /warn|error/.test(level) && /lea/i.test(message)
      ),
    );
    away.remove();
    await fixture.until(() => operator.health().leading, 2 * MINUTE_MS);
    await fixture.until(() => operator.health().healthy, 5 * MINUTE_MS);
    await fixture.create("x");
    await fixture.until(() => seen.includes("first"));
  },
);

// linkerd/linkerd2#12021, operator-framework/operator-sdk#2473
scenario(
  "Changes between two leaders are acted on by the next one",
  async (fixture) => {
    const a = replica(fixture, "a");
    await fixture.start(a.operator);
    await fixture.until(() => a.operator.health().leading);
    for (let at = 0; at < 20; at++) await fixture.create(`x${at}`);
    await fixture.until(() => a.seen.length >= 20);
    const b = replica(fixture, "b");
    await fixture.start(b.operator);
    // The leader no longer reaches its lock: nobody leads until that ends.
    fixture.faults.add({
      verb: ["update", "patch"],
      resource: "leases",
      count: 40,
      effect: { status: 503 },
    });
    await fixture.until(() => !a.operator.health().leading, 5 * MINUTE_MS);
    for (let at = 0; at < 20; at++) {
      await fixture.change(`x${at}`, { value: "second" });
    }
    await fixture.remove("x0");
    await fixture.until(
      () => a.operator.health().leading || b.operator.health().leading,
      10 * MINUTE_MS,
    );
    await fixture.until(async () => {
      const { items } = await fixture.client.list(Gadget, {
        namespace: "default",
      });
      return items.length === 19 &&
        items.every(({ status }) => /^second/.test(status?.value ?? ""));
    }, 5 * MINUTE_MS);
  },
);

// cilium/cilium#42920, kubernetes/kubernetes#23731
scenario(
  "A leader whose run hangs writes nothing after another one leads",
  async (fixture) => {
    const held = Promise.withResolvers<void>();
    const failures: unknown[] = [];
    const operator = fixture.operator({
      leaderElection: { name: "lock", identity: "a" },
    });
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        await held.promise;
        await ctx.apply(ConfigMap, { metadata: { name: "of-a" } })
          .catch((error: unknown) => failures.push(error));
        return setStatus({ value: "a" });
      },
    }, { namespaces: ["default"] });
    await fixture.start(operator);
    await fixture.create("x");
    await fixture.until(() => operator.health().controllers[0]?.running === 1);
    const b = replica(fixture, "b");
    await fixture.start(b.operator);
    // The lock goes to the other while the first replica is in a run.
    await fixture.client.patch(
      Lease,
      { namespace: "default", name: "lock" },
      { spec: { holderIdentity: "b", leaseTransitions: 7 } },
    );
    await fixture.until(() => b.operator.health().leading, 5 * MINUTE_MS);
    await fixture.until(() => b.seen.length > 0);
    held.resolve();
    await fixture.advance(MINUTE_MS);
    assert.equal(await findMap(fixture, "of-a"), undefined);
    assert.equal((await fixture.gadget("x"))?.status?.value, "first by b");
    assert.equal(failures.length, 1);
  },
);

const map = (suffix: string, namespace?: string) =>
  kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
    desired: ({ metadata, spec }) => ({
      metadata: {
        name: `${metadata.name}${suffix}`,
        ...namespace && { namespace },
      },
      data: { value: spec.value },
    }),
  });

// operator-framework/java-operator-sdk#1869
scenario(
  "A dependent that the garbage collector owns goes when its condition ends",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("top", map("-top"), {
        reconcileWhen: ({ primary }) => primary.spec.value === "first",
      })
      .add("below", map("-below"), { dependsOn: ["top"] });
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await findMap(fixture, "a-below") !== undefined
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      await findMap(fixture, "a-top") === undefined &&
      await findMap(fixture, "a-below") === undefined
    );
    await fixture.change("a", { value: "first" });
    await fixture.until(async () =>
      await findMap(fixture, "a-below") !== undefined
    );
  },
);

const Route = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Route",
  spec: z.object({ host: z.string() }),
});

// operator-framework/java-operator-sdk#2221
scenario(
  "A primary goes whose dependent was never active, as its kind is not there",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add(
        "route",
        kubernetesDependent<Gadget, ObjectOf<typeof Route>>(Route, {
          desired: ({ metadata: { name } }) => ({
            metadata: { name },
            spec: { host: name },
          }),
        }),
        { activeWhen: crdPresent(Route) },
      )
      .add("map", map("-map"), { dependsOn: ["route"] });
    const operator = fixture.operator();
    let cleanups = 0;
    operator.register(Gadget, {
      reconcile() {},
      cleanup: () => void cleanups++,
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.finalizers !== undefined
    );
    await fixture.advance(MINUTE_MS);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(cleanups, 1);
    assert.deepEqual(
      fixture.log.filter(({ level }) => level === "error"),
      [],
    );
  },
);

// operator-framework/java-operator-sdk#2188
scenario(
  "An object in another namespace than its primary is made without an owner",
  async (fixture) => {
    const operator = fixture.operator();
    const key = { namespace: "kube-system", name: "far" };
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        await ctx.apply(ConfigMap, { metadata: key });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, key) !== undefined
    );
    // An owner in another namespace is gone to the garbage collector.
    await fixture.advance(5 * MINUTE_MS);
    const { metadata } = await fixture.client.get(ConfigMap, key);
    assert.equal(metadata.ownerReferences, undefined);
    assert.ok(
      fixture.log.some(({ message }) => /across namespaces/.test(message)),
    );
  },
);

// nolar/kopf#1104
scenario(
  "An object goes whose run is rescheduled each second while its cleanup waits",
  async (fixture) => {
    let [runs, cleanups] = [0, 0];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {
        runs++;
        return noUpdate().rescheduleAfter("1s");
      },
      async cleanup(_gadget, { clock }) {
        cleanups++;
        await new Promise<void>((resolve) => clock.setTimer(resolve, 5_000));
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs > 3);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    const before = runs;
    await fixture.advance(MINUTE_MS);
    assert.deepEqual([runs, cleanups], [before, 1]);
  },
);

// strimzi/strimzi-kafka-operator#13079, multigres/multigres-operator#185
scenario(
  "A status with the time of each run causes no run of its own",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, { clock }) {
        runs++;
        return setStatus({
          value: new Date(clock.wallTime()).toISOString(),
        });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs > 0);
    await fixture.advance(30 * MINUTE_MS);
    assert.ok(runs <= 3, `${runs} runs in half an hour`);
  },
);

// kubernetes/kubernetes#140393, volcano-sh/volcano#3597
scenario(
  "Events that a server refuses for ten minutes hold no run up and do not pile up",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        ctx.events.warning("Tried", `Try ${runs++}`);
        return noUpdate().rescheduleAfter("1s");
      },
    });
    await fixture.start(operator);
    const refused = fixture.faults.add({
      verb: ["create", "update", "patch"],
      resource: "events",
      effect: { status: 503 },
    });
    const since = fixture.requests.length;
    await fixture.create("a");
    await fixture.advance(10 * MINUTE_MS);
    assert.ok(runs > 500, "events hold no run up");
    const sent =
      fixture.requests.slice(since).filter(({ resource }) =>
        resource === "events"
      ).length;
    // One look-up and one write for each, and no try after them.
    assert.ok(sent <= 2 * runs, `${sent} requests for ${runs} events`);
    refused.remove();
    await fixture.advance(MINUTE_MS);
    const { items } = await fixture.client.list(Event, {
      namespace: "default",
    });
    // Those of a minute, and not of ten before it; a real server takes its time.
    assert.ok(items.length < 100, `${items.length} events of a minute`);
  },
);

// An object of the same name
scenario(
  "An object that is made again while its old one is cleaned up has runs",
  async (fixture) => {
    const seen: string[] = [];
    const held = Promise.withResolvers<void>();
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: ({ metadata, spec }) =>
        void seen.push(`run ${metadata.uid} ${spec.value}`),
      async cleanup({ metadata }) {
        seen.push(`cleanup ${metadata.uid}`);
        if (seen.length < 4) await held.promise;
      },
    });
    await fixture.start(operator);
    const { metadata: { uid: old } } = await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    // Another client takes the finalizer away, and makes the object again.
    await fixture.client.patch(
      Gadget,
      { namespace: "default", name: "a" },
      { metadata: { finalizers: [] } },
    );
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    const { metadata: { uid } } = await fixture.create("a", {
      value: "second",
    });
    held.resolve();
    await fixture.until(() => seen.includes(`run ${uid} second`));
    await fixture.advance(MINUTE_MS);
    assert.deepEqual(seen.slice(0, 2), [`run ${old} first`, `cleanup ${old}`]);
    assert.ok((await fixture.gadget("a"))?.metadata.finalizers?.length === 1);
    assert.ok(!seen.includes(`cleanup ${uid}`));
  },
);

// The Lease is released while a run still goes on
scenario(
  "A stopped leader gives its lock away when its run has ended, not before",
  async (fixture) => {
    const held = Promise.withResolvers<void>();
    let isRunning = false;
    const operator = fixture.operator({
      leaderElection: { name: "lock", identity: "a" },
      shutdownGrace: "8s",
    });
    operator.register(Gadget, {
      async reconcile() {
        isRunning = true;
        await held.promise;
        isRunning = false;
      },
    }, { namespaces: ["default"] });
    await fixture.start(operator);
    await fixture.create("x");
    await fixture.until(() => isRunning);
    const b = replica(fixture, "b");
    await fixture.start(b.operator);
    const stopped = operator.stop();
    await fixture.advance(5_000);
    assert.equal(b.operator.health().leading, false);
    held.resolve();
    await fixture.done(stopped);
    await fixture.until(() => b.operator.health().leading, 5_000);
  },
);

// A namespace that terminates
scenario(
  "A namespace goes although runs in it are refused, without a hot loop",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        runs++;
        await ctx.create(ConfigMap, { metadata: { name: `part-${runs}` } });
        return noUpdate().rescheduleAfter("10s");
      },
      cleanup: () => undefined,
    }, { owns: [ConfigMap] });
    await fixture.client.create(Namespace, { metadata: { name: "going" } });
    await fixture.start(operator);
    await fixture.create("a", {}, { namespace: "going" });
    await fixture.until(() => runs > 2);
    const before = runs;
    await fixture.client.delete(Namespace, { name: "going" });
    await fixture.until(async () =>
      await fixture.client.find(Namespace, { name: "going" }) === undefined
    );
    await fixture.advance(10 * MINUTE_MS);
    assert.ok(runs - before < 20, `${runs - before} runs`);
    assert.equal(operator.health().controllers[0]?.failing, 0);
  },
  { embedded: "a namespace is made" },
);

// Objects with generated names that each trigger the next run
scenario(
  "Runs that make an object with a generated name each time are held",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        runs++;
        await ctx.create(ConfigMap, { metadata: { generateName: "part-" } });
      },
    }, { owns: [ConfigMap] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.advance(10_000);
    assert.ok(runs >= 10 && runs <= 20, `${runs} runs in ten seconds`);
    await fixture.advance(60 * MINUTE_MS);
    assert.ok(runs < 250, `${runs} runs in an hour`);
    assert.ok(
      fixture.log.some(({ message }) => /generated name/.test(message)),
    );
  },
  { embedded: "it counts runs by a virtual clock" },
);

// A part that others hold
scenario(
  "A part that another finalizer holds is made again when it has gone",
  async (fixture) => {
    const operator = fixture.operator();
    const key = { namespace: "default", name: "a-part" };
    operator.register(Gadget, {
      async reconcile({ metadata: { name } }, ctx) {
        await ctx.apply(ConfigMap, { metadata: { name: `${name}-part` } });
      },
    }, { owns: [ConfigMap] });
    await fixture.start(operator);
    await fixture.create("a");
    const part = () => fixture.client.find(ConfigMap, key);
    await fixture.until(async () => await part() !== undefined);
    const finalizers = (held: string[]) =>
      fixture.client.patch(ConfigMap, key, { metadata: { finalizers: held } });
    const { metadata: { uid } } = await finalizers(["sample.coracle.dev/held"]);
    await fixture.client.delete(ConfigMap, key);
    await fixture.advance(MINUTE_MS);
    const since = fixture.requests.length;
    await fixture.advance(10 * MINUTE_MS);
    const writes =
      fixture.requests.slice(since).filter(({ name, method }) =>
        name === "a-part" && method !== "GET"
      ).length;
    assert.ok(writes < 20, `${writes} writes in ten minutes`);
    await finalizers([]);
    await fixture.until(async () => {
      const found = await part();
      return found !== undefined && found.metadata.uid !== uid;
    });
  },
);
