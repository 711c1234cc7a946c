import { ApiServer } from "@coracle/dev/apiserver";
import { untyped } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { planFor, readThrough } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";

const called: string[] = [];
const answers = (name: string) => () => {
  called.push(name);
  return Promise.reject(new Error(`${name} is away`));
};
const server = await ApiServer.start({
  port: false,
  services: {
    "others/guard": answers("guard"),
    "https://guard.example.com": answers("guard by URL"),
  },
});
after(() => server.stop());
const { client } = server;
await installCrd(client, Site);
for (const name of ["alpha", "bravo"]) {
  const metadata = { namespace: "default", name };
  await client.create(Site, { metadata, spec: { html: `<p>${name}` } });
}
const Configuration = untyped({
  group: "admissionregistration.k8s.io",
  version: "v1",
  kind: "ValidatingWebhookConfiguration",
});
await client.create(Configuration, {
  metadata: { name: "others" },
  webhooks: Object.entries({
    service: { service: { namespace: "others", name: "guard" } },
    url: { url: "https://guard.example.com/check" },
  }).map(([name, clientConfig]) => ({
    name: `${name}.guard.example.com`,
    clientConfig,
    failurePolicy: "Fail",
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    rules: [{
      apiGroups: [""],
      apiVersions: ["v1"],
      resources: ["configmaps"],
      operations: ["CREATE"],
    }],
  })),
});
let reads = 0;
const { changes, failures } = await planFor(server.transport, "site_webhooks", {
  read(kinds, { primaries }) {
    reads++;
    return readThrough(server.transport, { kinds, primaries });
  },
});

test("plan: webhooks are registered as the operator registers them", () => {
  const [own] = changes.filter(({ kind }) =>
    kind === "ValidatingWebhookConfiguration"
  );
  assert.equal(own?.action, "create");
  assert.equal(own?.name, "hooks.sites");
  const webhooks = own?.fields.find(({ path }) => path === ".webhooks");
  assert.deepEqual(
    (webhooks?.after as { clientConfig: unknown }[])
      .map(({ clientConfig }) => clientConfig),
    [{
      service: {
        namespace: "sites",
        name: "hooks",
        port: 8443,
        path: "/validate/core/v1/configmap",
      },
    }],
  );
});

test("plan: registrations of webhooks are read with the first kinds", () => {
  assert.equal(reads, 1);
});

test("plan: webhooks of others let everything pass and are not called", () => {
  assert.deepEqual(called, []);
  const made = changes.filter(({ kind }) => kind === "ConfigMap");
  assert.deepEqual(made.map(({ action, name }) => [action, name]), [
    ["create", "alpha-page"],
    ["create", "bravo-page"],
  ]);
  assert.deepEqual(failures, []);
});
