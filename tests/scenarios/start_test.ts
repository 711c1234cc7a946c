import assert from "node:assert/strict";
import { z } from "zod";
import {
  Client,
  loadOperatorConfig,
  type Operator,
  type OperatorOptions,
  patchStatus,
  untyped,
} from "@coracle/operator/core";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { ConfigMap, Namespace, type PolicyRule } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { limitedClient } from "../support/limited_client.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const EVERYTHING: PolicyRule = {
  apiGroups: ["*"],
  resources: ["*"],
  verbs: ["get", "list", "watch", "create", "update", "patch", "delete"],
};
const GADGETS: PolicyRule = {
  apiGroups: ["sample.coracle.dev"],
  resources: ["gadgets", "gadgets/status"],
  verbs: ["get", "list", "watch", "patch"],
};
const MAPS: PolicyRule = {
  apiGroups: [""],
  resources: ["configmaps"],
  verbs: ["get", "list", "watch", "patch"],
};

/**
 * Operator that reports the objects it has seen, with ConfigMaps as secondaries.
 */
function reporting(
  fixture: OperatorFixture,
  options: OperatorOptions,
): Operator {
  const operator = fixture.operator(options);
  operator.register(Gadget, {
    reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
  }, { sources: [watch(ConfigMap)] });
  return operator;
}

async function reconciled(
  fixture: OperatorFixture,
  name: string,
): Promise<void> {
  await fixture.create(name);
  await fixture.until(
    async () => (await fixture.gadget(name))?.status?.value === "first",
    600_000,
  );
}

scenario(
  "A missing permission on the primary fails the start and is named [InformerRelatedBehaviorITS]",
  async (fixture) => {
    const operator = reporting(fixture, {
      client: (await limitedClient(fixture, [MAPS])).client,
    });
    await assert.rejects(
      fixture.start(operator),
      /Cannot watch sample\.coracle\.dev\/v1 Gadget: the right is missing.*ClusterRole.*apiGroups: \["sample\.coracle\.dev"\], resources: \["gadgets"\]/s,
    );
    assert.equal(operator.health().started, false);
    assert.equal(
      operator.health().controllers[0]?.informers.length,
      0,
      "what was started is stopped",
    );
  },
);

scenario(
  "A missing permission in one of two namespaces fails the start and is named [InformerRelatedBehaviorITS]",
  async (fixture) => {
    const { client } = await limitedClient(fixture, []);
    const operator = fixture.operator({ client });
    operator.register(Gadget, { reconcile() {} }, {
      namespaces: ["default", "other"],
    });
    await assert.rejects(
      fixture.start(operator),
      /in namespace default: .* a Role with/,
    );
  },
);

scenario(
  "A missing permission on a secondary fails the start and is named [InformerRelatedBehaviorITS]",
  async (fixture) => {
    const operator = reporting(fixture, {
      client: (await limitedClient(fixture, [GADGETS])).client,
    });
    const begin = fixture.clock.now();
    await assert.rejects(
      fixture.start(operator),
      /Cannot watch v1 ConfigMap: the right is missing.*a ClusterRole.*resources: \["configmaps"\].*forbidden/s,
    );
    assert.ok(fixture.clock.now() - begin < 5_000);
  },
);

scenario(
  "A field selector of a secondary that the server refuses fails the start",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      watches: [watch(ConfigMap, { fieldSelector: "data.color=red" })],
    });
    await assert.rejects(
      fixture.start(operator),
      /Cannot list ConfigMap.*data\.color/s,
    );
  },
);

