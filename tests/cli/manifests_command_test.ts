import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { nameOf } from "../../dev/cli/manifests_command.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import {
  boats,
  type Manifest,
  manifests,
  rulesOf,
} from "../support/printed_manifests.ts";

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

test("nameOf makes a name of an object of that of a file", () => {
  for (
    const [file, name] of [
      ["ops/My_Shop.op.ts", "my-shop"],
      ["_shop--2_.mjs", "shop-2"],
    ] as const
  ) assert.equal(nameOf(file), name);
  assert.throws(() => nameOf("_.ts"), /^UsageError: Cannot name the operator/);
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

const POLICY = `operator.admit(validatingPolicy(Namespace, {
  name: "teams.test.coracle.dev",
  params: { kind: ConfigMap, name: "teams", namespace: "shop" },
  validations: [{ expression: "object.metadata.name in params.data" }],
}));`;

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
