/**
 * Callbacks of users in workflows that throw, reject or hang: the error names
 * the callback, no rejection ends the process, and what was not asked goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { type Logger, noMetrics } from "@coracle/operator/client";
import type { Context, EventSource } from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import {
  Canary,
  externalBulkDependent,
  externalDependent,
  jittered,
  kubernetesDependent,
  LifecycleMetrics,
  type NodeOptions,
  readOnlyDependent,
  Stalled,
  statusOf,
  type SummarizedDefinition,
  waitFor,
  WebhookNotifier,
  Workflow,
  WorkflowError,
} from "@coracle/operator/workflows";
import { Gadget, scenario } from "../support/operator_fixture.ts";
import { conditionText, releaseScenario } from "../support/release_fixture.ts";
import type { Release } from "../support/release_kind.ts";
import { type EngineDefinition, PhasedWorld } from "./phases/phased_world.ts";

/** Function that a user made async although it is declared otherwise. */
// deno-lint-ignore require-await -- that it is async is the point
const promised = async (): Promise<never> => {
  throw new Error("As asked");
};
const misused = promised as () => never;
const throwing = (): never => {
  throw new Error("As asked");
};

/** What is said of the async callback of a name. */
function misuse(name: string): RegExp {
  const escaped = name.replaceAll(/[().]/g, "\\$&");
  return new RegExp(`the result of ${escaped}: the function must not be async`);
}

const primary: KubernetesObject = { metadata: { name: "x", uid: "1" } };
const found = { id: "1" };
const ctx = {
  attributes: new Map(),
  signal: new AbortController().signal,
  secondaries: () => Promise.resolve([found]),
} as unknown as Context<KubernetesObject>;
const source = {
  name: "outside",
  start: () => Promise.resolve(),
  stop: () => Promise.resolve(),
} as EventSource<KubernetesObject, typeof found>;
const options = { source, desired: () => found, update: promised };
const store = { read: () => new Map(), write: promised };

for (
  const [name, call] of [
    [
      "select()",
      () =>
        externalDependent({ ...options, select: misused }).read(primary, ctx),
    ],
    [
      "matches()",
      () =>
        externalDependent({ ...options, matches: misused })
          .reconcile(primary, ctx),
    ],
    [
      "state.id()",
      () =>
        externalDependent({ ...options, state: { id: misused, store } })
          .read(primary, ctx),
    ],
    [
      "key()",
      () => externalBulkDependent({ source, key: misused }).read(primary, ctx),
    ],
    [
      "key()",
      () => readOnlyDependent(ConfigMap, { key: misused }).read(primary, ctx),
    ],
    [
      "key()",
      () =>
        kubernetesDependent(ConfigMap, { desired: promised, key: misused })
          .read(primary, ctx),
    ],
    [
      "a rule of statuses",
      () =>
        statusOf({ kind: "X" } as never, { rules: new Map([["/X", misused]]) }),
    ],
    ["random()", () => jittered("1m", { random: misused })],
  ] as readonly (readonly [string, () => unknown])[]
) {
  test(`An error names ${name}, which must not be async`, async () => {
    await assert.rejects(async () => await call(), { message: misuse(name) });
  });
}

for (const name of ["reconcileWhen", "readyWhen", "skipWhen", "activeWhen"]) {
  for (
    const [what, condition] of [["throws", throwing], [
      "rejects",
      promised,
    ]] as const
  ) {
    test(`A node fails alone when its ${name} ${what}`, async () => {
      const when = { [name]: condition } as NodeOptions<
        KubernetesObject,
        string
      >;
      const reconciled: string[] = [];
      const dependent = (node: string) => ({
        read: () => node,
        reconcile() {
          reconciled.push(node);
          return Promise.resolve(
            { operation: "none", resource: node } as const,
          );
        },
      });
      const flow = new Workflow()
        .add("broken", dependent("broken"), when)
        .add("other", dependent("other"));
      const failure = await flow.reconcile(primary, ctx).catch((error) =>
        error
      );
      assert.ok(failure instanceof WorkflowError);
      assert.match(failure.message, /broken.*As asked/s);
      assert.deepEqual(failure.result.inState("failed"), ["broken"]);
      assert.ok(reconciled.includes("other"));
    });
  }
}

