import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { kindFromCrd } from "@coracle/dev";
import { checkStatus, crdManifest, defineKind } from "@coracle/operator/crd";

const Cell = defineKind({
  group: "kais.io",
  version: "v1",
  kind: "Cell",
  plural: "cellula",
  shortNames: ["c"],
  scope: "Cluster",
  labels: { app: "kais" },
  spec: z.object({ size: z.int() }),
  status: z.object({ ready: z.boolean() }).partial(),
  versions: [{ name: "v1alpha1", spec: z.object({ big: z.boolean() }) }],
});

test("kindFromCrd gives a kind with the same definition", () => {
  const kind = kindFromCrd(crdManifest(Cell));
  assert.deepEqual(crdManifest(kind), crdManifest(Cell));
  const { group, version, plural, scope } = kind;
  assert.deepEqual([group, version, plural, scope], [
    "kais.io",
    "v1",
    "cellula",
    "Cluster",
  ]);
  const old = kindFromCrd(crdManifest(Cell), "v1alpha1");
  assert.equal(old.version, "v1alpha1");
  assert.equal(old.statusSchema, undefined);
});

test("kindFromCrd derives the names that a file leaves out", () => {
  const { spec, ...rest } = crdManifest(Cell);
  const { singular, listKind } = kindFromCrd({
    ...rest,
    spec: { ...spec, names: { kind: "Cell", plural: "cellula" } },
  });
  assert.deepEqual([singular, listKind], ["cell", "CellList"]);
});

test("kindFromCrd takes the stored version, if it is served", () => {
  const { metadata, spec, ...rest } = crdManifest(Cell);
  const [version] = spec.versions;
  const crd = {
    ...rest,
    metadata: { ...metadata, annotations: { a: "b" } },
    spec: {
      ...spec,
      versions: [
        { ...version, name: "v2", storage: false },
        { ...version, name: "v3", storage: false, served: false },
        version,
      ],
    },
  };
  const kind = kindFromCrd(crd);
  assert.equal(kind.version, "v1");
  assert.deepEqual(kind.annotations, { a: "b" });
  const input = { target: "draft-2020-12" } as const;
  const { jsonSchema } = kind.specSchema["~standard"] as unknown as {
    jsonSchema: { input(options: object): { properties: object } };
  };
  assert.deepEqual(Object.keys(jsonSchema.input(input).properties), ["size"]);
  assert.throws(
    () => kindFromCrd(crd, "v3"),
    /does not serve the version: received v3 for v2, v1$/,
  );
});

test("kindFromCrd finds unknown fields of a status", async () => {
  const kind = kindFromCrd(crdManifest(Cell));
  await checkStatus(kind, { ready: true });
  await assert.rejects(
    checkStatus(kind, { redy: true }),
    /status\.redy: there is no such field, did you mean "ready"/,
  );
});

test("kindFromCrd refuses other objects and versions", () => {
  const manifest = crdManifest(Cell);
  const what =
    "Cannot read a kind: it must be a CustomResourceDefinition of apiextensions.k8s.io/v1 with names and versions: received";
  for (
    const [crd, version, message] of [
      [{ apiVersion: "v1", kind: "Pod" }, undefined, `${what} v1 Pod`],
      [null, undefined, `${what} null`],
      [
        { ...manifest, apiVersion: "apiextensions.k8s.io/v1beta1" },
        undefined,
        `${what} apiextensions.k8s.io/v1beta1 CustomResourceDefinition`,
      ],
      [
        manifest,
        "v2",
        "Cannot read the kind Cell: its CustomResourceDefinition does not serve the version: received v2 for v1, v1alpha1",
      ],
    ] as const
  ) {
    assert.throws(() => kindFromCrd(crd as object, version), {
      name: "TypeError",
      message,
    });
  }
});

test("kindFromCrd gives a frozen kind, also of a definition without metadata", () => {
  const { metadata: _, ...manifest } = crdManifest(Cell);
  const kind = kindFromCrd(manifest);
  assert.ok(Object.isFrozen(kind));
  assert.deepEqual([kind.labels, kind.annotations], [{}, {}]);
});

test("kindFromCrd refuses versions that are missing, or not served", () => {
  const { spec, ...manifest } = crdManifest(Cell);
  assert.throws(
    () => kindFromCrd({ ...manifest, spec: { ...spec, versions: [null] } }),
    /^TypeError: Cannot read a kind: it must be a CustomResourceDefinition/,
  );
  assert.throws(
    () =>
      kindFromCrd({
        ...manifest,
        spec: { ...spec, versions: [...spec.versions, null] },
      }),
    /^TypeError: Cannot read a kind: it must be a CustomResourceDefinition/,
  );
  for (const wrong of [{ scope: "World" }, { group: 1 }]) {
    assert.throws(
      () => kindFromCrd({ ...manifest, spec: { ...spec, ...wrong } }),
      /kindFromCrd\(\)/,
    );
  }
  const versions = spec.versions.map((one) => ({ ...one, served: false }));
  assert.throws(
    () => kindFromCrd({ ...manifest, spec: { ...spec, versions } }),
    /does not serve the version: received v1 for none$/,
  );
});
