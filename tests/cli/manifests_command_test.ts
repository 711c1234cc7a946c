import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import type { PolicyRule } from "@coracle/operator/kinds";
import { runCommandLine } from "../../dev/cli/main.ts";
import { manifestsCommand, nameOf } from "../../dev/cli/manifests_command.ts";
import {
  managedKinds,
  recordedAccess,
  recordText,
  writtenResources,
} from "../../dev/cli/operator_manifests.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

/** A manifest, as far as the tests read it. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly rules?: readonly PolicyRule[];
  readonly spec?: Record<string, unknown>;
}

async function manifests(
  file: string,
  ...flags: readonly string[]
): Promise<{ code: number; found: readonly Manifest[]; said: string }> {
  let out = "";
  let said = "";
  const code = await runCommandLine(
    [
      "manifests",
      file,
      ...flags.includes("--image") ? [] : ["--image=img:1"],
      ...flags,
    ],
    {
      colors: false,
      out: (text) => void (out += text),
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [manifestsCommand],
  );
  const found = parseAllDocuments(out).map((one) => one.toJSON() as Manifest);
  return { code, found, said };
}

/** Whether a role is for the users of the kinds, not for the operator. */
function isForUsers({ kind, metadata }: Manifest): boolean {
  return kind === "ClusterRole" && /-(viewer|editor)$/.test(metadata.name);
}

/** Rules as text, such as `Role a: configmaps get,list`, by roles. */
function rulesOf(found: readonly Manifest[]): readonly string[] {
  const own = found.filter((one) => !isForUsers(one));
  return own.flatMap(({ kind, metadata, rules = [] }) =>
    rules.flatMap(({ resources = [], resourceNames = [], verbs }) =>
      resources.map((resource) =>
        `${[kind, metadata.namespace].join(" ").trim()}: ${
          [resource, ...resourceNames].join(" ")
        } ${verbs}`
      )
    )
  );
}

const url = (path: string) => new URL(`../../${path}`, import.meta.url).href;
const MANAGE = "get,list,watch,create,update,patch,delete";

/** Operator file with the kinds Boat, without a status, and Ship. */
function boats(options: string, register: string): string {
  return writeText(
    temporaryFolder(),
    "boats.mjs",
    `
import { defineKind, Operator, untyped, watch } from "${url("mod.ts")}";
import { validatingPolicy } from "${url("core/crd/mod.ts")}";
import { ConfigMap, Namespace, RoleBinding } from "${url("core/kinds/mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const names = { group: "test.coracle.dev", version: "v1", spec: z.object({}) };
const Boat = defineKind({ ...names, kind: "Boat" });
const Ship = defineKind({ ...names, kind: "Ship", status: z.object({}) });
export const operator = new Operator(${options});
const reconcile = () => {};
${register}
`,
  );
}

const OWN = "get,list,watch,update,patch";
const EVENTS = "events get,create,patch";

