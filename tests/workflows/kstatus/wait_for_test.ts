import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import type { Client } from "@coracle/operator/client";
import {
  ConfigMap,
  Deployment,
  Job,
  type KubernetesObject,
  type OwnerReference,
  Pod,
  ReplicaSet,
  StatefulSet,
} from "@coracle/operator/kinds";
import { WaitError, waitFor } from "@coracle/operator/workflows";
import type { WaitOptions } from "../../../workflows/kstatus/wait_for.ts";

const NAMESPACE = "default";
const LABELS = { app: "web" };
const POD_SPEC = { containers: [{ name: "main", image: "nginx" }] };
const TEMPLATE = { metadata: { labels: LABELS }, spec: POD_SPEC };

/** A server on a clock that moves when told, and what it was asked. */
class WaitFixture {
  readonly clock: VirtualClock;
  readonly server: ApiServer;
  readonly requests: AuditEvent[];

  constructor(
    clock: VirtualClock,
    server: ApiServer,
    requests: AuditEvent[],
  ) {
    this.clock = clock;
    this.server = server;
    this.requests = requests;
  }

  get client(): Client {
    return this.server.client;
  }

  /** Begins to wait; the outcome is a list of states, or what was thrown. */
  begin(
    objects: readonly KubernetesObject[],
    options: WaitOptions = {},
  ): { outcome: () => unknown } {
    let outcome: unknown;
    waitFor(this.client, objects, { clock: this.clock, ...options }).then(
      (waited) => outcome = waited.map(({ status }) => status.status),
      (error: unknown) => outcome = error,
    );
    return { outcome: () => outcome };
  }

  /** Moves time on until the wait is over. */
  async end(wait: { outcome: () => unknown }): Promise<unknown> {
    await this.clock.runUntil(() => wait.outcome() !== undefined, {
      limit: 600_000,
      idleTurns: 5_000,
    });
    return wait.outcome();
  }

  async job(name: string, spec: object = {}): Promise<Job> {
    return await this.client.create(Job, {
      metadata: { namespace: NAMESPACE, name },
      spec: {
        template: { spec: { ...POD_SPEC, restartPolicy: "Never" } },
        ...spec,
      },
    });
  }

  /** Creates a pod whose container crashes. */
  async crash(name: string, ownerReferences: OwnerReference[] = []) {
    const key = { namespace: NAMESPACE, name };
    await this.client.create(Pod, {
      metadata: { ...key, labels: LABELS, ownerReferences },
      spec: POD_SPEC,
    });
    await this.client.status.patch(Pod, key, {
      status: {
        phase: "Running",
        containerStatuses: [{
          name: "main",
          image: "nginx",
          imageID: "",
          ready: false,
          restartCount: 3,
          state: { waiting: { reason: "CrashLoopBackOff" } },
        }],
      },
    });
  }

  /** Reports of a Job. */
  async report(name: string, type?: string): Promise<void> {
    const time = "2026-01-01T00:00:00Z";
    const conditions = type === undefined ? [] : [
      ...(type === "Complete" ? ["SuccessCriteriaMet"] : ["FailureTarget"]),
      type,
    ].map((one) => ({
      type: one,
      status: "True" as const,
      reason: "Test",
      message: "as told",
      lastTransitionTime: time,
      lastProbeTime: time,
    }));
    await this.client.status.patch(Job, { namespace: NAMESPACE, name }, {
      status: {
        startTime: time,
        conditions,
        ...(type === "Complete" && { completionTime: time, succeeded: 1 }),
      },
    });
  }
}

function waitTest(
  title: string,
  play: (fixture: WaitFixture) => Promise<void>,
): void {
  test(title, { timeout: 60_000 }, async () => {
    await (warm ??= warmUp());
    const clock = new VirtualClock({ quietTurns: 8 });
    const requests: AuditEvent[] = [];
    const server = await ApiServer.start({
      port: false,
      clock,
      audit: (event) => requests.push(event),
    });
    try {
      await play(new WaitFixture(clock, server, requests));
    } finally {
      await server.stop();
    }
  });
}