scenario(
  "A waiting operator starts when its permissions are granted [InformerErrorHandlerStartIT] [InformerRelatedBehaviorITS]",
  async (fixture) => {
    for (const first of [[], [MAPS], [GADGETS]]) {
      const { client, grant } = await limitedClient(fixture, first);
      const operator = reporting(fixture, {
        client,
        startErrors: "wait",
        syncTimeout: "5s",
      });
      await fixture.start(operator);
      assert.equal(operator.health().started, true);
      assert.equal(operator.health().ready, false);
      assert.ok(
        fixture.log.some(({ message }) =>
          message.startsWith("A controller cannot start yet")
        ),
      );
      const warned = (text: string) =>
        fixture.log.findIndex(({ message, fields }) =>
          `${message} ${fields["error"]}`.includes(text)
        );
      assert.ok(
        warned("the right is missing, so give") <
          warned("A controller cannot start yet"),
        "the missing rule is logged at once",
      );
      if (first[0] === GADGETS) {
        const missing = /the right is missing.*resources: \["configmaps"\]/;
        await fixture.until(() => {
          const { sources } = operator.health().controllers[0]!;
          return missing.test(sources.get("v1 ConfigMap")?.message ?? "");
        });
      }
      await grant([EVERYTHING]);
      await reconciled(
        fixture,
        `gadget-${first.length}${first[0]?.resources?.[0] ?? ""}`,
      );
      assert.equal(operator.health().ready, true);
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "An operator works in one namespace until it has permissions in the other [InformerRelatedBehaviorITS]",
  async (fixture) => {
    await fixture.client.create(Namespace, { metadata: { name: "other" } });
    const { transport } = fixture;
    const { transport: refusing } = await limitedClient(fixture, []);
    let isRefused = true;
    const client = new Client({
      transport: {
        send: (request) =>
          (isRefused && request.path.includes("/namespaces/other/")
            ? refusing
            : transport).send(request),
        close: () => Promise.resolve(),
      },
    }, { clock: fixture.clock });
    const operator = fixture.operator({
      client,
      startErrors: "wait",
      syncTimeout: "5s",
    });
    const seen: string[] = [];
    const controller = operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(`${gadget.metadata.namespace}/${gadget.metadata.name}`);
      },
    }, { namespaces: ["default", "other"] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.client.create(Gadget, {
      metadata: { namespace: "other", name: "b" },
      spec: { value: "first" },
    });
    await fixture.advance(10_000);
    assert.deepEqual(seen, ["default/a"]);
    assert.equal(controller.health().informers[0]?.watches.length, 2);
    isRefused = false;
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen, ["default/a", "other/b"]);
  },
);

scenario(
  "Lost permissions do not stop an operator, and it recovers with them [InformerRelatedBehaviorITS]",
  async (fixture) => {
    const { client, grant } = await limitedClient(fixture, [EVERYTHING]);
    const operator = reporting(fixture, { client });
    await fixture.start(operator);
    await reconciled(fixture, "before");
    await grant([]);
    fixture.faults.expireWatches();
    await fixture.advance(120_000);
    assert.equal(operator.health().started, true);
    assert.equal(operator.health().healthy, false, "and it shows");
    await grant([EVERYTHING]);
    await reconciled(fixture, "after");
    await fixture.until(() => operator.health().healthy);
  },
);

const Late = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Late",
  plural: "lates",
  spec: z.object({ value: z.string() }),
  status: z.object({ value: z.string() }).partial(),
});

scenario(
  "An unknown kind fails the start with advice",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Late, { reconcile() {} });
    await assert.rejects(
      fixture.start(operator),
      /does not serve it.*CustomResourceDefinition.*install: true/s,
    );
    assert.deepEqual(
      fixture.log.filter(({ message }) => /Operator st/.test(message)),
      [],
      "what has not started does not say that it stopped",
    );
  },
);

scenario(
  "A slow first sync is logged every five seconds with the objects so far",
  async (fixture) => {
    await fixture.create("a");
    fixture.faults.add({
      verb: ["list", "watch"],
      resource: "configmaps",
      effect: { delay: 12_000 },
      count: 2,
    });
    await fixture.start(reporting(fixture, {}));
    const lines = fixture.log.filter(({ message }) =>
      message === "Waiting for the caches to sync"
    );
    assert.equal(lines.length, 2);
    const { synced, waitingFor } = lines[1]?.fields ?? {};
    assert.equal(synced, "1 of 2");
    assert.match(String(waitingFor), /^v1 ConfigMap: 0 of \d+ objects, 0 MB$/);
  },
  { embedded: "it delays an answer" },
);