test("A node whose deletedWhen rejects keeps what it depends on", async () => {
  const deleted: string[] = [];
  const dependent = (node: string) => ({
    read: () => node,
    delete() {
      deleted.push(node);
      return Promise.resolve();
    },
  });
  const flow = new Workflow()
    .add("base", dependent("base"))
    .add("top", dependent("top"), {
      dependsOn: ["base"],
      deletedWhen: promised,
    });
  await assert.rejects(flow.cleanup(primary, ctx), WorkflowError);
  assert.deepEqual(deleted, ["top"]);
});

scenario(
  "A condition that hangs holds up its object alone, and is reported",
  async (fixture) => {
    const ready = new Set<string>();
    const flow = new Workflow<Gadget>().add("slow", { read: () => "it" }, {
      readyWhen: ({ primary: { metadata } }) =>
        metadata.name === "stuck" ? new Promise<never>(() => {}) : true,
    });
    const operator = fixture.operator({ shutdownGrace: "1s" });
    const controller = operator.register(Gadget, {
      reconcile: ({ metadata }) => void ready.add(metadata.name),
    }, { workflow: flow, timeout: "30s" });
    await fixture.start(operator);
    await fixture.create("stuck");
    await fixture.create("fine");
    await fixture.until(() => ready.has("fine"));
    await fixture.advance(60_000);
    assert.ok(!ready.has("stuck"));
    assert.equal(controller.health().overdue, 1);
  },
);

/** Engines whose definition has an async callback; it is called by a pass. */
for (
  const [name, definition] of [
    ["diff()", { diff: misused }],
    ["stable()", { stable: misused }],
    ["failed()", { failed: misused }],
    ["validate()", { validate: misused }],
    ["deferChange()", { deferChange: misused }],
    ["suspended()", { suspended: misused }],
    ["rollback()", { rollback: misused }],
  ] as readonly (readonly [string, EngineDefinition])[]
) {
  test(`A phased reconciler names an async ${name}, and deploys nothing`, async () => {
    const before = await PhasedWorld.stable();
    const world = new PhasedWorld({ image: "a", replicas: 1 }, definition);
    world.stored = structuredClone(before.stored);
    world.engine = structuredClone(before.engine);
    // Whether to go back is only asked while the spec stays.
    if (name !== "rollback()") world.edit({ image: "b" });
    await assert.rejects(world.pass(), { message: misuse(name) });
    assert.ok(!world.actions.some((action) => action.startsWith("start")));
  });
}

test("An async convert() of a phased reconciler is named", async () => {
  const before = await PhasedWorld.stable();
  const world = new PhasedWorld({ image: "a" }, { convert: misused });
  world.stored = structuredClone(before.stored);
  world.stored.status!.rollout!.target = {
    ...world.stored.status!.rollout!.target!,
    version: "v0",
  };
  await assert.rejects(world.pass(), { message: misuse("convert()") });
});

for (
  const [what, callback] of [["throw", throwing], ["reject", misused]] as const
) {
  test(`Listeners and metrics of a rollout that ${what} do not stop it`, async () => {
    const metric = {
      add: callback,
      set: callback,
      observe: callback,
      remove: callback,
    };
    const world = await PhasedWorld.stable({
      onStatus: callback,
      onEvent: callback,
      metrics: {
        ...noMetrics,
        gauge: () => metric,
        histogram: () => metric,
      },
    });
    assert.equal(world.stored.status?.lifecycle, "Stable");
    const alone = new LifecycleMetrics(
      { ...noMetrics, gauge: () => metric, histogram: () => metric },
      { kind: "Engine" },
    );
    alone.update({ metadata: { name: "a", uid: "1" }, spec: {} });
    alone.forget({ metadata: { name: "a", uid: "1" }, spec: {} });
  });
}

test("An async touch() of a canary is named, and nothing is patched", async () => {
  let patches = 0;
  let now = 0;
  const canary = new Canary(Gadget, {
    client: {
      patch: () => {
        patches++;
        return Promise.resolve({ metadata: { generation: 2 } } as never);
      },
    },
    touch: misused,
  });
  const { reconcile } = canary.guard({ reconcile() {}, cleanup() {} });
  const object = {
    metadata: {
      name: "a",
      uid: "1",
      generation: 1,
      labels: { "coracle.dev/canary": "true" },
    },
    spec: { value: "x" },
  };
  const operators = {
    key: { name: "a" },
    primaries: new Map([["a", object]]),
    clock: { now: () => now },
  } as never;
  await reconcile(object, operators);
  now = 60_000;
  await assert.rejects(async () => await reconcile(object, operators), {
    message: misuse("touch()"),
  });
  assert.equal(patches, 0);
  assert.ok(canary.healthy);
  now = 180_001;
  assert.ok(!canary.healthy, "the operator's clock is that of the canary");
});