let warm: Promise<void> | undefined;

/** Has everything loaded, which takes real time, before clocks are moved. */
async function warmUp(): Promise<void> {
  const server = await ApiServer.start({ port: false });
  const metadata = { namespace: NAMESPACE, name: "warm" };
  const made = await server.client.create(ConfigMap, { metadata });
  await waitFor(server.client, [made]);
  await server.stop();
}

function assertWaitError(
  error: unknown,
  expected: { readonly timedOut: boolean; readonly message: RegExp },
): void {
  assert(error instanceof WaitError, String(error));
  assert.equal(error.timedOut, expected.timedOut);
  assert.match(error.message, expected.message);
}

waitTest(
  "waitFor ends when all are there, by watching and not by asking again [K12]",
  async (fixture) => {
    const [a, b] = [await fixture.job("a"), await fixture.job("b")];
    const wait = fixture.begin([a, b]);
    await fixture.clock.settle();
    await fixture.report("a");
    await fixture.report("b", "Complete");
    await fixture.clock.advance(50_000);
    assert.equal(wait.outcome(), undefined, "a still runs");
    const asked = fixture.requests.length;
    await fixture.report("a", "Complete");
    assert.deepEqual(await fixture.end(wait), ["Current", "Current"]);
    const reads = fixture.requests.slice(asked).filter(({ verb }) =>
      verb === "get" || verb === "list"
    );
    assert.deepEqual(reads, []);
  },
);

waitTest(
  "waitFor ends when only those that failed are not there [K12]",
  async (fixture) => {
    const jobs = [await fixture.job("a"), await fixture.job("b")];
    const wait = fixture.begin(jobs);
    await fixture.clock.settle();
    await fixture.report("a", "Failed");
    await fixture.clock.advance(10_000);
    assert.equal(wait.outcome(), undefined, "b may still get there");
    await fixture.report("b", "Complete");
    assertWaitError(await fixture.end(wait), {
      timedOut: false,
      message:
        /^Cannot wait until all objects are Current: objects have failed: received Job\/default\/a status: 'Failed': Job Failed. as told$/,
    });
  },
);

waitTest(
  "waitFor with failFast ends at the first failure [K12]",
  async (fixture) => {
    const jobs = [await fixture.job("a"), await fixture.job("b")];
    const wait = fixture.begin(jobs, { failFast: true });
    await fixture.clock.settle();
    await fixture.report("a", "Failed");
    const error = await fixture.end(wait);
    assertWaitError(error, {
      timedOut: false,
      message: /Job\/default\/b status/,
    });
    assert(fixture.clock.now() < 1_000);
  },
);

waitTest(
  "waitFor names the missing objects when the time limit is exceeded [K12]",
  async (fixture) => {
    const metadata = { namespace: NAMESPACE, name: "there" };
    const there = await fixture.client.create(ConfigMap, { metadata });
    const missing = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace: NAMESPACE, name: "missing" },
    };
    const job = await fixture.job("slow");
    const start = fixture.clock.now();
    const error = await fixture.end(fixture.begin([there, missing, job]));
    assert.equal(fixture.clock.now() - start, 60_000);
    assertWaitError(error, {
      timedOut: true,
      message:
        /the time limit was exceeded: received ConfigMap\/default\/missing status: 'NotFound': Resource not found, Job\/default\/slow status: 'InProgress': Job/,
    });
    assert(!String(error).includes("there'"));
  },
);

