import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectMeta } from "@coracle/operator/kinds";
import {
  finalizerWarnings,
  metadataProblems,
  metadataUpdateProblems,
} from "../../../dev/apiserver/validation/object_meta.ts";

const RULES = {
  nameRule: "dns-subdomain",
  scope: "Namespaced",
  custom: false,
  group: "",
  plural: "configmaps",
} as const;

const META: ObjectMeta = {
  namespace: "default",
  name: "a",
  uid: "u",
  resourceVersion: "7",
  generation: 3,
  creationTimestamp: "2026-01-02T03:04:05Z",
};

function texts(causes: ReturnType<typeof metadataProblems>): string[] {
  return causes.map(({ field, message }) => `${field}: ${message}`);
}

/** What is wrong with metadata, in the words of Kubernetes 1.36. */
const WRONG: readonly (readonly [Partial<ObjectMeta>, readonly string[]])[] = [
  [{}, []],
  [{ generation: -1 }, [
    "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
  ]],
  [{ annotations: { a: "x".repeat(262_144) } }, [
    "metadata.annotations: Too long: may not be more than 262144 bytes",
  ]],
  [{ finalizers: ["orphan", "foregroundDeletion"] }, [
    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
  ]],
  [{ managedFields: [{ manager: "ä".repeat(65) }, { manager: "a\n\tb" }] }, [
    "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
    'metadata.managedFields[1].manager: Invalid value: "a\\n\\tb": invalid character U+000A (at position 1)',
    'metadata.managedFields[1].manager: Invalid value: "a\\n\\tb": invalid character U+0009 (at position 2)',
  ]],
  [{ labels: { "a/b/c": "x" } }, [
    "metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
  ]],
];

test("metadataProblems reports violations with kube-apiserver's messages", () => {
  for (const [fields, expected] of WRONG) {
    assert.deepEqual(
      texts(metadataProblems({ ...META, ...fields }, RULES)),
      expected,
    );
  }
  assert.deepEqual(
    texts(metadataProblems({ ...META, name: "a%b/c" }, {
      ...RULES,
      nameRule: "path-segment",
    })),
    [
      "metadata.name: Invalid value: \"a%b/c\": may not contain '/'",
      "metadata.name: Invalid value: \"a%b/c\": may not contain '%'",
    ],
  );
});

test("metadataUpdateProblems reports changes of immutable fields", () => {
  const changed = (fields: Partial<ObjectMeta>) => [
    ...new Set(
      texts(metadataUpdateProblems({ ...META, ...fields }, META, RULES)),
    ),
  ];
  assert.deepEqual(changed({}), []);
  assert.deepEqual(changed({ generation: 2 }), [
    "metadata.generation: Invalid value: 2: must not be decremented",
  ]);
  assert.deepEqual(changed({ resourceVersion: "" }), [
    'metadata.resourceVersion: Invalid value: "": must be specified for an update',
  ]);
  assert.deepEqual(changed({ uid: "v" }), [
    'metadata.uid: Invalid value: "v": field is immutable',
  ]);
  assert.deepEqual(changed({ creationTimestamp: "2026-02-03T00:00:00Z" }), [
    'metadata.creationTimestamp: Invalid value: "2026-02-03T00:00:00Z": field is immutable',
  ]);
});

test("finalizerWarnings names new finalizers without a domain", () => {
  const finalizers = ["orphan", "example.com/a", "old", "new"];
  assert.deepEqual(
    finalizerWarnings({ ...META, finalizers }, {
      ...META,
      finalizers: ["old"],
    }),
    [
      'metadata.finalizers: "new": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
    ],
  );
});
