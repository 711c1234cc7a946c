import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { Client, NewObject, ObjectOf } from "@coracle/operator/client";
import {
  crdManifest,
  defineKind,
  type StandardSchema,
} from "@coracle/operator/crd";
import { Deployment } from "@coracle/operator/kinds";
import { pluralOf } from "../../../core/crd/kind_names.ts";

const base = {
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebPage",
  spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
} as const;

test("defineKind() derives names, scope and the definition", () => {
  const WebPage = defineKind({
    ...base,
    shortNames: ["wp"],
    categories: ["all"],
    status: z.object({ ready: z.boolean() }).partial(),
    printerColumns: [
      { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
    ],
  });
  assert.deepEqual(crdManifest(WebPage), {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "webpages.sample.coracle.dev" },
    spec: {
      group: "sample.coracle.dev",
      scope: "Namespaced",
      names: {
        kind: "WebPage",
        listKind: "WebPageList",
        plural: "webpages",
        singular: "webpage",
        shortNames: ["wp"],
        categories: ["all"],
      },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              apiVersion: { type: "string" },
              kind: { type: "string" },
              metadata: { type: "object" },
              spec: {
                type: "object",
                required: ["html"],
                properties: {
                  html: { type: "string" },
                  exposed: { type: "boolean", default: false },
                },
              },
              status: {
                type: "object",
                properties: { ready: { type: "boolean" } },
              },
            },
          },
        },
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
          {
            name: "Age",
            type: "date",
            jsonPath: ".metadata.creationTimestamp",
          },
        ],
      }],
    },
  });
});

test("defineKind() infers the type of objects that are read", () => {
  const WebPage = defineKind({
    ...base,
    status: z.object({ since: z.iso.datetime() }).partial(),
  });
  const page: ObjectOf<typeof WebPage> = {
    metadata: { name: "a" },
    spec: { html: "", exposed: true },
    status: { since: "2024-01-01T00:00:00Z" },
  };
  assert.equal(page.spec.exposed, true);
  // @ts-expect-error -- a default is always there when an object is read
  const incomplete: ObjectOf<typeof WebPage>["spec"] = { html: "" };
  assert.equal(incomplete.exposed, undefined);
  const bare = defineKind(base);
  // @ts-expect-error -- this kind has no status
  const status: ObjectOf<typeof bare>["status"] = {};
  assert.deepEqual(status, {});
});

test("defineKind() infers the type of objects that are written", () => {
  const WebPage = defineKind({
    ...base,
    status: z.object({ since: z.iso.datetime() }).partial(),
  });
  type Written = NewObject<typeof WebPage>;
  const page: Written = { metadata: { name: "a" }, spec: { html: "" } };
  assert.equal(page.spec.exposed, undefined);
  // @ts-expect-error -- a field without a default is required
  const incomplete: Written = { metadata: { name: "a" }, spec: {} };
  // @ts-expect-error -- no such field
  const other: Written = { metadata: {}, spec: { html: "", colour: 1 } };
  assert.ok(incomplete && other);
});

/** Schema of a library that converts values when it parses them. */
function converting<Input, Output>(): StandardSchema<Input, Output> {
  const input = () => ({
    type: "object",
    properties: { at: { type: "string" } },
  });
  const validate = (value: unknown) => ({ value: value as Output });
  const jsonSchema = { input };
  return {
    "~standard": { version: 1, vendor: "handmade", validate, jsonSchema },
  };
}

test("defineKind() types fields of a converting library as they are stored", () => {
  const kind = defineKind({
    ...base,
    spec: converting<{ at: string }, { at: Date }>(),
  });
  const object: ObjectOf<typeof kind> = {
    metadata: { name: "a" },
    spec: { at: "2024-01-01T00:00:00Z" },
  };
  assert.equal(object.spec.at.length, 20);
  // @ts-expect-error -- the server does not run the conversion
  const converted: ObjectOf<typeof kind>["spec"] = { at: new Date(0) };
  assert.ok(converted);
});

test("defineKind() names the field of a type that objects cannot have", () => {
  const since = z.object({ items: z.array(z.object({ at: z.date() })) });
  assert.throws(() => defineKind({ ...base, status: since }), {
    name: "TypeError",
    message:
      'Cannot write a structural schema for WebPage v1: status.items[].at: JSON has no dates, so write z.iso.datetime(), whose values are the texts that are stored: received "date"',
  });
});

test("Client.create() takes objects of a kind without their defaults", () => {
  const WebPage = defineKind(base);
  const create = (client: Client) => [
    client.create(WebPage, { metadata: { name: "a" }, spec: { html: "" } }),
    // @ts-expect-error -- a field without a default is required
    client.create(WebPage, { metadata: { name: "a" }, spec: {} }),
    // @ts-expect-error -- of a kind without defaults all fields are required
    client.create(Deployment, { metadata: { name: "a" }, spec: {} }),
  ];
  assert.equal(typeof create, "function");
});