waitTest(
  "waitFor takes a Job that cleans up after itself for done when it is gone [K12]",
  async (fixture) => {
    const job = await fixture.job("brief", { ttlSecondsAfterFinished: 0 });
    const wait = fixture.begin([job]);
    await fixture.clock.settle();
    await fixture.client.delete(Job, { namespace: NAMESPACE, name: "brief" }, {
      propagationPolicy: "Background",
    });
    assert.deepEqual(await fixture.end(wait), ["Current"]);
    const gone = fixture.begin([job], { desired: "NotFound" });
    assert.deepEqual(await fixture.end(gone), ["NotFound"]);
  },
);

waitTest(
  "waitFor does not take another Job for done when it is gone [K12]",
  async (fixture) => {
    const stop = new AbortController();
    const job = await fixture.job("kept");
    const wait = fixture.begin([job], { signal: stop.signal });
    await fixture.clock.settle();
    await fixture.client.delete(Job, { namespace: NAMESPACE, name: "kept" }, {
      propagationPolicy: "Background",
    });
    await fixture.clock.settle();
    const reason = new Error("stopped by the test");
    stop.abort(reason);
    assert.equal(await fixture.end(wait), reason);
  },
);

waitTest(
  "waitFor reads from the stored Job that it cleans up after itself [K12]",
  async (fixture) => {
    const key = { namespace: NAMESPACE, name: "brief" };
    await fixture.job(key.name, { ttlSecondsAfterFinished: 0 });
    const reference = { apiVersion: "batch/v1", kind: "Job", metadata: key };
    const wait = fixture.begin([reference]);
    await fixture.clock.settle();
    await fixture.client.delete(Job, key, { propagationPolicy: "Background" });
    assert.deepEqual(await fixture.end(wait), ["Current"]);
  },
);

waitTest(
  "waitFor gives the reason of the signal that ends it [K12]",
  async (fixture) => {
    const stop = new AbortController();
    const wait = fixture.begin([await fixture.job("a")], {
      signal: stop.signal,
    });
    await fixture.clock.settle();
    const reason = new Error("stopped by the test");
    stop.abort(reason);
    assert.equal(await fixture.end(wait), reason);
    await assert.rejects(
      waitFor(fixture.client, [await fixture.job("b")], {
        signal: stop.signal,
      }),
      reason,
    );
  },
);

waitTest("waitFor leaves no watch open [K12]", async (fixture) => {
  const wait = fixture.begin([await fixture.job("a"), await fixture.job("b")]);
  await fixture.clock.settle();
  await fixture.report("a", "Complete");
  await fixture.report("b", "Complete");
  await fixture.end(wait);
  const before = fixture.requests.length;
  await fixture.clock.advance(600_000);
  assert.equal(fixture.requests.slice(before).length, 0);
});

waitTest("waitFor waits until objects are gone, too [K12]", async (fixture) => {
  const metadata = {
    namespace: NAMESPACE,
    name: "held",
    finalizers: ["example.com/held"],
  };
  const held = await fixture.client.create(ConfigMap, { metadata });
  const wait = fixture.begin([held], { desired: "NotFound" });
  await fixture.client.delete(ConfigMap, metadata);
  await fixture.clock.advance(10_000);
  assert.equal(wait.outcome(), undefined);
  await fixture.client.patch(ConfigMap, metadata, {
    metadata: { finalizers: [] },
  });
  assert.deepEqual(await fixture.end(wait), ["NotFound"]);
});

waitTest(
  "waitFor waits for a kind that nobody serves yet, and says so in the end [K12]",
  async (fixture) => {
    const gadget = {
      apiVersion: "example.com/v1",
      kind: "Gadget",
      metadata: { namespace: NAMESPACE, name: "one" },
    };
    const error = await fixture.end(
      fixture.begin([gadget], { timeout: "10s" }),
    );
    assertWaitError(error, {
      timedOut: true,
      message:
        /Gadget\/default\/one status: 'NotFound': Resource not found; Cannot/,
    });
    const gone = fixture.begin([gadget], { desired: "NotFound" });
    assert.deepEqual(await fixture.end(gone), ["NotFound"]);
  },
);