const CASES: readonly (readonly [
  title: string,
  options: string,
  register: string,
  rules: readonly string[],
])[] = [
  [
    "status only where a kind has one",
    "",
    "operator.register(Boat, { reconcile }); operator.register(Ship, { reconcile });",
    [
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: boats ${OWN}`,
      `ClusterRole: ships ${OWN}`,
      "ClusterRole: ships/status get,update,patch",
    ],
  ],
  [
    "no writes of built-in primaries",
    "",
    "operator.register(untyped({ group: '', version: 'v1', kind: 'Pod' }), { reconcile });",
    [`ClusterRole: ${EVENTS}`, "ClusterRole: pods get,list,watch"],
  ],
  [
    "the finalizers of built-in primaries with cleanup",
    "",
    "operator.register(ConfigMap, { reconcile, cleanup() {} });",
    ["ClusterRole: configmaps get,list,watch,patch", `ClusterRole: ${EVENTS}`],
  ],
  [
    "kinds of others in a group of k8s.io, such as those of Gateway API",
    "",
    "operator.register({ group: 'gateway.networking.k8s.io', version: 'v1', kind: 'Gateway', plural: 'gateways', scope: 'Namespaced' }, { reconcile });",
    [
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: gateways ${OWN}`,
      "ClusterRole: gateways/status get,update,patch",
    ],
  ],
  [
    "owned kinds, and owner references of their primaries",
    "",
    "operator.register(Boat, { reconcile }, { sources: [watch(ConfigMap)] });",
    [
      `ClusterRole: configmaps ${MANAGE}`,
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: boats ${OWN}`,
      "ClusterRole: boats/finalizers update",
    ],
  ],
  [
    "owned built-in kinds that are given without a plural",
    "",
    "operator.register(Boat, { reconcile }, { owns: [{ group: '', version: 'v1', kind: 'ConfigMap' }] });",
    [
      `ClusterRole: configmaps ${MANAGE}`,
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: boats ${OWN}`,
      "ClusterRole: boats/finalizers update",
    ],
  ],
  [
    "kinds that are only watched",
    "",
    "operator.register(Boat, { reconcile }, { sources: [watch(Ship, { readOnly: true, references: () => [] })] });",
    [
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: boats ${OWN}`,
      "ClusterRole: ships get,list,watch",
    ],
  ],
  [
    "Roles where namespaces are named, and Events of cluster-scoped objects",
    '{ namespaces: ["a", "b"] }',
    `operator.register(Boat, { reconcile });
     operator.register(Ship, { reconcile }, { namespaces: ["c"] });
     operator.register(Namespace, { reconcile }, { name: "spaces" });`,
    [
      "ClusterRole: namespaces get,list,watch",
      `Role a: ${EVENTS}`,
      `Role a: boats ${OWN}`,
      `Role b: ${EVENTS}`,
      `Role b: boats ${OWN}`,
      `Role c: ${EVENTS}`,
      `Role c: ships ${OWN}`,
      "Role c: ships/status get,update,patch",
      `Role default: ${EVENTS}`,
    ],
  ],
  [
    "what cluster-scoped objects own in all namespaces",
    '{ namespaces: ["a"] }',
    `operator.register(Boat, { reconcile });
     operator.register(Namespace, { reconcile }, { name: "spaces", owns: [ConfigMap] });`,
    [
      `ClusterRole: configmaps ${MANAGE}`,
      "ClusterRole: namespaces get,list,watch",
      "ClusterRole: namespaces/finalizers update",
      `Role a: ${EVENTS}`,
      `Role a: boats ${OWN}`,
      `Role default: ${EVENTS}`,
    ],
  ],
  [
    "the Lease of an election in the namespace of the operator",
    '{ namespaces: "current", leaderElection: { name: "boats" } }',
    "operator.register(Boat, { reconcile });",
    [
      `Role boats-system: ${EVENTS}`,
      "Role boats-system: leases get,create,update",
      `Role boats-system: boats ${OWN}`,
    ],
  ],
  [
    "the Leases of sharding in their namespace",
    '{ sharding: { name: "boats", namespace: "harbour" } }',
    "operator.register(Boat, { reconcile });",
    [
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: boats ${OWN}`,
      "Role harbour: leases get,list,create,update,delete",
    ],
  ],
  [
    "bind on roles to an operator that makes RoleBindings",
    "",
    "operator.register(Boat, { reconcile }, { sources: [watch(RoleBinding)] });",
    [
      `ClusterRole: ${EVENTS}`,
      `ClusterRole: rolebindings ${MANAGE}`,
      "ClusterRole: clusterroles bind",
      "ClusterRole: roles bind",
      `ClusterRole: boats ${OWN}`,
      "ClusterRole: boats/finalizers update",
    ],
  ],
];

for (const [title, options, register, expected] of CASES) {
  test(`coracle manifests grants ${title}`, async () => {
    const { found } = await manifests(boats(options, register));
    assert.deepEqual(rulesOf(found).toSorted(), expected.toSorted());
  });
}

test("coracle manifests grants the Secrets of clusters, and no primaries there", async () => {
  const importing = `const { kubeconfigSecrets } = await import("${
    url("sources/mod.ts")
  }");`;
  const registered = (namespace: string) =>
    `${importing} operator.register(Ship, { reconcile }, { owns: [ConfigMap], clusters: kubeconfigSecrets({ labelSelector: "a=b"${namespace} }) });`;
  const members = [
    `ClusterRole: configmaps ${MANAGE}`,
    `ClusterRole: ${EVENTS}`,
    `ClusterRole: ships ${OWN}`,
    "ClusterRole: ships/finalizers update",
    "ClusterRole: ships/status get,update,patch",
  ];
  const file = boats("{}", registered(""));
  const { found, said } = await manifests(file);
  assert.deepEqual(
    rulesOf(found).toSorted(),
    [
      ...members,
      "Role boats-system: secrets get,list,watch",
    ].toSorted(),
  );
  const isMember = ({ metadata }: Manifest) =>
    metadata.name === "boats-members";
  assert.deepEqual(rulesOf(found.filter(isMember)).toSorted(), members);
  assert.equal(found.filter(isMember).length, 1, "it is bound");
  assert.match(
    said,
    /^Printed: the ClusterRole boats-members, which is bound/m,
  );
  const other = await manifests(
    boats(
      "{ leaderElection: { name: 'boats' } }",
      `${
        registered(", namespace: 'fleet'")
      } operator.register(Boat, { reconcile });`,
    ),
  );
  const home = other.found.filter((one) => !isMember(one));
  assert.deepEqual(rulesOf(home).toSorted(), [
    `ClusterRole: boats ${OWN}`,
    `ClusterRole: ${EVENTS}`,
    "Role boats-system: leases get,create,update",
    "Role fleet: secrets get,list,watch",
  ]);
});

