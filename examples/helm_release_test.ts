import { checkOperator, TestCluster, VirtualClock } from "@coracle/dev";
import { untyped } from "@coracle/operator";
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  PriorityClass,
} from "@coracle/operator/kinds";
import {
  type Conditioned,
  fromYaml,
  isReady,
} from "@coracle/operator/workflows";
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { helmTemplate, operator, type Render } from "./helm_release.ts";
import { render } from "./helm_stand_in.ts";

const HelmRelease = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "HelmRelease",
  plural: "helmreleases",
  scope: "Namespaced",
});

const FOLDER = dirname(fileURLToPath(import.meta.url));
const CHARTS = join(FOLDER, "charts");

/** Command that stands in for Helm, run by the runtime of the test. */
const STAND_IN = [
  process.execPath,
  ..."Deno" in globalThis ? ["run", "--allow-all"] : [],
  join(FOLDER, "helm_stand_in.ts"),
];

const release = (values: Record<string, unknown>, chart = "shop") => ({
  apiVersion: "sample.coracle.dev/v1",
  kind: "HelmRelease",
  metadata: { namespace: "default", name: "shop" },
  spec: { chart, values },
});

test("A Helm release is installed, upgraded, mended, pruned and uninstalled", async () => {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    namespace: "default",
    server: { simulate: true },
    operator: (options) => operator(options, helmTemplate(CHARTS, STAND_IN)),
  });
  try {
    const { client } = cluster;
    const here = (name: string) => ({ namespace: "default", name });
    const found = async () =>
      await client.find(HelmRelease, here("shop")) as Conditioned | undefined;
    const ready = () =>
      cluster.until(async () => {
        const { metadata, status } = await found() ?? {};
        return isReady(status?.conditions ?? []) &&
          status?.observedGeneration === metadata?.generation;
      }, { within: "10m" });
    await client.create(HelmRelease, release({ replicas: 2 }));
    await ready();
    const web = await client.get(Deployment, here("shop-web"));
    assert.equal(web.spec?.replicas, 2);
    const [volume] = web.spec?.template.spec?.volumes ?? [];
    assert.equal(volume?.configMap?.defaultMode, 0o444);

    const values = { replicas: 1, withoutOrders: true };
    await client.patch(HelmRelease, here("shop"), { spec: { values } });
    await ready();
    assert.equal(await client.find(ConfigMap, here("shop-orders")), undefined);

    await client.patch(Deployment, here("shop-web"), { spec: { replicas: 7 } });
    await client.delete(PriorityClass, { name: "default-shop" });
    await cluster.until(async () =>
      (await client.get(Deployment, here("shop-web"))).spec?.replicas === 1 &&
      await client.find(PriorityClass, { name: "default-shop" }) !== undefined
    );

    const bad = { chart: "no-such-chart" };
    await client.patch(HelmRelease, here("shop"), { spec: bad });
    await cluster.until(async () =>
      (await found())?.status?.conditions?.some(({ message }) =>
        message.includes("failed: received exit code 1: Error: ENOENT")
      ) ?? false
    );
    assert.notEqual(await client.find(Deployment, here("shop-web")), undefined);

    await client.delete(HelmRelease, here("shop"));
    await cluster.until(async () => await found() === undefined);
    const crd = { name: "shopqueues.shop.example.com" };
    assert.equal(await client.find(CustomResourceDefinition, crd), undefined);
    assert.equal(await client.find(Deployment, here("shop-web")), undefined);
    assert.equal(await client.find(ConfigMap, here("shop-web")), undefined);
  } finally {
    await cluster.stop();
  }
});

test("The Helm example stands its check", { timeout: 120_000 }, async () => {
  const inProcess: Render = async ({ chart, ...rest }) =>
    await fromYaml(render({ ...rest, chart: join(CHARTS, chart) }));
  const { findings } = await checkOperator({
    operator: (options) => operator(options, inProcess),
    workload: [
      { apply: release({}) },
      { apply: release({ withoutOrders: true }) },
      { delete: release({}) },
    ],
    plans: 1,
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
});
