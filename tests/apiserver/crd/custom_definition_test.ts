import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema, UntypedObject } from "@coracle/operator/core";
import { ADMINISTRATOR } from "../../../dev/apiserver/request/user.ts";
import { openApiV3 } from "../../../dev/apiserver/discovery/openapi_v3.ts";
import { customResourceDefinition } from "../../../dev/apiserver/crd/custom_definition.ts";
import type {
  ConversionDeps,
  HookContext,
  ResourceDefinition,
} from "../../../dev/apiserver/registry.ts";
import { StatusError } from "../../../dev/apiserver/status.ts";

const SPEC: OpenApiSchema = {
  type: "object",
  properties: {
    n: { type: "integer" },
    color: { type: "string", default: "red" },
    pod: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
    },
  },
};

function served(
  options: {
    readonly status?: boolean;
    readonly versions?: readonly Record<string, unknown>[];
  } = {},
): ResourceDefinition {
  const version = (name: string, spec = SPEC) => ({
    name,
    served: true,
    storage: name === "v1",
    schema: {
      openAPIV3Schema: {
        type: "object",
        properties: { spec, status: { type: "object" } },
      },
    },
    ...(options.status ? { subresources: { status: {} } } : {}),
  });
  const v2: OpenApiSchema = {
    type: "object",
    properties: { n: { type: "integer" }, fresh: { type: "string" } },
  };
  const extra = options.versions ?? [];
  return customResourceDefinition({
    metadata: { name: "boats.a.dev" },
    spec: {
      group: "a.dev",
      scope: "Namespaced",
      names: {
        kind: "Boat",
        plural: "boats",
        singular: "boat",
        listKind: "BoatList",
      },
      versions: [
        version("v1"),
        { ...version("v2", v2), ...extra[0] },
        ...extra.slice(1).map((one) => ({ ...version("v0"), ...one })),
      ],
    },
  }, NO_WEBHOOKS);
}

/** No definition here is converted by a webhook. */
const NO_WEBHOOKS = {} as ConversionDeps;

function context(version = "v1", subresource?: string): HookContext {
  return {
    version,
    subresource,
    now: 0,
    dryRun: false,
    apply: false,
    user: ADMINISTRATOR,
    find: () => undefined,
    list: () => [],
    warn: () => {},
  };
}

function boat(fields: Record<string, unknown> = {}): UntypedObject {
  return {
    apiVersion: "a.dev/v1",
    kind: "Boat",
    metadata: { name: "a", generation: 1 },
    spec: { n: 1 },
    ...fields,
  };
}

function decoded(body: unknown): ReturnType<
  ResourceDefinition["versions"][number]["decode"]
> {
  const [version] = served().versions.filter(({ name }) => name === "v1");
  assert.ok(version);
  return version.decode(body as UntypedObject);
}

test("Decoding drops and reports unknown fields of a custom resource", () => {
  const { object, problems } = decoded({
    ...boat({ spec: { n: 1, zzz: 1 }, extra: {} }),
    metadata: { name: "a", nope: 1, labels: {}, generation: 0 },
  });
  assert.deepEqual(object, {
    apiVersion: "a.dev/v1",
    kind: "Boat",
    metadata: { name: "a" },
    spec: { n: 1 },
  });
  assert.deepEqual(problems, [
    'unknown field "metadata.nope"',
    'unknown field "extra"',
    'unknown field "spec.zzz"',
  ]);
});

test("Decoding treats embedded metadata like that of objects", () => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", labels: null, nope: 1 },
    spec: { any: [1] },
  };
  const { object, problems } = decoded(boat({ spec: { pod } }));
  const spec = object.spec as { readonly pod: unknown };
  assert.deepEqual(spec.pod, { ...pod, metadata: { name: "p" } });
  assert.deepEqual(problems, ['unknown field "spec.pod.metadata.nope"']);
});

const WRONG_METADATA: readonly (readonly [unknown, string])[] = [
  [
    { labels: { a: 1 } },
    "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
  ],
  [
    { labels: "x" },
    "json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string",
  ],
  [
    { finalizers: "x" },
    "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
  ],
  [
    { ownerReferences: [{ name: 1 }] },
    "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
  ],
  [
    { generation: "1" },
    "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64",
  ],
  [
    { creationTimestamp: "x" },
    'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
  ],
  [[], "json: cannot unmarshal array into Go value of type v1.ObjectMeta"],
];

