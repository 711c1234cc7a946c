import assert from "node:assert/strict";
import { join } from "node:path";
import { before, test, type TestContext } from "node:test";
import { parseAllDocuments } from "yaml";
import { ApiError, Client, loadConfig } from "@coracle/operator/client";
import {
  ClusterRole,
  Deployment,
  Namespace,
  Role,
} from "@coracle/operator/kinds";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { runCommand } from "../support/child_process.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";
import { coracle } from "../support/program.ts";
import { startScenarioCluster } from "../support/scenario_cluster.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

type Labels = Readonly<Record<string, string>>;

interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Labels;
  };
  readonly spec?: Record<string, unknown>;
}

let helm: string | undefined;

before(async () => {
  helm = await goTool("helm");
});

/** Test with Helm; skipped where it cannot be built. */
function helmTest(
  title: string,
  run: (t: TestContext) => Promise<void>,
): void {
  test(title, async (t) => {
    if (helm === undefined) t.skip(NO_GO);
    else await run(t);
  });
}

async function runHelm(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await runCommand([helm ?? "", ...args], {
    env,
  });
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  return stdout;
}

const url = (path: string) => new URL(`../../${path}`, import.meta.url).href;

/** Operator file of the kind Boat. */
function boats(
  options: string,
  spec = "length: z.int()",
  description = "A boat.",
): string {
  return `
import { defineKind, Operator } from "${url("mod.ts")}";
import { ConfigMap } from "${url("core/kinds/mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const Boat = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({ ${spec} }).describe(${JSON.stringify(description)}),
});
export const operator = new Operator(${options});
operator.register(Boat, { reconcile() {} }, { owns: [ConfigMap] });
`;
}

const SHARED =
  '{ leaderElection: { name: "boats" }, probes: { port: 8080, metrics: { secure: true } } }';

async function writeChart(folder: string, operator: string): Promise<string> {
  const file = writeText(folder, "boats.mjs", operator);
  const chart = join(folder, "chart");
  const { code, stderr } = await runCommand(coracle(
    "manifests",
    file,
    "--image=registry.test:5000/boats:1.2.0",
    "--format=helm",
    `--output=${chart}`,
  ));
  assert.equal(code, 0, stderr);
  return chart;
}

async function rendered(
  chart: string,
  ...flags: readonly string[]
): Promise<readonly Manifest[]> {
  const text = await runHelm([
    ...["template", "fleet", chart, "--namespace=sea", ...flags],
  ]);
  return parseAllDocuments(text).map((one) => one.toJSON() as Manifest | null)
    .filter((one) => one !== null);
}

helmTest("A chart passes helm lint with all switches on", async () => {
  const chart = await writeChart(temporaryFolder(), boats(SHARED));
  await runHelm(["lint", "--strict", chart]);
  await runHelm(["lint", "--strict", chart, ...ALL]);
});

const ALL = [
  "--set=serviceMonitor.enabled=true",
  "--set=serviceMonitor.labels.release=prometheus",
  "--set=prometheusRule.enabled=true",
  "--set=prometheusRule.labels.release=prometheus",
  "--set=grafanaDashboard.enabled=true",
  "--set=log.level=debug",
  "--set=log.sampling=100",
  "--set=volumes[0].name=data",
  "--set=podDisruptionBudget.enabled=true",
  "--set=networkPolicy.enabled=true",
  "--set=replicas=2",
  "--set=priorityClassName=high",
  "--set=rbac.extraRules[0].apiGroups={apps}",
  "--set=rbac.extraRules[0].resources={deployments}",
  "--set=rbac.extraRules[0].verbs={get}",
];