waitTest(
  "waitFor tells every change of a state, and survives a broken watch [K12]",
  async (fixture) => {
    const told: string[] = [];
    const wait = fixture.begin([await fixture.job("a")], {
      onChange: ({ reference, status }) =>
        void told.push(`${reference.name} ${status.reason || status.status}`),
    });
    await fixture.clock.settle();
    await fixture.report("a");
    await fixture.clock.settle();
    assert(fixture.server.faults.cutWatches() > 0);
    await fixture.report("a", "Complete");
    assert.deepEqual(await fixture.end(wait), ["Current"]);
    assert.deepEqual(told, [
      "a JobNotStarted",
      "a JobInProgress",
      "a Current",
    ]);
  },
);

for (const kind of [ReplicaSet, StatefulSet]) {
  waitTest(
    `A ${kind.kind} in progress has failed once a pod of it has [K11]`,
    async (fixture) => {
      const key = { namespace: NAMESPACE, name: "web" };
      const owner = await fixture.client.create(kind as typeof StatefulSet, {
        metadata: key,
        spec: {
          replicas: 1,
          serviceName: "web",
          selector: { matchLabels: LABELS },
          template: TEMPLATE,
        },
      });
      const wait = fixture.begin([owner]);
      await fixture.clock.settle();
      const other = await fixture.client.create(ConfigMap, {
        metadata: { namespace: NAMESPACE, name: "other" },
      });
      const { uid = "" } = other.metadata;
      await fixture.crash("other-0", [
        { apiVersion: "v1", kind: "ConfigMap", name: "other", uid },
      ]);
      await fixture.clock.settle();
      assert.equal(wait.outcome(), undefined, "the pod of another owner");
      await fixture.crash("web-0");
      assertWaitError(await fixture.end(wait), {
        timedOut: false,
        message: /web status: 'Failed': 1 pods have failed$/,
      });
    },
  );
}

waitTest("A Deployment does not fail by a pod of it [K11]", async (fixture) => {
  const owner = await fixture.client.create(Deployment, {
    metadata: { namespace: NAMESPACE, name: "web" },
    spec: { selector: { matchLabels: LABELS }, template: TEMPLATE },
  });
  const wait = fixture.begin([owner], { timeout: "5s" });
  await fixture.clock.settle();
  const watched = fixture.requests.map(({ resource }) => resource);
  assert(!watched.includes("pods"));
  assertWaitError(await fixture.end(wait), {
    timedOut: true,
    message: /InProgress/,
  });
});

/** A pod that cannot be scheduled. */
async function heavyPod(
  { client }: WaitFixture,
  name = "heavy",
): Promise<Pod> {
  const key = { namespace: NAMESPACE, name };
  await client.create(Pod, {
    metadata: { ...key, labels: LABELS },
    spec: POD_SPEC,
  });
  return await client.status.patch(Pod, key, {
    status: {
      phase: "Pending",
      conditions: [{
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
      }],
    },
  });
}

waitTest(
  "waitFor has one timer for a pod in its grace period, and none in the end",
  async (fixture) => {
    const { client, clock } = fixture;
    const pod = await heavyPod(fixture);
    const before = clock.pendingTimers;
    const wait = fixture.begin([pod], { timeout: "5s" });
    await clock.advance(1_000);
    const during = clock.pendingTimers;
    for (const round of ["one", "two", "three"]) {
      await client.patch(Pod, pod.metadata, {
        metadata: { labels: { round } },
      });
      await clock.advance(100);
    }
    assert.equal(clock.pendingTimers, during);
    assertWaitError(await fixture.end(wait), {
      timedOut: true,
      message: /time limit/,
    });
    await clock.settle();
    assert.equal(clock.pendingTimers, before);
  },
);

