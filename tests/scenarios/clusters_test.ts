/**
 * The option `clusters`: objects of several clusters that join and leave while an
 * operator runs.
 */
import assert from "node:assert/strict";
import { TestCluster } from "@coracle/dev";
import {
  type Client,
  type ControllerHandle,
  type ControllerOptions,
  MetricsRegistry,
  type Operator,
  type Reconciler,
  type Transport,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { type Cluster, watch } from "@coracle/operator/sources";
import { ClusterList } from "../support/cluster_list.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Clusters of a test, besides that of the operator. */
interface Members extends AsyncDisposable {
  readonly clients: Readonly<Record<string, Client>>;
  /** Clusters of a set, by their names. */
  of(...names: readonly string[]): readonly Cluster[];
}

/** Starts clusters with the kind Gadget. */
async function members(
  fixture: OperatorFixture,
  ...names: readonly string[]
): Promise<Members> {
  const { clock } = fixture;
  const byName = new Map<string, TestCluster>();
  for (const name of names) {
    const cluster = await TestCluster.start({
      clock,
      cluster: "embedded",
      kinds: [Gadget],
      namespace: "default",
      server: { seed: 1 },
    });
    byName.set(name, cluster);
  }
  return {
    clients: Object.fromEntries(
      Array.from(byName, ([name, { client }]) => [name, client]),
    ),
    of: (...names) =>
      names.map((name) => ({
        name,
        target: { transport: byName.get(name)!.transport },
      })),
    async [Symbol.asyncDispose]() {
      for (const [, cluster] of byName) await cluster.stop();
    },
  };
}

/** Defines a test whose clusters, also that of the operator, are embedded servers. */
const clusterScenario: typeof scenario = (title, play) =>
  scenario(title, play, { embedded: "all its clusters are embedded" });

const create = (client: Client | undefined, name: string, value = "first") =>
  client!.create(Gadget, {
    metadata: { namespace: "default", name },
    spec: { value },
  });

const gadget = (client: Client | undefined, name: string) =>
  client!.get(Gadget, { namespace: "default", name });

/** Runs of gadgets, such as `east default/web first`. */
function recorded(
  operator: Operator,
  options: ControllerOptions<Gadget>,
  reconciler: Partial<Reconciler<Gadget>> = {},
): { readonly runs: string[]; readonly controller: ControllerHandle<Gadget> } {
  const runs: string[] = [];
  const controller = operator.register(Gadget, {
    reconcile(gadget, ctx) {
      const { namespace, name } = ctx.key;
      runs.push(`${ctx.cluster} ${namespace}/${name} ${gadget.spec.value}`);
    },
    ...reconciler,
  }, options);
  return { runs, controller };
}

const statuses = (controller: ControllerHandle<Gadget>) =>
  controller.health().clusters?.map(({ name, ready }) => `${name} ${ready}`);

/** Transport of a cluster that is down, or never answers. */
const dead: Transport = {
  send: () => Promise.reject(new Error("Cannot connect: nobody listens")),
  close: () => Promise.resolve(),
};
const hanging: Transport = {
  send: ({ signal }) =>
    new Promise((_, reject) =>
      signal?.addEventListener("abort", () => reject(signal.reason))
    ),
  close: () => Promise.resolve(),
};

clusterScenario(
  "Objects of equal names in two clusters run and write in their own",
  async (fixture) => {
    await using others = await members(fixture, "east", "west");
    const { east, west } = others.clients;
    await create(east, "web", "e");
    await create(west, "web", "w");
    await create(fixture.client, "web", "home");
    const operator = fixture.operator();
    const runs: string[] = [];
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs.push(`${ctx.cluster} ${ctx.key.name}`);
        await ctx.apply(ConfigMap, {
          metadata: { name: "copy" },
          data: { value: gadget.spec.value, cluster: ctx.cluster ?? "" },
        });
        await ctx.client.patch(Gadget, ctx.key, {
          metadata: { labels: { seen: ctx.cluster ?? "" } },
        });
      },
    }, { clusters: others.of("east", "west"), owns: [ConfigMap] });
    await fixture.start(operator);
    await fixture.until(() => runs.length >= 2);
    await fixture.settle();
    assert.deepEqual([...new Set(runs)].sort(), ["east web", "west web"]);
    for (
      const [name, client, value] of [["east", east, "e"], [
        "west",
        west,
        "w",
      ]] as const
    ) {
      const copy = await client!.get(ConfigMap, {
        namespace: "default",
        name: "copy",
      });
      assert.deepEqual(copy.data, { value, cluster: name });
      assert.deepEqual((await gadget(client, "web")).metadata.labels, {
        seen: name,
      });
    }
    assert.equal(
      await fixture.client.find(ConfigMap, {
        namespace: "default",
        name: "copy",
      }),
      undefined,
    );
    // A change of an owned object causes a run in its own cluster.
    runs.length = 0;
    await east!.delete(ConfigMap, { namespace: "default", name: "copy" });
    await fixture.until(() => runs.length > 0);
    assert.deepEqual([...new Set(runs)], ["east web"]);
  },
);