helmTest("A chart renders what its values switch on", async () => {
  const chart = await writeChart(temporaryFolder(), boats(SHARED));
  const names = (found: readonly Manifest[]) =>
    found.map(({ kind, metadata: { namespace, name } }) =>
      `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`
    ).toSorted();
  const least = [
    "ClusterRole fleet-boats",
    "ClusterRole fleet-boats-editor",
    "ClusterRole fleet-boats-metrics-reader",
    "ClusterRole fleet-boats-viewer",
    "ClusterRoleBinding fleet-boats",
    "ConfigMap sea/fleet-boats-log",
    "CustomResourceDefinition boats.test.coracle.dev",
    "Deployment sea/fleet-boats",
    "Role sea/fleet-boats",
    "RoleBinding sea/fleet-boats",
    "ServiceAccount sea/fleet-boats",
  ];
  assert.deepEqual(names(await rendered(chart)), least);
  const all = await rendered(chart, ...ALL);
  assert.deepEqual(
    names(all),
    [
      ...least,
      "ClusterRole fleet-boats-extra",
      "ClusterRoleBinding fleet-boats-extra",
      "ConfigMap sea/fleet-boats-dashboard",
      "NetworkPolicy sea/fleet-boats",
      "PodDisruptionBudget sea/fleet-boats",
      "PrometheusRule sea/fleet-boats",
      "Service sea/fleet-boats",
      "ServiceMonitor sea/fleet-boats",
    ].toSorted(),
  );
  const one = (kind: string, name = "fleet-boats") =>
    all.find(({ kind: other, metadata }) =>
      other === kind && metadata.name === name
    ) as Record<string, unknown> | undefined;
  assert.deepEqual(one("ConfigMap", "fleet-boats-log")?.["data"], {
    level: "debug",
    format: "json",
    sampling: "100",
  });
  const dashboard = one("ConfigMap", "fleet-boats-dashboard")
    ?.["data"] as Record<
      string,
      string
    >;
  assert.equal(
    JSON.parse(dashboard["fleet-boats.json"] ?? "").uid,
    "fleet-boats",
  );
  assert.partialDeepStrictEqual(one("PrometheusRule")?.["spec"], {
    groups: [{
      rules: [{
        expr:
          'max by (controller) (coracle_oldest_failure_seconds{job="fleet-boats",namespace="sea"}) > 900',
        annotations: {
          summary:
            "{{ $labels.controller }}: an object has failed for 15 minutes",
        },
      }],
    }],
  });
  const deployment = all.find(({ kind }) => kind === "Deployment");
  assert.partialDeepStrictEqual(deployment?.spec, {
    replicas: 2,
    template: {
      spec: {
        priorityClassName: "high",
        volumes: [{ name: "coracle-log" }, { name: "data" }],
        securityContext: { runAsUser: 1000 },
        containers: [{
          image: "registry.test:5000/boats:1.2.0",
          livenessProbe: { httpGet: { path: "/healthz", port: 8080 } },
          securityContext: { readOnlyRootFilesystem: true },
        }],
      },
    },
  });
});

helmTest(
  "Objects of a chart have labels, and its selectors find them",
  async () => {
    const chart = await writeChart(temporaryFolder(), boats(SHARED));
    const found = await rendered(chart, ...ALL);
    const own = {
      "app.kubernetes.io/name": "boats",
      "app.kubernetes.io/instance": "fleet",
      "app.kubernetes.io/managed-by": "Helm",
      "helm.sh/chart": "boats-0.1.0",
    };
    for (const { kind, metadata } of found) {
      if (kind === "CustomResourceDefinition") continue;
      assert.partialDeepStrictEqual(metadata.labels, own, kind);
    }
    const one = (kind: string) => {
      const object = found.find((other) => other.kind === kind);
      assert(object !== undefined, kind);
      return object;
    };
    assert.equal(
      one("ServiceMonitor").metadata.labels?.["release"],
      "prometheus",
    );
    const spec = (kind: string) => one(kind).spec as Record<string, unknown>;
    const { metadata: pod } = spec("Deployment")["template"] as Manifest;
    const matching = (selector: unknown) =>
      (selector as { readonly matchLabels: Labels }).matchLabels;
    assert.partialDeepStrictEqual(pod.labels, spec("Service")["selector"]);
    for (const kind of ["Deployment", "PodDisruptionBudget"]) {
      const selector = matching(spec(kind)["selector"]);
      assert.partialDeepStrictEqual(pod.labels, selector, kind);
    }
    const policy = matching(spec("NetworkPolicy")["podSelector"]);
    assert.partialDeepStrictEqual(pod.labels, policy);
    assert.partialDeepStrictEqual(
      one("Service").metadata.labels,
      matching(spec("ServiceMonitor")["selector"]),
    );
  },
);