test("coracle manifests adds recorded requests and drops nothing for them", async () => {
  const record = writeText(
    temporaryFolder(),
    "requests",
    [
      { verb: "list", group: "", resource: "nodes" },
      { verb: "patch", group: "", resource: "configmaps", namespace: "*" },
      { verb: "get", group: "", resource: "secrets", namespace: "vault" },
      {
        verb: "patch",
        group: "apps",
        resource: "deployments/scale",
        namespace: "a",
      },
    ].map((one) => `${JSON.stringify(one)}\n`).join(""),
  );
  const file = boats(
    '{ namespaces: ["a"] }',
    "operator.register(Boat, { reconcile });",
  );
  const { found, said } = await manifests(file, `--recorded=${record}`);
  assert.deepEqual(rulesOf(found), [
    "ClusterRole: nodes list",
    "Role a: configmaps patch",
    `Role a: ${EVENTS}`,
    "Role a: deployments/scale patch",
    `Role a: boats ${OWN}`,
    // A recorded write of another kind may set owner references.
    "Role a: boats/finalizers update",
    "Role vault: secrets get",
  ]);
  assert.match(
    said,
    /configmaps: patch\n {2}deployments\.apps\/scale: patch\n/,
  );
  assert.doesNotMatch(said, /writes only what it owns/);
});

test("coracle manifests says what a record grants besides the rules", async () => {
  const group = "test.coracle.dev";
  const own = { verb: "list", group, resource: "boats", namespace: "*" };
  const nodes = { verb: "list", group: "", resource: "nodes" };
  const config = { ...nodes, resource: "configmaps" };
  const saidOf = async (...requests: readonly unknown[]) => {
    const text = requests.map((one) => JSON.stringify(one)).join("\n");
    const record = writeText(temporaryFolder(), "requests", text);
    const file = boats(
      '{ namespaces: ["a"] }',
      "operator.register(Boat, { reconcile }, { owns: [ConfigMap] });",
    );
    const { said } = await manifests(file, `--recorded=${record}`);
    assert.doesNotMatch(said, /writes only what it owns/);
    return said.slice(said.indexOf("Seen in")).replace(record, "FILE");
  };
  const covered = { ...config, namespace: "a" };
  assert.equal(
    await saidOf(own, covered, nodes, { ...config, namespace: "b" }),
    "Seen in FILE, and granted besides the rules of the operator:\n  configmaps: list\n  nodes: list\n",
  );
  assert.equal(
    await saidOf(own, covered, nodes),
    "Seen in FILE, and granted besides the rules of the operator:\n  nodes: list\n",
  );
  for (const requests of [[own, covered], []]) {
    assert.equal(
      await saidOf(...requests),
      "Seen in FILE: nothing besides the rules of the operator.\n",
    );
  }
});

test("coracle manifests assumes nothing of a kind that --manages names", async () => {
  const file = () => boats("", "operator.register(Namespace, { reconcile });");
  const assumed = /does not write namespaces/;
  assert.match((await manifests(file())).said, assumed);
  const { code, said } = await manifests(file(), "--manages=Namespace");
  assert.equal(code, 0);
  assert.doesNotMatch(said, assumed);
  const { said: refused } = await manifests(file(), "--manages=Foo");
  assert.match(refused, /^Cannot use --manages: it takes kinds of .*"Foo"/);
});

test("coracle manifests rejects a record that is another file", async () => {
  const record = writeText(temporaryFolder(), "requests", "{}\n");
  const file = boats("", "operator.register(Boat, { reconcile });");
  const { code, said } = await manifests(file, `--recorded=${record}`);
  assert.equal(code, 2);
  assert.match(said, /^Cannot read .*: line 1 is not a recorded request/);
  const missing = await manifests(
    boats("", "operator.register(Boat, { reconcile });"),
    "--recorded=missing",
  );
  assert.equal(missing.code, 2);
  assert.match(missing.said, /^Cannot read missing: it must be a file with/);
});

test("coracle manifests rejects names that the server would refuse", async () => {
  const file = boats("", "operator.register(Boat, { reconcile });");
  for (
    const [flag, name] of [["name", "A B"], ["namespace", "A_B"], [
      "name",
      "a".repeat(60),
    ]]
  ) {
    const { code, said } = await manifests(file, `--${flag}=${name}`);
    assert.equal(code, 2);
    assert.match(said, /^Cannot run manifests: --name(space)? must be at most/);
  }
});

test("coracle manifests says what it assumes", async () => {
  const { said } = await manifests(
    boats(
      "",
      "operator.register(Boat, { reconcile }); operator.register(Namespace, { reconcile }, { sources: [watch(RoleBinding)] });",
    ),
  );
  assert.match(said, /writes only what it owns.*--recorded FILE\.\n/);
  assert.match(said, /does not write namespaces or their status/);
  assert.match(said, /Granted: bind on all roles/);
  assert.match(said, /no probes/);
});

test("coracle manifests allows the programs of an operator on Deno", async () => {
  const said = async (options: string, runtime: string) => {
    const file = boats(options, "operator.register(Boat, { reconcile });");
    return (await manifests(file, "--runtime", runtime)).said;
  };
  const two = `{ programs: ["helm", "/opt/kustomize", "helm"] }`;
  const onDeno = await said(two, "deno");
  assert.match(
    onDeno,
    /the programs of the operator: helm, \/opt\/kustomize\./,
  );
  assert.match(onDeno, / --allow-env .* --allow-run=helm,\/opt\/kustomize /);
  const without = await said("", "deno");
  assert.doesNotMatch(without, /--allow-run|programs/);
  assert.match(without, / --allow-env=KUBECONFIG,/);
  const onNode = await said(two, "node");
  assert.match(onNode, /the programs of the operator: helm, /);
  assert.doesNotMatch(onNode, /--allow/);
  assert.match(
    await said(`{ programs: [""] }`, "deno"),
    /options of an operator: "programs" must be a string that is not empty/,
  );
});