clusterScenario(
  "Clusters that join, leave and join again run what they have",
  async (fixture) => {
    await using others = await members(fixture, "east", "west");
    const { east, west } = others.clients;
    await create(east, "web");
    await create(west, "api");
    const list = new ClusterList(others.of("east"));
    const operator = fixture.operator();
    const { runs, controller } = recorded(operator, { clusters: list.source });
    await fixture.start(operator);
    await fixture.until(() => runs.length === 1);
    assert.deepEqual(statuses(controller), ["east true"]);
    list.set(others.of("east", "west"));
    await fixture.until(() => runs.length === 2);
    assert.deepEqual(runs, [
      "east default/web first",
      "west default/api first",
    ]);
    list.set(others.of("west"));
    await fixture.until(() => controller.health().clusters?.length === 1);
    await create(east, "late");
    await create(west, "late");
    await fixture.until(() => runs.length === 3);
    await fixture.settle();
    assert.deepEqual(runs.slice(2), ["west default/late first"]);
    list.set(others.of("east", "west"));
    await fixture.until(() => runs.length === 5);
    assert.deepEqual(runs.slice(3).sort(), [
      "east default/late first",
      "east default/web first",
    ]);
    assert.equal(controller.health().primaries, 4);
  },
);

clusterScenario(
  "A cluster that joins again waits for runs of its last membership",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    const list = new ClusterList(others.of("east"));
    const operator = fixture.operator({ shutdownGrace: "1s" });
    let running = 0;
    let most = 0;
    let begun = 0;
    const ends: (() => void)[] = [];
    const { controller } = recorded(operator, { clusters: list.source }, {
      async reconcile() {
        begun++;
        most = Math.max(most, ++running);
        // Ignores its signal.
        await new Promise<void>((resolve) => ends.push(resolve));
        running--;
      },
    });
    await fixture.start(operator);
    await fixture.until(() => begun === 1);
    list.set([]);
    await fixture.until(() =>
      fixture.log.some(({ message }) => message === "A cluster has left")
    );
    list.set(others.of("east"));
    await fixture.advance(60_000);
    assert.deepEqual([begun, statuses(controller)], [1, ["east false"]]);
    ends[0]?.();
    await fixture.until(() => begun === 2);
    assert.equal(most, 1);
    ends[1]?.();
  },
);

clusterScenario(
  "A cluster that left during a run is forgotten when that has ended",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    const list = new ClusterList(others.of("east"));
    const operator = fixture.operator({ shutdownGrace: "1s" });
    const run = Promise.withResolvers<void>();
    let begun = 0;
    const { controller } = recorded(operator, { clusters: list.source }, {
      // Ignores its signal.
      reconcile: () => (begun++, run.promise),
    });
    await fixture.start(operator);
    await fixture.until(() => begun === 1);
    list.set([]);
    await fixture.until(() =>
      fixture.log.some(({ message }) => message === "A cluster has left")
    );
    assert.deepEqual(statuses(controller), ["east false"]);
    run.resolve();
    await fixture.settle();
    assert.deepEqual(statuses(controller), []);
  },
);