test("defineKind() serves several versions and stores one", () => {
  const kind = defineKind({
    ...base,
    versions: [{
      name: "v1beta1",
      spec: z.object({ html: z.string() }),
      deprecated: "use v1",
      served: false,
    }],
    storageVersion: "v1beta1",
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
    },
    selectableFields: [".spec.html"],
    rules: [{ rule: "self.metadata.name.size() < 9" }],
    annotations: { "api-approved.kubernetes.io": "unapproved" },
    labels: { team: "web" },
    scope: "Cluster",
  });
  const { metadata, spec } = crdManifest(kind);
  const [v1, beta] = spec.versions;
  assert.equal(spec.scope, "Cluster");
  assert.equal(metadata.labels?.team, "web");
  assert.equal(
    metadata.annotations?.["api-approved.kubernetes.io"],
    "unapproved",
  );
  assert.deepEqual([v1?.storage, beta?.storage], [false, true]);
  assert.deepEqual([v1?.served, beta?.served], [true, false]);
  assert.equal(beta?.deprecationWarning, "use v1");
  assert.deepEqual(v1?.selectableFields, [{ jsonPath: ".spec.html" }]);
  assert.equal(v1?.subresources?.scale?.specReplicasPath, ".spec.replicas");
  assert.deepEqual(
    v1?.schema.openAPIV3Schema["x-kubernetes-validations"],
    [{ rule: "self.metadata.name.size() < 9" }],
  );
});

test("defineKind() makes a spec optional if it can be defaulted", () => {
  const kind = defineKind({
    ...base,
    spec: z.object({ size: z.int().default(1) }).prefault({}),
  });
  const schema = kind.versions[0]?.schema.openAPIV3Schema;
  assert.equal(schema?.required, undefined);
  assert.deepEqual(schema?.properties?.spec?.default, {});
});

const REFUSED: readonly (readonly [string, object, RegExp])[] = [
  ["a group without a dot", { group: "apps" }, /'group' must be a domain/],
  ["an empty kind", { kind: "" }, /'kind' must be/],
  ["a kind with a blank", { kind: "Web Page" }, /'kind' must be/],
  ["a version in capitals", { version: "V1" }, /'version' must be/],
  ["a plural in capitals", { plural: "WebPages" }, /'plural' must be/],
  ["a bad short name", { shortNames: ["w_p"] }, /'shortNames' must be/],
  ["a list kind that is the kind", { listKind: "WebPage" }, /'listKind' must/],
  ["another scope", { scope: "Global" }, /"scope" must be one of/],
  ["an unknown option", { colour: 1 }, /there is no option "colour"/],
  ["a misspelt option", { specc: {} }, /did you mean "spec"\?/],
  ["a missing spec", { spec: undefined }, /'spec' must be a schema/],
  [
    "a spec that is no object",
    { spec: z.string() },
    /'spec' must be a schema of an object/,
  ],
  [
    "its own version twice",
    { versions: [{ name: "v1", spec: base.spec }] },
    /'versions' are those/,
  ],
  ["an unknown storage version", { storageVersion: "v2" }, /'storageVersion'/],
  [
    "an unknown option of a version",
    { versions: [{ name: "v2", spec: base.spec, storage: true }] },
    /version v2: there is no option "storage"/,
  ],
  [
    "a scale path that is none",
    { scale: { specReplicasPath: "spec", statusReplicasPath: ".a" } },
    /scale: 'specReplicasPath' must be a path/,
  ],
  [
    "a column without a type",
    { printerColumns: [{ name: "A", jsonPath: ".a" }] },
    /printerColumns: "type" must be one of integer, number/,
  ],
  [
    "a column whose path has no dot",
    { printerColumns: [{ name: "A", type: "string", jsonPath: "a" }] },
    /printerColumns: 'jsonPath' must begin with a dot/,
  ],
  [
    "an unknown option of a column",
    {
      printerColumns: [{ name: "A", type: "string", jsonPath: ".a", width: 3 }],
    },
    /printerColumns: there is no option "width"/,
  ],
  [
    "an unknown option of a rule",
    { rules: [{ rule: "true", massage: "no" }] },
    /a rule of WebPage v1: there is no option "massage"/,
  ],
  [
    "a selectable field that is no path",
    { selectableFields: ["spec.html"] },
    /'selectableFields' must be a path/,
  ],
];

for (const [what, options, message] of REFUSED) {
  test(`defineKind() rejects ${what}`, () => {
    assert.throws(
      () => defineKind({ ...base, ...options }),
      (error: unknown) =>
        (error instanceof TypeError || error instanceof RangeError) &&
        message.test(error.message),
    );
  });
}