test("coracle manifests takes ports, probes and user of the operator", async () => {
  const { found, said } = await manifests(
    boats(
      '{ probes: { port: 8081 }, leaderElection: { name: "boats" } }',
      "operator.register(Boat, { reconcile });",
    ),
  );
  const deployment = found.at(-1)?.spec as {
    strategy?: unknown;
    template: { spec: { securityContext: object; containers: object[] } };
  };
  assert.equal(deployment.strategy, undefined);
  const { securityContext, containers } = deployment.template.spec;
  assert.partialDeepStrictEqual(securityContext, {
    runAsNonRoot: true,
    runAsUser: 1000,
  });
  assert.partialDeepStrictEqual(containers[0], {
    ports: [{ name: "probes", containerPort: 8081 }],
    livenessProbe: { httpGet: { path: "/healthz", port: 8081 } },
    readinessProbe: { httpGet: { path: "/readyz", port: 8081 } },
    env: [{ name: "NODE_OPTIONS", value: "--max-semi-space-size=4" }],
    resources: { limits: { memory: "384Mi" } },
  });
  assert.doesNotMatch(said, /probes/);
});

test("coracle manifests leaves out probes that the kubelet cannot reach", async () => {
  for (const host of ["127.0.0.1", "::1", "localhost"]) {
    const { found, said } = await manifests(
      boats(
        `{ probes: { port: 8081, host: "${host}" } }`,
        "operator.register(Boat, { reconcile });",
      ),
    );
    assert.doesNotMatch(JSON.stringify(found.at(-1)), /livenessProbe/);
    assert(said.includes(`${host} port 8081`), said);
    assert.match(said, /Left out: the probes/);
  }
});

test("coracle manifests prints the definitions of all defined kinds", async () => {
  for (const options of ["", ", { readOnly: true, references: () => [] }"]) {
    const { found } = await manifests(
      boats(
        "",
        `operator.register(Boat, { reconcile }, { sources: [watch(Ship${options})] });`,
      ),
    );
    assert.deepEqual(
      found.filter(({ kind }) => kind === "CustomResourceDefinition")
        .map(({ metadata }) => metadata.name),
      ["boats.test.coracle.dev", "ships.test.coracle.dev"],
    );
  }
});

test("coracle manifests grants recorded requests in the namespaces of the controllers", async () => {
  const record = writeText(
    temporaryFolder(),
    "requests",
    `${
      JSON.stringify({
        verb: "get",
        group: "",
        resource: "secrets",
        namespace: "*",
      })
    }\n`,
  );
  const file = boats(
    '{ namespaces: ["unused"] }',
    "operator.register(Boat, { reconcile }, { namespaces: ['a'] });" +
      "operator.register(Ship, { reconcile }, { namespaces: 'current' });",
  );
  const { found } = await manifests(file, `--recorded=${record}`);
  assert.deepEqual(
    rulesOf(found).filter((rule) => rule.includes("secrets")),
    ["Role a: secrets get", "Role boats-system: secrets get"],
  );
});

test("coracle manifests grants the Lease of a recorded run only where it is used", async () => {
  const lines = ["get", "create", "update"].map((verb) =>
    JSON.stringify({
      verb,
      group: "coordination.k8s.io",
      resource: "leases",
      namespace: "*",
    })
  );
  const record = writeText(
    temporaryFolder(),
    "requests",
    `${lines.join("\n")}\n`,
  );
  const leasesOf = async (options: string) => {
    const file = boats(options, "operator.register(Boat, { reconcile });");
    const { found } = await manifests(file, `--recorded=${record}`);
    const rules = rulesOf(found);
    // A Lease has no owner.
    assert(!rules.join().includes("finalizers"));
    return rules.filter((rule) => rule.includes("leases"));
  };
  assert.deepEqual(await leasesOf('{ leaderElection: { name: "boats" } }'), [
    "Role boats-system: leases get,create,update",
  ]);
  const elected = boats(
    '{ leaderElection: { name: "boats" } }',
    "operator.register(Boat, { reconcile });",
  );
  const more = writeText(
    temporaryFolder(),
    "requests",
    [
      { verb: "delete", group: "coordination.k8s.io", resource: "leases" },
      { verb: "get", group: "cars.example", resource: "leases" },
    ].map((request) => `${JSON.stringify(request)}\n`).join(""),
  );
  const { found } = await manifests(elected, `--recorded=${more}`);
  const rules = rulesOf(found).filter((rule) => rule.includes("leases"));
  assert.deepEqual(rules.toSorted(), [
    "ClusterRole: leases delete",
    "ClusterRole: leases get",
    "Role boats-system: leases get,create,update",
  ]);
  // Leases that are not its own are the operator's business.
  assert.deepEqual(await leasesOf(""), [
    "ClusterRole: leases get,create,update",
  ]);
});

