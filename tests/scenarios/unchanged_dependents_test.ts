import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { z } from "zod";
import {
  Client,
  kubernetesDependent,
  loadConfig,
  type Logger,
  MetricsRegistry,
  type ObjectOf,
  Operator,
  silentLogger,
  untyped,
  type UntypedObject,
  Workflow,
} from "@coracle/operator";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { CustomResourceDefinition, Namespace } from "@coracle/operator/kinds";
import { parseApiVersion } from "../../core/api/kind.ts";
import { runCommand } from "../support/child_process.ts";
import {
  ON_REAL_CLUSTER,
  startScenarioCluster,
} from "../support/scenario_cluster.ts";
import { until } from "../support/until.ts";

/** Kinds of one test alone, so that no other test requests them. */
function kindsOf(id: string) {
  const group = `${id}.sample.coracle.dev`;
  const Fleet = defineKind({
    group,
    version: "v1",
    kind: "Fleet",
    spec: z.object({ size: z.number().default(0) }),
  });
  const Crate = defineKind({
    group,
    version: "v1",
    kind: "Crate",
    spec: z.object({
      label: z.string(),
      heavy: z.boolean().default(false),
      parts: z.array(
        z.object({ name: z.string(), count: z.number().default(1) }),
      ),
    }),
  });
  return { Fleet, Crate };
}

type Kinds = ReturnType<typeof kindsOf>;
type Fleet = ObjectOf<Kinds["Fleet"]>;
type Crate = ObjectOf<Kinds["Crate"]>;
/** Part as read; the server defaults its count. */
type Part = Crate["spec"]["parts"][number];

/** Cluster with counters of its requests. */
interface Case extends Kinds {
  /** Prefix of the names of this test. */
  readonly id: string;
  readonly client: Client;
  readonly namespace: string;
  /** How many requests the operator has sent, watches aside, by verb. */
  sent(): Readonly<Record<string, number>>;
  /** Objects that were changed after their creation, with the field. */
  readonly updates: readonly string[];
  /** How many requests for single crates the server itself has counted. */
  asked(): Promise<number>;
  /** Starts an operator with a workflow. @returns Triggers a run. */
  start(workflow: Workflow<Fleet>): Promise<{
    readonly runs: () => number;
    readonly stop: () => Promise<void>;
    readonly again: () => Promise<void>;
  }>;
}

async function withCase(body: (one: Case) => Promise<void>): Promise<void> {
  const id = `c${randomBytes(4).toString("hex")}`;
  const { Fleet, Crate } = kindsOf(id);
  const crates: string[] = [];
  const cluster = await startScenarioCluster({
    audit: ({ resource, verb }) => {
      if (resource === Crate.plural && !/^(list|watch)$/.test(verb)) {
        crates.push(verb);
      }
    },
  });
  if (cluster === undefined) throw new Error("Every cluster can do this");
  const config = await loadConfig({ kubeconfig: cluster.kubeconfig });
  const client = new Client(config);
  const registry = new MetricsRegistry();
  const operatorClient = new Client(config, { metrics: registry });
  const namespace = `unchanged-${id}`;
  const stops: (() => Promise<void>)[] = [];
  const updates: string[] = [];
  try {
    for (const kind of [Fleet, Crate]) await installCrd(client, kind);
    await client.create(Namespace, { metadata: { name: namespace } });
    await client.create(Fleet, {
      metadata: { namespace, name: "a" },
      spec: {},
    });
    await body({
      id,
      Fleet,
      Crate,
      client,
      namespace,
      updates,
      sent: () => sentIn(registry.text()),
      asked: async () =>
        ON_REAL_CLUSTER
          ? countedIn(await serverMetrics(cluster.kubeconfig), Crate)
          : crates.length,
      async start(workflow) {
        let runs = 0;
        const operator = new Operator({
          client: operatorClient,
          logger: logger(updates),
        });
        const errors: unknown[] = [];
        const controller = operator.register(Fleet, {
          reconcile() {
            runs++;
          },
          onError(_fleet, error) {
            errors.push(error);
          },
        }, { workflow, namespaces: [namespace] });
        await operator.start();
        const stop = () => operator.stop();
        stops.push(stop);
        await until("the first run", () => runs > 0 || errors.length > 0, {
          within: 30_000,
        });
        assert.deepEqual(errors, []);
        return {
          runs: () => runs,
          stop,
          async again() {
            const before = runs;
            controller.trigger(`${namespace}/a`);
            await until("another run", () => runs > before, { every: 1 });
          },
        };
      },
    });
  } finally {
    for (const stop of stops) await stop();
    await client.delete(Namespace, { name: namespace }).catch(() => {});
    for (const { plural, group } of [Fleet, Crate]) {
      await client.delete(CustomResourceDefinition, {
        name: `${plural}.${group}`,
      }).catch(() => {});
    }
    await client.close();
    await operatorClient.close();
    await cluster.stop();
  }
}

/** Notes which dependents were updated. */
function logger(updates: string[]): Logger {
  const made: Logger = {
    ...silentLogger,
    debug(message, fields) {
      if (message !== "Updating a dependent") return;
      updates.push(`${fields?.["dependent"]} ${fields?.["field"]}`);
    },
    with: () => made,
  };
  return made;
}