clusterScenario(
  "Clusters that are down or hang delay neither start nor others",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    const list = new ClusterList([
      { name: "down", target: { transport: dead } },
      { name: "hangs", target: { transport: hanging } },
      { name: "unusable", target: new Error("Cannot read its kubeconfig") },
      ...others.of("east"),
    ]);
    const operator = fixture.operator();
    const { runs, controller } = recorded(operator, { clusters: list.source });
    const began = fixture.clock.now();
    await fixture.start(operator);
    assert.ok(fixture.clock.now() - began <= 11_000, "the start took too long");
    await fixture.until(() => runs.length === 1);
    const { ready, healthy } = operator.health();
    assert.deepEqual({ ready, healthy }, { ready: true, healthy: true });
    const { clusters = [] } = controller.health();
    assert.deepEqual(
      Object.fromEntries(clusters.map(({ name, ready, error }) => [
        name,
        error === undefined ? ready : error,
      ])),
      {
        down: "Cannot list Gadget objects: cannot connect: nobody listens",
        hangs: false,
        unusable: "Cannot read its kubeconfig",
        east: true,
      },
    );
    // It comes back under its name.
    list.set([{ ...others.of("east")[0]!, name: "down" }]);
    await fixture.until(() => runs.length === 2);
    assert.equal(runs[1], "down default/web first");
  },
);

clusterScenario(
  "Readiness says what it waits for in each cluster, as the log does",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    await create(others.clients["east"], "api");
    const [east] = others.of("east");
    const { transport } = east!.target as { readonly transport: Transport };
    const silent: Transport = {
      ...hanging,
      send: (request) => (request.mayPause ? hanging : transport).send(request),
    };
    const operator = fixture.operator();
    recorded(operator, {
      clusters: [{ name: "east", target: { transport: silent } }],
    });
    await fixture.start(operator);
    const [waiting, ...rest] = operator.health().syncing;
    assert.deepEqual(rest, []);
    assert.deepEqual({ ...waiting, bytes: waiting!.bytes > 0 }, {
      cluster: "east",
      kind: "sample.coracle.dev/v1 Gadget",
      namespace: undefined,
      objects: 0,
      bytes: true,
      expected: undefined,
      remaining: undefined,
    });
    const log = fixture.log.find(({ message }) =>
      message === "Waiting for the caches to sync"
    );
    assert.equal(log?.fields?.["synced"], "0 of 1");
    assert.match(
      `${log?.fields?.["waitingFor"]}`,
      /^east: sample.coracle.dev\/v1 Gadget: 0 objects, [\d.]+ MB$/,
    );
  },
);

clusterScenario(
  "A set of clusters that is wrong or fails leaves the last one",
  async (fixture) => {
    await using others = await members(fixture, "east", "west");
    const { east, west } = others.clients;
    const list = new ClusterList(others.of("east"));
    const operator = fixture.operator();
    const { runs, controller } = recorded(operator, { clusters: list.source });
    await fixture.start(operator);
    list.set(others.of("east", "east"));
    await fixture.until(() => !controller.health().healthy);
    assert.match(
      controller.health().sources.get("clusters")?.message ?? "",
      /names of clusters must differ: received "east" twice$/,
    );
    await create(east, "web");
    await fixture.until(() => runs.length === 1);
    list.set(others.of("east", "west"));
    await fixture.until(() => controller.health().healthy);
    list.fail(new Error("Cannot list clusters"));
    await fixture.until(() => !controller.health().healthy);
    await fixture.until(() => controller.health().healthy);
    await create(west, "api");
    await fixture.until(() => runs.length === 2);
  },
);