test("coracle manifests replaces the pod first unless all operators share objects", async () => {
  const strategyOf = async (...options: readonly string[]) => {
    const [first = "", ...more] = options.map((one) =>
      boats(one, "operator.register(Boat, { reconcile });")
    );
    const { found } = await manifests(first, ...more);
    return found.at(-1)?.spec?.["strategy"];
  };
  const leading = '{ leaderElection: { name: "boats" } }';
  const sharded = '{ sharding: { name: "boats" } }';
  assert.deepEqual(await strategyOf(leading, ""), { type: "Recreate" });
  assert.deepEqual(await strategyOf("", sharded), { type: "Recreate" });
  assert.equal(await strategyOf(leading, sharded), undefined);
});

test("coracle manifests gives the pod time for the longest stop of its operators", async () => {
  const secondsOf = async (...options: readonly string[]) => {
    const [first = "", ...more] = options.map((one) =>
      boats(one, "operator.register(Boat, { reconcile });")
    );
    const { found } = await manifests(first, ...more);
    const { template } = found.at(-1)?.spec as {
      template: { spec: { terminationGracePeriodSeconds?: number } };
    };
    return template.spec.terminationGracePeriodSeconds;
  };
  const long = '{ shutdownGrace: "90.5s" }';
  assert.equal(await secondsOf("", '{ shutdownGrace: "1s" }'), undefined);
  assert.equal(await secondsOf(long, ""), 111);
});

const DIGEST = `sha256:${"0a".repeat(32)}`;

const imageFile = () => boats("{}", "operator.register(Boat, { reconcile });");

test("manifests takes each image that a container runtime could pull", async () => {
  const images = [
    "a",
    "a/b__c.d--e/f:V1.0-rc_1",
    "localhost:5000/a",
    "Registry.Example.com/a:1",
    "[::1]:5000/a",
    `a@${DIGEST}`,
    `a.b/c:1@${DIGEST}`,
  ];
  for (const image of images) {
    const { code, said } = await manifests(imageFile(), "--image", image);
    assert.equal(code, 0, `${image}: ${said}`);
  }
});

test("manifests refuses what is no reference to an image", async () => {
  const images = [
    "UPPER CASE",
    "Shop:1",
    "a b",
    "a:",
    "a:1:2",
    "a//b",
    "https://a.example/b",
    "-a",
    `a:${"t".repeat(129)}`,
    "a@sha256:12",
    `a@sha256:${"0".repeat(31)}`,
  ];
  for (const image of images) {
    const { code, said, found } = await manifests(
      imageFile(),
      "--image",
      image,
    );
    assert.equal(code, 2, image);
    assert.equal(found.length, 0);
    assert.match(said, /--image must be such as .*: received/, image);
  }
});

test("nameOf makes a name of an object of that of a file", () => {
  for (
    const [file, name] of [
      ["ops/My_Shop.op.ts", "my-shop"],
      ["_shop--2_.mjs", "shop-2"],
    ] as const
  ) assert.equal(nameOf(file), name);
  assert.throws(() => nameOf("_.ts"), /^UsageError: Cannot name the operator/);
});

test("managedKinds proposes a similar kind", async () => {
  assert.deepEqual(
    (await managedKinds(["ConfigMap", "Service"])).map(({ kind }) => kind),
    ["ConfigMap", "Service"],
  );
  await assert.rejects(
    managedKinds(["ConfigMaps"]),
    /received "ConfigMaps" \(did you mean "ConfigMap"\?\)$/,
  );
});

test("recorded requests are listed by resource, with their verbs in order", () => {
  const request = (verb: string, group: string, resource: string) => ({
    verb,
    group,
    resource,
  });
  const requests = [
    request("patch", "apps", "deployments/scale"),
    request("list", "", "secrets"),
    request("get", "", "secrets"),
    request("patch", "apps", "deployments"),
    request("update", "", "pods/status"),
    request("get", "", "nodes"),
    request("get", "", "apples"),
  ];
  assert.equal(
    recordText(requests),
    "  apples: get\n  deployments.apps: patch\n  deployments.apps/scale: patch\n" +
      "  nodes: get\n  pods/status: update\n  secrets: get, list\n",
  );
  assert.deepEqual(writtenResources(requests), ["deployments.apps"]);
});

test("recorded requests are granted where the operator watches", () => {
  const placesOf = (
    namespace: string | undefined,
    watched: "all" | readonly string[],
  ) =>
    recordedAccess(
      [{ verb: "get", group: "", resource: "secrets", namespace }],
      watched,
    )[0]?.namespaces;
  assert.equal(placesOf(undefined, ["a"]), "all");
  assert.equal(placesOf("vault", "all"), "all");
  assert.equal(placesOf("*", "all"), "all");
  assert.deepEqual(placesOf("vault", ["a"]), ["vault"]);
  assert.deepEqual(placesOf("*", ["a", "b"]), ["a", "b"]);
});

