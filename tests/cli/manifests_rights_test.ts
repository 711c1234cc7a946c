import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import {
  managedKinds,
  recordedAccess,
  recordText,
  writtenResources,
} from "../../dev/cli/operator_manifests.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import {
  boats,
  isForUsers,
  type Manifest,
  manifests,
  rulesOf,
  url,
} from "../support/printed_manifests.ts";

const MANAGE = "get,list,watch,create,update,patch,delete";

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

test("coracle manifests says all rights over roles that it grants", async () => {
  const { said } = await manifests(
    boats("", "operator.register(Boat, { reconcile });"),
    "--manages=RoleBinding,Role",
  );
  assert.match(said, /^Granted: bind and escalate on all roles/m);
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
    for (const name of ["constructor", "__proto__"]) {
      const { said } = await manifests(file(), "--env", name);
      assert.match(said, /--env names a variable that is not set here/);
    }
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