scenario(
  "A waiting operator starts when its definition is installed",
  async (fixture) => {
    const operator = fixture.operator({
      startErrors: "wait",
      syncTimeout: "5s",
    });
    operator.register(Late, {
      reconcile: (late) => patchStatus({ value: late.spec.value }),
    });
    await fixture.start(operator);
    await fixture.advance(60_000);
    await fixture.install(Late);
    await fixture.client.create(Late, {
      metadata: { namespace: "default", name: "a" },
      spec: { value: "here" },
    });
    const key = { namespace: "default", name: "a" };
    await fixture.until(async () =>
      (await fixture.client.get(Late, key)).status?.value === "here"
    );
  },
);

for (const options of [{}, { leaderElection: { name: "lock" } }]) {
  scenario(
    `A start without a server ends at syncTimeout, with ${
      Object.keys(options)[0] ?? "one replica"
    }`,
    async (fixture) => {
      const transport = {
        send: () => Promise.reject(new Error("connection refused")),
        close: () => Promise.resolve(),
      };
      const { clock } = fixture;
      const client = new Client({ transport }, { clock });
      const operator = fixture.operator({
        client,
        syncTimeout: "6s",
        ...options,
      });
      operator.register(Gadget, { reconcile() {} });
      const before = clock.now();
      await assert.rejects(
        fixture.start(operator),
        /Cannot start .*(6000 ms: received no kind that the server serves|received no answer from the server within 6000 ms)/,
      );
      assert.equal(clock.now() - before, 6_000);
      assert.equal(
        fixture.log.some(({ message }) => message.includes("caches")),
        false,
      );
      await client.close();
    },
    { embedded: "it has no server" },
  );
}

scenario(
  "A kind with the wrong scope fails the start with the reason",
  async (fixture) => {
    const operator = fixture.operator();
    const Wrong = { ...Gadget, scope: "Cluster" } as const;
    operator.register(Wrong, { reconcile() {} });
    await assert.rejects(
      fixture.start(operator),
      /another scope.*received Cluster for Namespaced/s,
    );
  },
);

scenario(
  "An operator installs the definitions of its kinds on request",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Late, { reconcile() {} }, { install: true });
    await fixture.start(operator);
    assert.deepEqual((await fixture.client.list(Late)).items, []);
    const plain = fixture.operator();
    assert.throws(
      () => plain.register(ConfigMap, { reconcile() {} }, { install: true }),
      /only a kind of defineKind/,
    );
  },
);

scenario(
  "An operator warns when it replaces a definition of another author",
  async (fixture) => {
    const { group, version, kind, plural } = Late;
    const spec = z.object({ other: z.string() });
    const other = defineKind({ group, version, kind, plural, spec });
    const options = { fieldManager: "kubectl" };
    await fixture.done(installCrd(fixture.client, other, options));
    const operator = fixture.operator();
    operator.register(Late, { reconcile() {} }, { install: true });
    await fixture.start(operator);
    const warned = fixture.log.filter(({ level }) => level === "warn");
    assert.deepEqual(warned.map(({ message }) => message), [
      "Replacing a CustomResourceDefinition of another author",
    ]);
  },
);

scenario(
  "An operator installs the definitions of all its kinds without starting",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Late, { reconcile() {} });
    operator.register(ConfigMap, { reconcile() {} });
    await fixture.done(operator.install());
    assert.deepEqual((await fixture.client.list(Late)).items, []);
    assert.equal(operator.health().controllers[0]?.primaries, 0);
  },
);

scenario(
  "A waiting operator keeps looking up a kind without a plural",
  async (fixture) => {
    const { group, version, kind } = Late;
    const operator = fixture.operator({
      startErrors: "wait",
      syncTimeout: "5s",
    });
    const seen: string[] = [];
    operator.register(untyped({ group, version, kind }), {
      reconcile(late) {
        seen.push(late.metadata.name);
      },
    });
    await fixture.start(operator);
    await fixture.advance(60_000);
    assert.ok(
      fixture.log.some(({ message }) =>
        message === "A controller cannot start, retrying"
      ),
    );
    await fixture.install(Late);
    await fixture.client.create(Late, {
      metadata: { namespace: "default", name: "a" },
      spec: { value: "here" },
    });
    await fixture.until(() => seen.length === 1);
  },
);

