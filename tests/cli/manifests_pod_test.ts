import assert from "node:assert/strict";
import { test } from "node:test";
import {
  boats,
  type Manifest,
  manifests,
  rulesOf,
  url,
} from "../support/printed_manifests.ts";

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