for (const [metadata, text] of WRONG_METADATA) {
  test(`Decoding rejects metadata ${JSON.stringify(metadata)}`, () => {
    assert.throws(
      () => decoded({ ...boat(), metadata }),
      (error: unknown) =>
        error instanceof StatusError &&
        error.status.code === 400 &&
        error.status.message ===
          `Boat in version "v1" cannot be handled as a Boat: ${text}`,
    );
  });
}

test("Create drops the status if there is a status subresource", () => {
  const object = boat({ status: { ready: true } });
  served({ status: true }).prepareForCreate?.(object, context());
  assert.equal(object.status, undefined);
});

test("Update keeps the status and increments the generation for spec changes only", () => {
  const definition = served({ status: true });
  const live = boat({ status: { ready: true } });
  const update = (next: UntypedObject) => {
    definition.prepareForUpdate?.(next, live, context());
    return [next.metadata.generation, next.status];
  };
  assert.deepEqual(update(boat({ status: { ready: false } })), [
    1,
    { ready: true },
  ]);
  assert.deepEqual(update(boat({ spec: { n: 2 } })), [2, { ready: true }]);
});

test("Status changes increment the generation without a status subresource", () => {
  const next = boat({ status: { ready: true } });
  served().prepareForUpdate?.(next, boat(), context());
  assert.equal(next.metadata.generation, 2);
});

test("A status update changes no metadata but managedFields", () => {
  const next = boat({ status: { ready: true } });
  next.metadata = {
    ...next.metadata,
    labels: { a: "b" },
    managedFields: [{ manager: "m" }],
  };
  served({ status: true }).prepareForUpdate?.(
    next,
    boat(),
    context("v1", "status"),
  );
  assert.deepEqual(next.metadata, {
    name: "a",
    generation: 1,
    managedFields: [{ manager: "m" }],
  });
});

test("Conversion changes the version and drops unknown fields", () => {
  const definition = served();
  const object = boat({ spec: { n: 1, color: "blue" } });
  const converted = definition.convert(object, "v2");
  assert.deepEqual(converted.spec, { n: 1 });
  assert.equal(converted.apiVersion, "a.dev/v2");
  assert.deepEqual(object.spec, { n: 1, color: "blue" });
});

test("Conversion from a removed version fails like in kube-apiserver", () => {
  assert.throws(
    () => served().convert({ ...boat(), apiVersion: "a.dev/v9" }, "v1"),
    /request to convert CR from an invalid group\/version: a\.dev\/v9/,
  );
});

test("A deprecated version warns and recommends another version", () => {
  const { versions } = served({
    versions: [
      { name: "v1beta1", deprecated: true },
      { name: "v1alpha1", deprecated: true, deprecationWarning: "go away" },
    ],
  });
  assert.deepEqual(
    versions.map(({ name, deprecationWarning }) => [name, deprecationWarning]),
    [
      ["v1", undefined],
      ["v1beta1", "a.dev/v1beta1 Boat is deprecated; use a.dev/v1 Boat"],
      ["v1alpha1", "go away"],
    ],
  );
});

test("openApiV3() describes whole objects, lists and write parameters", () => {
  const definition = served({ status: true });
  const document = openApiV3({
    group: "a.dev",
    version: "v1",
    resources: definition.versions.filter(({ name }) => name === "v1")
      .map((version) => ({ definition, version })),
  }) as {
    readonly paths: Record<string, Record<string, Record<string, unknown>>>;
    readonly components: { readonly schemas: Record<string, OpenApiSchema> };
  };
  const { schemas } = document.components;
  assert.deepEqual(
    Object.keys(schemas["dev.a.v1.Boat"]?.properties ?? {}),
    ["spec", "status", "apiVersion", "kind", "metadata"],
  );
  const pod = schemas["dev.a.v1.Boat"]?.properties?.spec?.properties?.pod;
  assert.deepEqual(pod?.required, ["kind", "apiVersion"]);
  const meta = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];
  for (const [name, field] of Object.entries(meta?.properties ?? {})) {
    assert.match(String(field.description), new RegExp(`^${name}`, "i"));
  }
  assert.ok(meta?.properties?.creationTimestamp);
  assert.ok(schemas["dev.a.v1.BoatList"]);
  const path = "/apis/a.dev/v1/namespaces/{namespace}/boats/{name}";
  assert.equal(
    document.paths[path]?.patch?.operationId,
    "patchADevV1NamespacedBoat",
  );
  assert.match(
    JSON.stringify(document.paths[path]?.patch?.parameters),
    /fieldValidation/,
  );
  assert.ok(document.paths[`${path}/status`]);
});