scenario(
  "A later controller that cannot start is reported, and others continue",
  async (fixture) => {
    const operator = fixture.operator();
    const seen: string[] = [];
    operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(gadget.metadata.name);
      },
    });
    await fixture.start(operator);
    operator.register(Late, { reconcile() {} });
    const failures = () =>
      fixture.log.filter(({ message }) =>
        message === "Cannot start a controller"
      );
    await fixture.until(() => failures().length === 1);
    assert.equal(failures()[0]?.fields["controller"], "late");
    assert.match(String(failures()[0]?.fields["error"]), /does not serve it/);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
  },
);

scenario(
  "Each namespace of several watches of a kind is checked before the start",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      sources: ["closed", "default"].map((namespace) =>
        watch<Gadget, ConfigMap>(ConfigMap, {
          name: namespace,
          namespaces: [namespace],
        })
      ),
    });
    fixture.faults.add({
      verb: ["list", "watch"],
      resource: "configmaps",
      namespace: "closed",
      effect: { status: 403 },
    });
    await assert.rejects(
      fixture.start(operator),
      /Cannot watch v1 ConfigMap in namespace closed: the right is missing/,
    );
  },
);

scenario(
  "A controller can be added to and removed from a running operator",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} });
    await fixture.start(operator);
    await fixture.create("a");
    const seen: string[] = [];
    operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(gadget.spec.value);
      },
    }, { name: "late" });
    await fixture.until(() => seen.length === 1);
    await fixture.done(operator.unregister("late"));
    await fixture.change("a", { value: "second" });
    await fixture.advance(5_000);
    assert.deepEqual(seen, ["first"]);
    assert.equal(operator.health().controllers.length, 1);
  },
);

scenario(
  "Concurrency and retries of the configuration take effect [ConfigLoaderIT]",
  async (fixture) => {
    const config = await loadOperatorConfig({
      environment: {
        CORACLE_CONTROLLER_GADGET_CONCURRENCY: "2",
        CORACLE_CONTROLLER_GADGET_RETRY_MAX_ATTEMPTS: "1",
        CORACLE_CONTROLLER_GADGET_RETRY_INITIAL: "1s",
        CORACLE_OPERATOR_SHUTDOWN_GRACE: "1s",
      },
    });
    const operator = fixture.operator({ config, shutdownGrace: "1h" });
    let most = 0;
    let running = 0;
    const attempts: number[] = [];
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 10)
        );
        running--;
        if (gadget.metadata.name !== "gadget-0") return;
        attempts.push(ctx.retry.attempt);
        throw new Error("Never");
      },
    }, { concurrency: 50, retry: { maxAttempts: 9, jitter: 0 } });
    await fixture.start(operator);
    for (let index = 0; index < 10; index++) {
      await fixture.create(`gadget-${index}`);
    }
    await fixture.advance(60_000);
    assert.equal(most, 2);
    assert.deepEqual(attempts, [0, 1]);
    const wrong = fixture.operator({
      config: await loadOperatorConfig({
        environment: { CORACLE_CONTROLLER_GADGT_TIMEOUT: "1s" },
      }),
    });
    wrong.register(Gadget, { reconcile() {} });
    await assert.rejects(
      fixture.start(wrong),
      /CORACLE_CONTROLLER_GADGT_TIMEOUT/,
    );
  },
);

scenario(
  "A waiting operator stops the sources of an attempt before it starts them again",
  async (fixture) => {
    const calls: string[] = [];
    let fails = 2;
    const operator = fixture.operator({
      startErrors: "wait",
      syncTimeout: "5s",
    });
    operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
    }, {
      sources: [{
        name: "good",
        start: () => Promise.resolve(void calls.push("start")),
        stop: () => Promise.resolve(void calls.push("stop")),
      }, {
        name: "bad",
        start: () =>
          fails-- > 0
            ? Promise.reject(new Error("not yet"))
            : Promise.resolve(),
        stop: () => Promise.resolve(),
      }],
    });
    await fixture.start(operator);
    await reconciled(fixture, "a");
    await fixture.done(operator.stop());
    assert.deepEqual(calls, [
      "start",
      "stop",
      "start",
      "stop",
      "start",
      "stop",
    ]);
  },
);