for (
  const [what, rule] of [["throws", throwing], ["is async", misused]] as const
) {
  test(`A rule that ${what} ends a wait at once`, async () => {
    const server = await ApiServer.start({ port: false });
    try {
      const metadata = { namespace: "default", name: "a" };
      const made = await server.client.create(ConfigMap, { metadata });
      const rules = new Map([["/ConfigMap", rule as never]]);
      await assert.rejects(
        waitFor(server.client, [made], { rules }),
        /As asked|must not be async/,
      );
    } finally {
      await server.stop();
    }
  });
}

test("A logger that throws loses no further notification", async () => {
  const posted: string[] = [];
  const logger: Logger = {
    debug: throwing,
    info: throwing,
    warn: throwing,
    error: throwing,
    with: () => logger,
  };
  const notifier = new WebhookNotifier({
    url: "https://notify.example.com/",
    controller: "mirror",
    log: logger,
    fetch: (_url, init) => {
      posted.push(String(init?.body));
      return Promise.resolve(new Response(null, { status: 400 }));
    },
  });
  const notice = { severity: "info", reason: "Done", message: "" } as const;
  for (let count = 1; count <= 2; count++) {
    notifier.notify(primary, notice);
    await notifier.flush();
    assert.equal(posted.length, count);
  }
});

/** How a release ends whose definition has a callback that fails. */
function endsWith(
  what: string,
  {
    definition,
    fails = false,
    ready,
    warning,
  }: {
    readonly definition: Partial<SummarizedDefinition<Release>>;
    readonly fails?: boolean;
    readonly ready: string;
    readonly warning: string;
  },
): void {
  releaseScenario(what, async (release) => {
    let runs = 0;
    await release.play([() => {
      runs++;
      if (fails) throw new Stalled("Bad", "it is bad");
    }], definition);
    assert.equal(conditionText(await release.read(), "Ready"), ready);
    assert.equal(runs, 1, "the run does not fail");
    assert.ok(
      release.fixture.log.some(({ message }) => message === warning),
      JSON.stringify(release.fixture.log),
    );
  });
}

/** A revision that each call finds changed. */
let revisions = 0;
const anew = () => String(revisions++);

const WELL = "True Succeeded: The object is in its desired state";

for (
  const [what, callback] of [["throws", throwing], [
    "is async",
    misused,
  ]] as const
) {
  endsWith(`A notifier that ${what} is logged after a success`, {
    definition: {
      notifier: { notify: callback },
      notification: { revision: anew },
    },
    ready: WELL,
    warning: "A notifier failed",
  });
  endsWith(`A notifier that ${what} is logged after a failure`, {
    definition: { notifier: { notify: callback } },
    fails: true,
    ready: "False Bad: it is bad",
    warning: "A notifier failed",
  });
  endsWith(`A revision() that ${what} is logged, and the run succeeds`, {
    definition: { notification: { revision: callback } },
    ready: WELL,
    warning: "Cannot report the end of a run",
  });
  endsWith(`A notification's message() that ${what} is logged`, {
    definition: {
      notification: { revision: anew, message: callback },
    },
    ready: WELL,
    warning: "Cannot report the end of a run",
  });
  endsWith(`A processor that ${what} is logged, and the run succeeds`, {
    definition: { processors: [callback] },
    ready: WELL,
    warning: "A result processor threw an error",
  });
}

for (
  const [what, schedule] of [["throws", throwing], [
    "is async",
    misused,
  ]] as const
) {
  releaseScenario(
    `A schedule() that ${what} stalls the object, and is not repeated`,
    async (release) => {
      await release.play([() => {}], { schedule });
      const stalled = conditionText(await release.read(), "Stalled");
      assert.match(stalled, /^True InvalidSchedule: .*(As asked|schedule\(\))/);
    },
  );
}

releaseScenario(
  "An async suspended() is named by the failed run",
  async (release) => {
    await release.play([() => {}], { suspended: misused });
    assert.ok(
      release.fixture.log.some(({ fields }) =>
        misuse("suspended()").test(String(fields?.["error"]))
      ),
    );
  },
);