clusterScenario(
  "A full cluster does not starve another one under the operator's cap",
  async (fixture) => {
    await using others = await members(fixture, "full", "small");
    const { full, small } = others.clients;
    for (let number = 0; number < 20; number++) {
      await create(full, `gadget-${number}`);
    }
    await create(small, "web");
    const order: string[] = [];
    let running = 0;
    let most = 0;
    const operator = fixture.operator({ concurrency: 2 });
    recorded(operator, { clusters: others.of("full", "small") }, {
      async reconcile(_gadget, ctx) {
        order.push(ctx.cluster ?? "");
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 1_000)
        );
        running--;
      },
    });
    await fixture.start(operator);
    await fixture.until(() => order.length === 21);
    assert.equal(most, 2);
    assert.ok(
      order.indexOf("small") < 13,
      `it came as number ${order.indexOf("small")}`,
    );
  },
);

clusterScenario(
  "A replica that has lost its Lease writes to no cluster",
  async (fixture) => {
    await using others = await members(fixture, "east");
    const { east } = others.clients;
    await create(east, "web");
    const operator = fixture.operator({
      leaderElection: { name: "clusters", namespace: "default" },
    });
    let write: (() => Promise<unknown>) | undefined;
    recorded(operator, { clusters: others.of("east") }, {
      reconcile(_gadget, { client, key }) {
        write ??= () =>
          client.patch(Gadget, key, { metadata: { labels: { late: "yes" } } });
      },
    });
    await fixture.start(operator);
    await fixture.until(() => write !== undefined);
    await fixture.done(operator.stop());
    await assert.rejects(write!, /this replica is not the leader/);
    const { labels } = (await gadget(east, "web")).metadata;
    assert.equal(labels, undefined);
  },
);

clusterScenario(
  "A standby replica follows clusters and runs when it leads",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    const leaderElection = { name: "standby", namespace: "default" };
    const [first, second] = [0, 1].map(() => {
      const operator = fixture.operator({ leaderElection });
      return {
        operator,
        ...recorded(operator, { clusters: others.of("east") }),
      };
    });
    await fixture.start(first!.operator);
    await fixture.until(() => first!.runs.length === 1);
    await fixture.start(second!.operator);
    assert.deepEqual(statuses(second!.controller), ["east true"]);
    await fixture.settle();
    assert.deepEqual(second!.runs, []);
    await fixture.done(first!.operator.stop());
    await fixture.until(() => second!.runs.length === 1);
  },
);

clusterScenario(
  "Keys of clusters trigger a run and show its history",
  async (fixture) => {
    await using others = await members(fixture, "east", "west");
    const { east, west } = others.clients;
    await create(east, "web");
    await create(west, "web");
    const operator = fixture.operator();
    const { runs, controller } = recorded(operator, {
      clusters: others.of("east", "west"),
    });
    await fixture.start(operator);
    await fixture.until(() => runs.length === 2);
    controller.trigger("west/default/web");
    controller.trigger("north/default/web");
    await fixture.until(() => runs.length === 3);
    assert.equal(runs[2], "west default/web first");
    const counts = (key: string) =>
      operator.why(key).map(({ object, runs }) => `${object} ${runs.length}`);
    await fixture.until(() =>
      counts("west/default/web")[0]?.endsWith("2") === true
    );
    assert.deepEqual(counts("east/default/web"), ["east/default/web 1"]);
    assert.deepEqual(counts("default/web"), []);
    assert.throws(
      () => controller.trigger("default/web"),
      /Cannot trigger a run: the key of a Gadget is "namespace\/name"/,
    );
    assert.throws(
      () => controller.trigger({ namespace: "default", name: "web" }),
      /it begins with a cluster, as in "east\/default\/web"/,
    );
    const page = JSON.stringify(operator.inspect());
    assert.ok(page.includes("west/default/web"), "the page lacks the object");
  },
);

clusterScenario(
  "A watch that clusters share reads the secondaries of its own",
  async (fixture) => {
    await using others = await members(fixture, "east", "west");
    const { east, west } = others.clients;
    const source = watch<Gadget, ConfigMap>(ConfigMap);
    const found = new Map<string, readonly string[]>();
    const operator = fixture.operator();
    recorded(operator, {
      clusters: others.of("east", "west"),
      owns: [source],
    }, {
      async reconcile(_gadget, ctx) {
        await ctx.apply(ConfigMap, { metadata: { name: `of-${ctx.cluster}` } });
        const all = await ctx.secondaries(source);
        found.set(ctx.cluster ?? "", all.map(({ metadata }) => metadata.name));
      },
    });
    await fixture.start(operator);
    await create(east, "web");
    await create(west, "web");
    await fixture.until(() => found.size === 2);
    assert.deepEqual(Object.fromEntries(found), {
      east: ["of-east"],
      west: ["of-west"],
    });
  },
);