test("pluralOf() follows English plural rules", () => {
  const plurals = {
    Deployment: "deployments",
    NetworkPolicy: "networkpolicies",
    Gateway: "gateways",
    Ingress: "ingresses",
    Mailbox: "mailboxes",
    Batch: "batches",
    Analysis: "analyses",
    Proxy: "proxies",
    Status: "statuses",
    Bookshelf: "bookshelves",
    Knife: "knives",
    Proof: "proofs",
    Safe: "safes",
  };
  for (const [kind, plural] of Object.entries(plurals)) {
    assert.equal(pluralOf(kind), plural);
  }
});

test("defineKind() limits the length of names", () => {
  const spec = z.object({});
  const names = { group: "sample.coracle.dev", version: "v1", kind: "Lamp" };
  const define = (more: object) => () =>
    defineKind({ ...names, spec, ...more });
  const longest = "a".repeat(63);
  define({ plural: longest, shortNames: [longest], categories: [longest] })();
  const tooLong = `${longest}a`;
  assert.throws(define({ plural: tooLong }), /'plural' must be up to 63/);
  assert.throws(define({ categories: [tooLong] }), /'categories' must be/);
  const label = "a".repeat(62);
  // 4 labels and 3 dots, with a plural of 1 letter and a dot: 253.
  const group = `${label}.${label}.${label}.${label}`;
  define({ plural: "a", group })();
  assert.throws(define({ plural: "ab", group }), /'plural' must be shorter/);
  assert.throws(
    define({ plural: "a", group: `${group}.${label}` }),
    /'group' must be a domain/,
  );
  assert.throws(define({ listKind: "Lamp" }), /different from 'kind'/);
  assert.throws(
    define({ versions: [{ name: "V2", spec }] }),
    /'version' must be/,
  );
});

test("defineKind() writes each part of a version, and none that is empty", () => {
  const Lamp = defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Lamp",
    categories: ["all"],
    description: "A lamp",
    deprecated: "use v2",
    printerColumns: [{
      name: "Born",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
    }],
    rules: [],
    spec: z.object({}),
  });
  const [version] = Lamp.versions;
  const schema = version?.schema.openAPIV3Schema;
  assert.equal(version?.deprecated, true);
  assert.equal(version?.deprecationWarning, "use v2");
  assert.equal(version?.additionalPrinterColumns?.length, 1);
  assert.equal(schema?.description, "A lamp");
  assert.ok(!("x-kubernetes-validations" in schema));
  const { names } = crdManifest(Lamp).spec;
  assert.deepEqual([names.categories, names.shortNames], [["all"], undefined]);
});

test("defineKind() refuses paths with lists, and parts that are no objects", () => {
  const names = { group: "sample.coracle.dev", version: "v1", kind: "Lamp" };
  const spec = z.object({});
  assert.throws(
    () => defineKind({ ...names, spec, selectableFields: [".spec.a[0]"] }),
    /must be a path such as \.spec\.replicas: received "\.spec\.a\[0\]"/,
  );
  for (const status of [z.array(z.string()), z.unknown()]) {
    assert.throws(
      () => defineKind({ ...names, spec, status }),
      /'status' must be a schema of an object: received one of (array|any value)/,
    );
  }
});

test("defineKind() has only the subresources and columns that are asked for", () => {
  const names = { group: "example.com", version: "v1", kind: "Part" };
  const scale = {
    specReplicasPath: ".spec.replicas",
    statusReplicasPath: ".status.replicas",
  };
  const [scaled] = defineKind({ ...names, spec: z.object({}), scale }).versions;
  assert.deepEqual(scaled?.subresources, { scale });
  const [plain = {}] = defineKind({ ...names, spec: z.object({}) }).versions;
  assert.deepEqual(Object.keys(plain), ["name", "served", "storage", "schema"]);
  assert.throws(
    () => defineKind({ ...names, spec: z.object({}), listKind: "Part_List" }),
    /'listKind' must be/,
  );
});

test("defineKind() notes the fields that zod checks in code alone", () => {
  const { checkedInCode } = defineKind({
    group: "sample.example.com",
    version: "v1",
    kind: "Page",
    spec: z.object({
      token: z.jwt(),
      named: z.string().regex(/^e/).check(z.jwt()),
      page: z.httpUrl(),
      secure: z.url({ protocol: /^https$/ }),
      three: z.array(z.string()).check(z.property("length", z.literal(3))),
      odd: z.int().refine((value) => value % 2 === 1),
      any: z.url(),
      hash: z.hash("sha256"),
    }),
  });
  assert.deepEqual(checkedInCode?.["v1"], [
    "spec.token",
    "spec.named",
    "spec.page",
    "spec.secure",
    "spec.three",
    "spec.odd",
  ]);
});