waitTest(
  "A pod that cannot be scheduled has failed after 15 seconds, without an event [K11]",
  async (fixture) => {
    const pod = await heavyPod(fixture);
    const start = fixture.clock.now();
    const error = await fixture.end(fixture.begin([pod]));
    assertWaitError(error, {
      timedOut: false,
      message: /could not be scheduled/,
    });
    const elapsed = fixture.clock.now() - start;
    assert(elapsed >= 14_000 && elapsed <= 16_000, String(elapsed));
  },
);

waitTest(
  "A StatefulSet fails when the first of its pods has waited 15 seconds [K11]",
  async (fixture) => {
    const { client, clock } = fixture;
    const owner = await client.create(StatefulSet, {
      metadata: { namespace: NAMESPACE, name: "web" },
      spec: {
        replicas: 2,
        serviceName: "web",
        selector: { matchLabels: LABELS },
        template: TEMPLATE,
      },
    });
    const wait = fixture.begin([owner]);
    await heavyPod(fixture, "web-0");
    const start = clock.now();
    await clock.advance(10_000);
    await heavyPod(fixture, "web-1");
    assertWaitError(await fixture.end(wait), {
      timedOut: false,
      message: /web status: 'Failed': 1 pods have failed$/,
    });
    const elapsed = clock.now() - start;
    assert(elapsed >= 14_000 && elapsed <= 16_000, String(elapsed));
  },
);

waitTest(
  "waitFor that ends while a kind is looked up opens no watch afterwards",
  async ({ client, clock }) => {
    const found = Promise.withResolvers<void>();
    const paths: string[] = [];
    const slow = client.with([(next) => async (request) => {
      paths.push(request.path);
      await found.promise;
      return await next(request);
    }]);
    const stop = new AbortController();
    const metadata = { namespace: NAMESPACE, name: "a" };
    const wait = waitFor(
      slow,
      [{ apiVersion: "test.dev/v1", kind: "Late", metadata }],
      { clock, signal: stop.signal },
    );
    await clock.settle();
    assert.equal(paths.length, 1);
    stop.abort(new Error("enough"));
    await assert.rejects(wait, /enough/);
    found.resolve();
    await clock.settle();
    assert.deepEqual(paths, ["/apis/test.dev/v1"]);
    assert.equal(clock.pendingTimers, 0);
  },
);

waitTest(
  "waitFor() of a deletion goes on though the object has failed",
  async (fixture) => {
    await fixture.job("web");
    await fixture.report("web", "Failed");
    const job = await fixture.client.get(Job, {
      namespace: NAMESPACE,
      name: "web",
    });
    const wait = fixture.begin([job], { desired: "NotFound", failFast: true });
    await fixture.clock.advance(1_000);
    assert.equal(wait.outcome(), undefined);
    await fixture.client.delete(Job, job.metadata, {
      propagationPolicy: "Background",
    });
    assert.deepEqual(await fixture.end(wait), ["NotFound"]);
  },
);

test("waitFor asks for nothing if there is no object, or its signal has aborted", async () => {
  const client = {} as Client;
  assert.deepEqual(await waitFor(client, []), []);
  const map = { ...ConfigMap, metadata: { name: "a" }, apiVersion: "v1" };
  const signal = AbortSignal.abort(new Error("over"));
  await assert.rejects(waitFor(client, [map], { signal }), /^Error: over$/);
});

waitTest(
  "waitFor goes by the rule of its caller, also for a Job",
  async (fixture) => {
    const job = await fixture.job("own");
    const rules = new Map([[
      "batch/Job",
      () => ({ status: "Current", reason: "", message: "" } as const),
    ]]);
    const wait = fixture.begin([job], { rules });
    assert.deepEqual(await fixture.end(wait), ["Current"]);
  },
);

waitTest("waitFor ends with the error of its callback", async (fixture) => {
  const job = await fixture.job("noticed");
  const onChange = () => {
    throw new Error("as asked");
  };
  const outcome = await fixture.end(fixture.begin([job], { onChange }));
  assert.match(String(outcome), /^Error: as asked$/);
});