test("coracle manifests prints objects in the order to apply them", async () => {
  const { found } = await manifests(
    boats("", "operator.register(Boat, { reconcile });"),
  );
  assert.deepEqual(found.map(({ kind }) => kind), [
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterRole",
    "ClusterRole",
    "Deployment",
  ]);
});

test("coracle manifests lets users see and change the operator's kinds", async () => {
  const { found } = await manifests(boats(
    "",
    `operator.register(Boat, { reconcile });
operator.register(Ship, { reconcile });`,
  ));
  const into = (metadata: Manifest["metadata"]) =>
    Object.keys(metadata.labels ?? {}).flatMap((label) =>
      label.split("/aggregate-to-")[1] ?? []
    );
  assert.deepEqual(
    found.filter(isForUsers).map(({ metadata, rules }) => [
      metadata.name,
      into(metadata),
      rules,
    ]),
    [["viewer", ["view"], ["get", "list", "watch"]], [
      "editor",
      ["edit", "admin"],
      ["create", "delete", "get", "list", "patch", "update", "watch"],
    ]].map(([role, roles, verbs]) => [`boats-${role}`, roles, [{
      apiGroups: ["test.coracle.dev"],
      resources: ["boats", "ships"],
      verbs,
    }]]),
  );
  const none = await manifests(boats(
    "",
    "operator.register(ConfigMap, { reconcile });",
  ));
  assert.deepEqual(none.found.filter(isForUsers), []);
});

test("coracle manifests takes the operator that --export names", async () => {
  const file = boats(
    "",
    `operator.register(Boat, { reconcile });
export const ships = new Operator();
ships.register(Ship, { reconcile });`,
  );
  const { code, found } = await manifests(file, "--export=ships");
  assert.equal(code, 0);
  const rules = rulesOf(found).join();
  assert(rules.includes("ships") && !rules.includes("boats"), rules);
});

test("coracle manifests says each assumption of several operators once", async () => {
  const file = () => boats("", "operator.register(Boat, { reconcile });");
  const { said } = await manifests(file(), file());
  assert.equal(said.match(/no probes/g)?.length, 1);
});

test("coracle manifests says all rights over roles that it grants", async () => {
  const { said } = await manifests(
    boats("", "operator.register(Boat, { reconcile });"),
    "--manages=RoleBinding,Role",
  );
  assert.match(said, /^Granted: bind and escalate on all roles/m);
});

test("coracle manifests prints a definition of several operators once", async () => {
  const file = (name: string) =>
    boats(
      "",
      `operator.register(Boat, { reconcile }, { name: "${name}" });`,
    );
  const { found } = await manifests(file("a"), file("b"));
  assert.equal(
    found.filter(({ kind }) => kind === "CustomResourceDefinition").length,
    1,
  );
});

test("recorded requests are of a namespaced kind if any has a namespace", () => {
  const request = (resource: string, namespace?: string) => ({
    verb: "get",
    group: "",
    resource,
    namespace,
  });
  const found = recordedAccess(
    [request("nodes"), request("secrets"), request("secrets", "a")],
    "all",
  );
  assert.deepEqual(found.map(({ kind }) => kind.scope), [
    "Cluster",
    "Namespaced",
    "Namespaced",
  ]);
});

test("coracle manifests takes names of at most 63 characters", async () => {
  const file = () => boats("", "operator.register(Boat, { reconcile });");
  const named = async (length: number) => {
    const { code } = await manifests(
      file(),
      `--name=${"a".repeat(length)}`,
      "--namespace=a",
    );
    return code;
  };
  assert.deepEqual([await named(63), await named(64)], [0, 2]);
});

test("coracle manifests says that probes on any port have no address", async () => {
  const { said, found } = await manifests(
    boats(
      "{ probes: { port: 0 } }",
      "operator.register(Boat, { reconcile });",
    ),
  );
  assert.match(said, /^Left out: the probes, since .* port 0\.$/m);
  assert.doesNotMatch(JSON.stringify(found.at(-1)), /livenessProbe/);
});

test("coracle manifests reads a file that is given twice once", async () => {
  const file = boats("", "operator.register(Boat, { reconcile });");
  const { code, said } = await manifests(file, file);
  assert.equal(code, 0, said);
});

test("coracle manifests writes a kustomization for a given namespace", async () => {
  const folder = temporaryFolder();
  const { code, said } = await manifests(
    boats("", "operator.register(Boat, { reconcile });"),
    "--format=kustomize",
    `--output=${folder}`,
    "--namespace=docks",
  );
  assert.equal(code, 0, said);
  assert.match(
    readFileSync(join(folder, "namespace.yaml"), "utf8"),
    /name: docks$/m,
  );
});

test("coracle manifests names the operators of several files after the first", async () => {
  const [first, second] = ["first", "second"].map((name) => {
    const file = boats("", "operator.register(Boat, { reconcile });");
    return writeText(dirname(file), `${name}.mjs`, readFileSync(file, "utf8"));
  }) as [string, string];
  const { found } = await manifests(first, second);
  assert.equal(found.at(-1)?.metadata.name, "first");
  assert.equal(found[0]?.metadata.name, "first-system");
});

