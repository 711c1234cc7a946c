/**
 * Installs, upgrades, mends, prunes and uninstalls the public chart of External
 * Secrets by `examples/helm_release.ts` and Helm itself on a real control plane.
 *
 * `npm run test:chart`; the chart is that in the Go module of the project, which `go`
 * loads into its cache once.
 *
 * @module
 */
import { type Kind, untyped } from "@coracle/operator";
import { ApiError, Client, loadConfig } from "@coracle/operator/client";
import * as kinds from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse, stringify } from "yaml";
import { helmTemplate, operator } from "../../examples/helm_release.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";
import { startScenarioCluster } from "../support/scenario_cluster.ts";
import { until } from "../support/until.ts";

commandLine("test a public chart", {});

const MODULE = "github.com/external-secrets/external-secrets@v1.3.2";
const CHART = "external-secrets";
const CACHE = join(PROJECT, ".cache/charts");
const DOWNLOAD_LIMIT_MS = 600_000;

const HelmRelease = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "HelmRelease",
  plural: "helmreleases",
  scope: "Namespaced",
});

/** Kinds of the chart. */
const KINDS: readonly Kind[] = [
  kinds.ClusterRole,
  kinds.ClusterRoleBinding,
  kinds.Deployment,
  kinds.PodDisruptionBudget,
  kinds.Role,
  kinds.RoleBinding,
  kinds.Secret,
  kinds.Service,
  kinds.ServiceAccount,
  kinds.ValidatingWebhookConfiguration,
];

/** Loads the chart, without the charts that it depends on and does not switch on. */
async function loadChart(): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const { code, stdout, stderr } = await runCommand(
    ["go", "mod", "download", "-json", MODULE],
    { cwd: CACHE, limit: DOWNLOAD_LIMIT_MS },
  );
  if (code !== 0) throw new Error(`Cannot load ${MODULE}: ${stderr || stdout}`);
  const from = join(JSON.parse(stdout).Dir, "deploy/charts", CHART);
  const to = join(CACHE, CHART);
  await rm(to, { recursive: true, force: true });
  await cp(from, to, { recursive: true, mode: 0 });
  await runCommand(["chmod", "-R", "u+w", to]);
  const file = join(to, "Chart.yaml");
  const { dependencies: _, ...chart } = parse(await readFile(file, "utf8"));
  await writeFile(file, stringify(chart));
}

test("The Helm example manages a public chart of more than 20 objects", async (t) => {
  const helm = await goTool("helm");
  if (helm === undefined) return t.skip(NO_GO);
  await loadChart();
  const cluster = await startScenarioCluster();
  assert(cluster !== undefined);
  const { kubeconfig } = cluster;
  const namespace = "public-chart";
  const client = new Client(await loadConfig({ kubeconfig }));
  const running = operator(
    { client, namespaces: [namespace] },
    helmTemplate(CACHE, [helm]),
  );
  t.after(async () => {
    await running.stop();
    await client.close();
    await cluster.stop();
  });
  const here = (name: string) => ({ namespace, name });
  const eventually = (what: string, holds: () => Promise<boolean>) =>
    until(what, holds, { within: 120_000 });
  /** Objects of the set, by kind and name. */
  const objects = async () => {
    const found: string[] = [];
    for (const kind of KINDS) {
      const { items } = await client.list(kind, {
        labelSelector: "coracle.dev/set=helm-release",
      });
      found.push(
        ...items.map(({ metadata }) => `${kind.kind}/${metadata.name}`),
      );
    }
    return found;
  };
  const replicas = async () => {
    const name = `es-${CHART}`;
    const { spec } = await client.get(kinds.Deployment, here(name));
    return spec?.replicas;
  };

  await client.create(kinds.Namespace, { metadata: { name: namespace } });
  await running.start();
  const budget = (enabled: boolean) => ({
    podDisruptionBudget: { enabled },
    webhook: { podDisruptionBudget: { enabled } },
  });
  await client.create(HelmRelease, {
    metadata: here("es"),
    spec: { chart: CHART, values: budget(true) },
  });
  await eventually(
    "the chart is installed",
    async () => (await objects()).length > 20,
  );
  const installed = await objects();
  t.diagnostic(`${installed.length} objects: ${installed.join(", ")}`);

  await client.patch(HelmRelease, here("es"), {
    spec: { values: { ...budget(false), replicaCount: 2 } },
  });
  const remaining = installed.filter((one) =>
    !one.startsWith("PodDisruptionBudget/")
  );
  assert.equal(remaining.length, installed.length - 2);
  const isRestored = async () =>
    await replicas() === 2 &&
    (await objects()).join() === remaining.join();
  await eventually("what the upgrade no longer has is pruned", isRestored);

  await client.patch(kinds.Deployment, here(`es-${CHART}`), {
    spec: { replicas: 7 },
  });
  for (
    const [kind, name] of [
      [kinds.ValidatingWebhookConfiguration, "externalsecret-validate"],
      [kinds.ClusterRole, `es-${CHART}-controller`],
    ] as const
  ) await client.delete(kind as Kind, { name });
  await eventually("drift of three kinds is mended", isRestored);

  await client.delete(HelmRelease, here("es"));
  await eventually(
    "the release is gone",
    async () => await client.find(HelmRelease, here("es")) === undefined,
  );
  assert.deepEqual(await objects(), []);
  await client.delete(kinds.Namespace, { name: namespace });
  await client.delete(kinds.CustomResourceDefinition, {
    name: "helmreleases.sample.coracle.dev",
  }).catch((error) => {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
  });
});