clusterScenario(
  "Replicas share whole clusters, and hand them over without two runs",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    // One server stands for all, and each replica has some in all likelihood.
    const names = Array.from({ length: 24 }, (_, index) => `cluster-${index}`);
    const clusters = names.map((name) => ({ ...others.of("east")[0]!, name }));
    const running = new Map<string, string>();
    const fouls: string[] = [];
    const replicas = ["first", "second"].map((identity) => {
      const operator = fixture.operator({
        sharding: { name: "clusters", namespace: "default", identity },
      });
      const ran = new Map<string, number>();
      const { controller } = recorded(operator, {
        clusters,
        maxInterval: "2s",
      }, {
        async reconcile(_gadget, { cluster = "", signal }) {
          const other = running.get(cluster);
          if (other !== undefined) {
            fouls.push(`${cluster} in ${other} and ${identity}`);
          }
          running.set(cluster, identity);
          ran.set(cluster, (ran.get(cluster) ?? 0) + 1);
          await new Promise<void>((resolve) => {
            const timer = fixture.clock.setTimer(resolve, 500);
            signal.addEventListener("abort", () => {
              timer.cancel();
              resolve();
            });
          });
          running.delete(cluster);
        },
      });
      const joined = () =>
        controller.health().clusters?.map(({ name }) => name) ?? [];
      return { operator, ran, joined };
    });
    const [first, second] = replicas;
    await fixture.start(first!.operator);
    await fixture.until(() => first!.ran.size === 24);
    await fixture.start(second!.operator);
    await fixture.until(() =>
      second!.joined().length > 0 &&
      first!.joined().length + second!.joined().length === 24
    );
    // Only the clusters of the other are left; none is in both.
    assert.deepEqual(
      [...first!.joined(), ...second!.joined()].sort(),
      names.toSorted(),
    );
    await fixture.until(() => second!.ran.size === second!.joined().length);
    await fixture.done(second!.operator.stop());
    first!.ran.clear();
    await fixture.until(() => first!.ran.size === 24);
    assert.deepEqual(fouls, []);
  },
);

clusterScenario(
  "Metrics count clusters, with a bounded number of series",
  async (fixture) => {
    await using others = await members(fixture, "east");
    await create(others.clients["east"], "web");
    const down = Array.from({ length: 120 }, (_, number) => ({
      name: `down-${String(number).padStart(3, "0")}`,
      target: new Error("Cannot read its kubeconfig"),
    }));
    const metrics = new MetricsRegistry();
    const operator = fixture.operator({ metrics });
    const { runs } = recorded(operator, {
      clusters: [...down, ...others.of("east")],
    });
    await fixture.start(operator);
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const lines = operator.metrics().split("\n");
    const series = (name: string) =>
      lines.filter((line) => line.startsWith(`${name}{`));
    assert.equal(series("coracle_clusters").length, 101);
    const labels = 'cluster="(others)",controller="gadget"';
    assert.deepEqual(
      [
        "coracle_clusters",
        "coracle_clusters_ready",
        "coracle_cluster_primaries",
      ]
        .map((name) => series(name).at(-1)),
      [
        `coracle_clusters{${labels}} 21`,
        `coracle_clusters_ready{${labels}} 1`,
        `coracle_cluster_primaries{${labels}} 1`,
      ],
    );
    // The caches of the clusters are among those of the operator.
    const kind = "sample.coracle.dev/v1 Gadget";
    const cached = series("coracle_cache_objects").filter((line) =>
      line.includes(kind) && line.includes('tier="index"')
    );
    assert.ok(cached[0]?.endsWith(" 1"), cached.join());
  },
);