test("coracle manifests makes webhooks reachable, and grants what registers them", async () => {
  const file = boats(
    `{ webhooks: { service: { name: "boats-admission" } } }`,
    `operator.admit(Boat, { validate() {} }, { failurePolicy: "Fail" });`,
  );
  const { code, found } = await manifests(file, "--namespace=shop");
  assert.equal(code, 0);
  const named = (kind: string) =>
    found.find((one) => one.kind === kind) as Manifest;
  const { metadata, spec } = named("Service");
  assert.equal(
    `${metadata.namespace}/${metadata.name}`,
    "shop/boats-admission",
  );
  assert.deepEqual(spec?.["ports"], [
    { name: "https", port: 443, targetPort: "webhooks" },
  ]);
  assert.match(
    JSON.stringify(named("Deployment").spec),
    /"ports":\[\{"name":"webhooks","containerPort":9443\}\]/,
  );
  // Filled in by the operator, and deleted with the other manifests.
  for (const kind of ["Validating", "Mutating"]) {
    const configuration = named(`${kind}WebhookConfiguration`);
    assert.equal(configuration.metadata.name, "boats-admission.shop");
    assert(!("webhooks" in configuration));
  }
  assert(named("PodDisruptionBudget") !== undefined);
  assert.deepEqual(rulesOf(found), [
    "ClusterRole: mutatingwebhookconfigurations create",
    "ClusterRole: validatingwebhookconfigurations create",
    "ClusterRole: mutatingwebhookconfigurations boats-admission.shop get,patch,delete",
    "ClusterRole: validatingwebhookconfigurations boats-admission.shop get,patch,delete",
    "Role shop: secrets create",
    "Role shop: secrets boats-admission.shop get,update,delete",
  ]);
});

test("coracle manifests has cert-manager issue the certificate of webhooks", async () => {
  const { found } = await manifests(
    boats(
      `{ webhooks: { service: { name: "guard" }, certificates: "cert-manager" } }`,
      `operator.admit(Boat, { validate() {} }, { failurePolicy: "Fail" });`,
    ),
    "--namespace=shop",
  );
  const issued = found.filter(({ apiVersion }) =>
    apiVersion === "cert-manager.io/v1"
  );
  assert.deepEqual(
    issued.map(({ kind, metadata: { namespace, name } }) =>
      `${kind} ${namespace}/${name}`
    ),
    [
      "Issuer shop/guard.shop-root",
      "Certificate shop/guard.shop-ca",
      "Issuer shop/guard.shop-ca",
      "Certificate shop/guard.shop",
    ],
  );
  const { dnsNames, secretName } = issued[3]?.spec ?? {};
  assert.deepEqual([dnsNames, secretName], [["guard.shop.svc"], "guard.shop"]);
  const pod = JSON.stringify(found.at(-1)?.spec);
  assert.match(
    pod,
    /\{"name":"coracle-webhooks","secret":\{"secretName":"guard.shop"\}\}/,
  );
  assert.match(
    pod,
    /\{"name":"coracle-webhooks","mountPath":"\/etc\/coracle\/webhooks","readOnly":true\}/,
  );
  // It keeps no Secret of its own.
  assert(!rulesOf(found).some((rule) => rule.includes("secrets")));
});

test("coracle manifests leads to event sources that are called from outside", async () => {
  const source = (name: string, host: string) =>
    `webhookSource({ name: "${name}", check: "none", primaries: () => [], port: 9000, host: "${host}" })`;
  const register = `const { webhookSource } = await import("${
    url("sources/mod.ts")
  }");
operator.register(Boat, { reconcile }, { sources: [${
    source("pushes", "0.0.0.0")
  }, ${source("local", "127.0.0.1")}] });`;
  const { found, said } = await manifests(boats("", register));
  const service = found.find(({ kind }) => kind === "Service");
  assert.equal(service?.metadata.name, "boats-sources");
  assert.deepEqual(service?.spec, {
    selector: { "app.kubernetes.io/name": "boats" },
    ports: [{ name: "sources", port: 9000, targetPort: "sources" }],
  });
  assert.match(
    JSON.stringify(found.at(-1)?.spec),
    /"ports":\[\{"name":"sources","containerPort":9000\}\]/,
  );
  assert.match(said, /Left out: the port of the event source "local"/);
});