/** The requests that a client has counted, watches aside. */
function sentIn(metrics: string): Record<string, number> {
  const sent: Record<string, number> = {};
  for (const line of metrics.split("\n")) {
    const match = /^coracle_client_requests_total\{.*verb="(\w+)".*\} (\d+)/
      .exec(line);
    const [, verb = "watch", count] = match ?? [];
    if (verb !== "watch") sent[verb] = (sent[verb] ?? 0) + Number(count);
  }
  return sent;
}

/**
 * The requests for single objects of a kind that a real server has counted.
 * Its own controllers list and watch all kinds, and when a test deletes its
 * namespace, they delete the objects of all kinds there.
 */
function countedIn(metrics: string, { group, plural }: Kinds["Crate"]): number {
  return metrics.split("\n")
    .filter((line) =>
      line.startsWith("apiserver_request_total{") &&
      line.includes(`group="${group}"`) &&
      line.includes(`resource="${plural}"`) &&
      line.includes('scope="resource"')
    )
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function serverMetrics(kubeconfig: string): Promise<string> {
  const command = ["kubectl", `--kubeconfig=${kubeconfig}`, "get", "--raw"];
  const result = await runCommand([...command, "/metrics"], { limit: 30_000 });
  assert.equal(result.code, 0, result.stderr);
  return result.stdout;
}

test(
  "Ten unchanged dependents cost no request, by client and server metrics",
  {
    timeout: 120_000,
  },
  () =>
    withCase(async ({ Crate, start, sent, asked }) => {
      const make = () =>
        Array.from({ length: 10 }, (_, index) => index).reduce(
          (flow, index) =>
            flow.add(
              `crate-${index}`,
              kubernetesDependent(Crate, {
                desired: ({ metadata: { name } }) => ({
                  metadata: { name: `${name}-${index}`, labels: { empty: "" } },
                  spec: {
                    label: "",
                    // The server stores the default.
                    heavy: null as never,
                    parts: [{ name: "lid" } as Part],
                  },
                }),
              }),
              { dependsOn: index === 0 ? [] : [`crate-${index - 1}`] },
            ),
          new Workflow<Fleet>() as Workflow<Fleet, Record<string, unknown>>,
        );
      const first = await start(make());
      const before = sent();
      assert.equal(before["patch"], 10);
      const counted = await asked();
      assert.ok(counted >= 10);
      for (let index = 0; index < 100; index++) await first.again();
      assert.deepEqual(sent(), before);
      assert.equal(await asked(), counted);

      await first.stop();
      const next = await start(make());
      for (let index = 0; index < 10; index++) await next.again();
      assert.equal(sent()["patch"], 10, "nor after a restart");
    }),
);

/** Minimal objects of the built-in kinds, by the files that hold them. */
function builtinObjects(namespace: string): ReadonlyMap<string, UntypedObject> {
  const folder = new URL(
    "../apiserver/builtin/defaulting/",
    import.meta.url,
  );
  const objects = new Map<string, UntypedObject>();
  for (const file of readdirSync(folder)) {
    if (!file.endsWith(".json")) continue;
    const text = readFileSync(new URL(file, folder), "utf8");
    const { request } = JSON.parse(
      // Some refer to their own namespace.
      text.replaceAll(
        '"namespace": "defaulting"',
        `"namespace": "${namespace}"`,
      )
        .replaceAll('"namespace":"defaulting"', `"namespace":"${namespace}"`),
    ) as { readonly request: { readonly body: UntypedObject } };
    objects.set(file.replace(".json", ""), request.body);
  }
  return objects;
}

test(
  "Minimal objects of all built-in kinds are written once, over runs and restarts",
  {
    timeout: 240_000,
  },
  () =>
    withCase(async ({ Fleet, id, start, sent, namespace, client, updates }) => {
      const objects = builtinObjects(namespace);
      assert.ok(objects.size > 40);
      const make = () => {
        let flow = new Workflow<Fleet>({ concurrency: 4 }) as Workflow<
          Fleet,
          Record<string, unknown>
        >;
        for (const [file, body] of objects) {
          const { apiVersion = "", kind = "", metadata, ...fields } = body;
          const Kind = untyped({ ...parseApiVersion(apiVersion), kind });
          flow = flow.add(
            file,
            kubernetesDependent<Fleet, UntypedObject>(Kind, {
              relation: metadata.namespace ? "owner" : "annotations",
              desired: () => ({
                ...fields,
                metadata: { ...metadata, name: `${file}-${id}` },
              }),
            }),
          );
        }
        return flow;
      };
      const first = await start(make());
      const { patch } = sent();
      assert.deepEqual(updates, []);
      assert.equal(patch, objects.size + 1, "and the finalizer");
      for (let index = 0; index < 100; index++) await first.again();
      assert.deepEqual(updates, []);
      assert.equal(sent()["patch"], patch);
      await first.stop();

      const next = await start(make());
      for (let index = 0; index < 5; index++) await next.again();
      assert.deepEqual(updates, []);
      assert.equal(sent()["patch"], patch, "nor after a restart");
      await client.delete(Fleet, { namespace, name: "a" });
      await until(
        "the fleet and what it owned are gone",
        async () =>
          await client.find(Fleet, { namespace, name: "a" }) === undefined,
        { within: 60_000 },
      );
    }),
);