helmTest("A chart leaves out what its values switch off", async () => {
  const chart = await writeChart(temporaryFolder(), boats(SHARED));
  const found = await rendered(
    chart,
    "--set=crds.install=false",
    "--set=rbac.create=false",
    "--set=serviceAccount.create=false",
  );
  assert.deepEqual(found.map(({ kind }) => kind), ["ConfigMap", "Deployment"]);
  assert.partialDeepStrictEqual(found[1]?.spec, {
    template: { spec: { serviceAccountName: "default" } },
  });
});

helmTest("A chart refuses values that would not work", async () => {
  const folder = temporaryFolder();
  const chart = await writeChart(folder, boats("{}"));
  const refusal = async (flag: string) => {
    const command = [helm ?? "", "template", "fleet", chart, flag];
    const { code, stderr } = await runCommand(command);
    assert.equal(code, 1, flag);
    return stderr;
  };
  assert.match(await refusal("--set=replica=2"), /'replica' not allowed/);
  assert.match(await refusal("--set=replicas=two"), /replicas/);
  assert.match(
    await refusal("--set=replicas=2"),
    /the operator has no leader election and no sharding/,
  );
});

helmTest("A chart keeps braces of a definition as they are", async () => {
  const description = "Takes {{ .Values }} and {{- end }}.";
  const chart = await writeChart(
    temporaryFolder(),
    boats("{}", "length: z.int()", description),
  );
  const found = await rendered(chart);
  assert(JSON.stringify(found).includes(description));
});

/** Removes what the release leaves, for a real cluster. */
async function removeAll(client: Client): Promise<void> {
  const missing = (error: unknown) => {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
  };
  await client.delete(CRD_KIND, { name: "boats.test.coracle.dev" })
    .catch(missing);
  await client.delete(Namespace, { name: "sea" }).catch(missing);
}

helmTest("Helm installs, upgrades and uninstalls a chart", async (t) => {
  const folder = temporaryFolder();
  const cluster = await startScenarioCluster();
  assert(cluster !== undefined);
  const { kubeconfig } = cluster;
  const client = new Client(await loadConfig({ kubeconfig }));
  t.after(async () => {
    await removeAll(client);
    await client.close();
    await cluster.stop();
  });
  const env = {
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: folder,
    HELM_CONFIG_HOME: folder,
    HELM_DATA_HOME: folder,
  };
  const chart = await writeChart(folder, boats(SHARED));
  await runHelm(
    ["install", "fleet", chart, "--namespace=sea", "--create-namespace"],
    env,
  );
  const key = { namespace: "sea", name: "fleet-boats" };
  const deployment = await client.get(Deployment, key);
  assert.equal(
    deployment.spec?.template.spec?.containers[0]?.image,
    "registry.test:5000/boats:1.2.0",
  );
  assert((await client.find(ClusterRole, { name: key.name })) !== undefined);
  assert((await client.find(Role, key)) !== undefined);
  const fields = async () => {
    const { spec } = await client.get(CRD_KIND, {
      name: "boats.test.coracle.dev",
    });
    return JSON.stringify(spec.versions[0]?.schema);
  };
  assert.doesNotMatch(await fields(), /"sails"/);

  // The next version of the operator has another field.
  await writeChart(
    folder,
    boats(SHARED, "length: z.int(), sails: z.int().optional()"),
  );
  await runHelm(
    ["upgrade", "fleet", chart, "--namespace=sea", "--set=replicas=2"],
    env,
  );
  assert.match(await fields(), /"sails"/);
  assert.equal((await client.get(Deployment, key)).spec?.replicas, 2);

  await runHelm(["uninstall", "fleet", "--namespace=sea"], env);
  assert.equal(await client.find(Deployment, key), undefined);
  assert.match(await fields(), /"sails"/, "the definition must stay");

  // It still belongs to that release.
  const other = ["install", "navy", chart, "--namespace=sea"];
  const refused = await runCommand([helm ?? "", ...other], { env });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /invalid ownership metadata/);
  const navy = ["uninstall", "navy", "--namespace=sea"];
  for (const way of ["--set=crds.install=false", "--take-ownership"]) {
    await runHelm([...other, way], env);
    await runHelm(navy, env);
    assert.match(await fields(), /"sails"/, way);
  }
});