test("coracle manifests gives the container the variables that decide on rights", async () => {
  const read =
    `{ namespaces: (globalThis.process ?? {}).env.BOATS_IN?.split(",") ?? "all" }`;
  // Each is a module of its own, which reads the variables when it is loaded.
  const file = () => boats(read, "operator.register(Boat, { reconcile });");
  const env = (found: readonly Manifest[]) =>
    JSON.stringify(found.at(-1)?.spec).match(/"env":(\[.*?\])/)?.[1] ?? "";
  process.env["BOATS_IN"] = "east,west";
  process.env["CORACLE_OPERATOR_SHUTDOWN_GRACE"] = "5s";
  try {
    const { found } = await manifests(file(), "--env", "BOATS_IN");
    assert(rulesOf(found).some((rule) => rule.startsWith("Role east:")));
    assert.match(env(found), /\{"name":"BOATS_IN","value":"east,west"\}/);
    assert.match(
      env(found),
      /\{"name":"CORACLE_OPERATOR_SHUTDOWN_GRACE","value":"5s"\}/,
    );
    delete process.env["CORACLE_OPERATOR_SHUTDOWN_GRACE"];
    const { said } = await manifests(file());
    assert.match(said, /watches east, west wherever it runs;.* by --env\.\n/);
    const unset = await manifests(file(), "--env", "BOATS_AT");
    assert.equal(unset.code, 2);
    assert.match(unset.said, /not set here: received "BOATS_AT"/);
    const given = await manifests(file(), "--env", "TOKEN=hidden");
    assert.match(given.said, /not set here: received "TOKEN"/);
    assert.doesNotMatch(given.said, /hidden/);
  } finally {
    delete process.env["BOATS_IN"];
    delete process.env["CORACLE_OPERATOR_SHUTDOWN_GRACE"];
  }
});

const POLICY = `operator.admit(validatingPolicy(Namespace, {
  name: "teams.test.coracle.dev",
  params: { kind: ConfigMap, name: "teams", namespace: "shop" },
  validations: [{ expression: "object.metadata.name in params.data" }],
}));`;

test("coracle manifests prints policies, and grants what applies them", async () => {
  const file = boats("", POLICY);
  const { code, found, said } = await manifests(
    file,
    "--namespace=shop",
    "--explain",
  );
  assert.equal(code, 0);
  assert.deepEqual(
    found.filter(({ kind }) => kind.includes("Policy"))
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    [
      "ValidatingAdmissionPolicy teams.test.coracle.dev",
      "ValidatingAdmissionPolicyBinding teams.test.coracle.dev",
    ],
  );
  assert(!found.some(({ kind }) => kind.includes("Webhook")));
  assert.deepEqual(rulesOf(found), [
    "ClusterRole: configmaps get",
    "ClusterRole: validatingadmissionpolicies create",
    "ClusterRole: validatingadmissionpolicybindings create",
    "ClusterRole: validatingadmissionpolicies teams.test.coracle.dev get,patch,delete",
    "ClusterRole: validatingadmissionpolicybindings teams.test.coracle.dev get,patch,delete",
  ]);
  assert.match(
    said,
    /teams\.test\.coracle\.dev works from Kubernetes 1\.30 on/,
  );
  assert.match(
    said,
    /^v1 Namespace, ValidatingAdmissionPolicy teams\.test\.coracle\.dev\n {2}policy: /m,
  );
});

const VERSIONS = `const Hull = defineKind({
  ...names, kind: "Hull", versions: [{
    name: "v1beta1", spec: z.object({}), up: () => ({ spec: {} }), down: () => ({ spec: {} }),
  }],
});
operator.register(Hull, { reconcile });
${POLICY}`;

test("coracle manifests has definitions converted by the operator's own Service", async () => {
  const fleet = () =>
    boats(`{ webhooks: { service: { name: "hulls", port: 8443 } } }`, VERSIONS);
  const { found } = await manifests(fleet(), "--namespace=shop");
  const conversionOf = (one: Manifest | undefined) =>
    (one?.spec?.["conversion"] as {
      webhook: { clientConfig: { service: object } };
    }).webhook.clientConfig.service;
  const kind = "CustomResourceDefinition";
  assert.deepEqual(conversionOf(found.find((one) => one.kind === kind)), {
    namespace: "shop",
    name: "hulls",
    port: 8443,
    path: "/convert",
  });
  const service = found.find((one) => one.kind === "Service");
  // A first start waits for its own conversion.
  assert.equal(service?.spec?.["publishNotReadyAddresses"], true);
  assert(
    rulesOf(found).includes(
      "ClusterRole: customresourcedefinitions hulls.test.coracle.dev get,patch",
    ),
  );
  const chart = temporaryFolder();
  const helm = await manifests(
    fleet(),
    "--format=helm",
    `--output=${chart}`,
  );
  assert.equal(helm.code, 0, helm.said);
  const template = (name: string) =>
    readFileSync(join(chart, "templates", name), "utf8");
  assert.match(
    template("crds/hulls.test.coracle.dev.yaml"),
    /namespace: \{\{ \.Release\.Namespace \| quote \}\}/,
  );
  assert.match(
    template("webhooks.yaml"),
    /name: "hulls\.\{\{ \.Release\.Namespace \}\}"\n/,
  );
  assert.match(
    template("policies.yaml"),
    /^\{\{- if \.Capabilities\.APIVersions\.Has "admissionregistration\.k8s\.io\/v1\/ValidatingAdmissionPolicy" \}\}\n---\n/m,
  );
  const bare = await manifests(boats("", VERSIONS));
  assert.equal(bare.code, 2);
  assert.match(bare.said, /give the operator the option webhooks: \{ service/);
});
