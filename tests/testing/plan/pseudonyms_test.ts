import assert from "node:assert/strict";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { crdManifest } from "@coracle/operator/crd";
import { Pseudonyms } from "../../../dev/testing/plan/pseudonyms.ts";
import {
  Snapshot,
  type SnapshotResource,
} from "../../../dev/testing/plan/snapshot.ts";
import { Site } from "./fixtures/site.ts";

const SITE = resource("plan.coracle.dev", "Site", "sites");
const CRDS = resource(
  "apiextensions.k8s.io",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  "Cluster",
);
const CONFIG = resource("", "ConfigMap", "configmaps");
const CLASS = resource(
  "storage.k8s.io",
  "StorageClass",
  "storageclasses",
  "Cluster",
);

function resource(
  group: string,
  kind: string,
  plural: string,
  scope: "Namespaced" | "Cluster" = "Namespaced",
): SnapshotResource {
  return { group, version: "v1", kind, plural, scope, objects: 1 };
}

/** Objects of a snapshot after their names were replaced. */
async function renamed(
  objects: readonly (readonly [SnapshotResource, UntypedObject])[],
  keep: readonly string[] = [],
) {
  const snapshot = new Snapshot();
  snapshot.add(CRDS, [crdManifest(Site) as unknown as UntypedObject]);
  for (const [resource, object] of objects) snapshot.add(resource, [object]);
  const resources = [CRDS, ...new Set(objects.map(([resource]) => resource))];
  snapshot.end({
    ...{ at: 0, server: "v1.36.0", hidesSecrets: true, resources },
    namespaces: ["shop"],
    unread: [{ resource: "pods", namespace: "shop", why: "forbidden" }],
  });
  const names = new Pseudonyms(snapshot, { keep });
  const copies: UntypedObject[] = [];
  await names.write(snapshot, {
    add: ({ plural }, items) => {
      if (plural !== CRDS.plural) copies.push(...items);
    },
  });
  return { copies, info: names.info(snapshot.info) };
}

function object(
  kind: string,
  name: string,
  rest: Readonly<Record<string, unknown>> = {},
  metadata: object = {},
): UntypedObject {
  return {
    apiVersion: "v1",
    kind,
    metadata: { name, namespace: "shop", ...metadata },
    ...rest,
  } as UntypedObject;
}

test("Pseudonyms are the same wherever a name is written", async () => {
  const { copies: [site, config], info } = await renamed([
    [SITE, object("Site", "alpha")],
    [
      CONFIG,
      object("ConfigMap", "alpha-web", {
        data: {
          "alpha.conf": "host=alpha.example.com alphabet\nref: shop/alpha",
        },
      }, {
        uid: "alpha",
        labels: { "app.kubernetes.io/name": "alpha", "alpha": "Always" },
        ownerReferences: [{ kind: "Site", name: "alpha", uid: "alpha" }],
        managedFields: [{
          manager: "alpha",
          fieldsV1: {
            "f:metadata": { "f:labels": { "f:alpha": {} } },
            "f:spec": { 'k:{"name":"alpha"}': {} },
          },
        }],
      }),
    ],
  ]);
  assert.deepEqual(site?.metadata, {
    name: "site-1",
    namespace: "namespace-1",
  });
  assert.deepEqual(config, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "site-1-web",
      namespace: "namespace-1",
      uid: "alpha",
      labels: { "app.kubernetes.io/name": "site-1", "site-1": "Always" },
      ownerReferences: [{ kind: "Site", name: "site-1", uid: "alpha" }],
      managedFields: [{
        manager: "alpha",
        fieldsV1: {
          "f:metadata": { "f:labels": { "f:site-1": {} } },
          "f:spec": { 'k:{"name":"site-1"}': {} },
        },
      }],
    },
    data: {
      "site-1.conf":
        "host=site-1.example.com alphabet\nref: namespace-1/site-1",
    },
  });
  assert.deepEqual([info.namespaces, info.unread[0]?.namespace], [
    ["namespace-1"],
    "namespace-1",
  ]);
});

test("Pseudonyms leave names of Kubernetes, of APIs and those to keep", async () => {
  const others = { namespace: "default" };
  const { copies } = await renamed([
    [SITE, object("Site", "metadata", {}, { ...others, labels: { a: "1" } })],
    [SITE, object("Site", "kubernetes", {}, others)],
    [CONFIG, object("ConfigMap", "kube-root-ca.crt", {}, others)],
    [CONFIG, object("ConfigMap", "settings", {}, others)],
    [CLASS, object("StorageClass", "fast", { parameters: { group: "fast" } })],
    [
      CONFIG,
      object("ConfigMap", "storage", {
        data: { a: "app.metadata.io/x", group: "storage.k8s.io" },
      }, others),
    ],
  ], ["settings"]);
  assert.deepEqual(
    copies.map(({ metadata }) => metadata.name).filter((name) =>
      !/^(?:site|configmap)-\d$/.test(name)
    ),
    ["kubernetes", "kube-root-ca.crt", "settings", "fast"],
  );
  const storage = copies.find((one) => "data" in one);
  assert.deepEqual(storage?.["data"], {
    a: "app.metadata.io/x",
    group: "storage.k8s.io",
  });
});

test("A longer name has its own pseudonym, unless the name of a primary is in it", async () => {
  const { copies } = await renamed([
    [CONFIG, object("ConfigMap", "shop-prices")],
    [CONFIG, object("ConfigMap", "new-alpha.one-web-2")],
    [CONFIG, object("ConfigMap", "alpha")],
    [SITE, object("Site", "alpha.one")],
    [SITE, object("Site", "alpha.one-web")],
  ]);
  const [prices, web, alpha, one, other] = copies.map(({ metadata }) =>
    metadata.name
  );
  assert.match(`${prices} ${alpha}`, /^configmap-[12] configmap-[12]$/);
  assert.match(`${one} ${other}`, /^site-[12] site-[12]$/);
  assert.equal(web, `new-${other}-2`);
});
