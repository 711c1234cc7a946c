import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import type { Context, EventSource } from "@coracle/operator/core";
import {
  ConfigMap,
  type KubernetesObject,
  Namespace,
  type ObjectMeta,
  Secret,
} from "@coracle/operator/kinds";
import {
  appliedMetadata,
  DependentResource,
  desiredObject,
  isImmutable,
} from "../../../workflows/dependents/dependent_resource.ts";
import { gadget } from "../../support/source_context.ts";

const KEY = { namespace: "default", name: "m" };

/** Options of the deletion of an object with such metadata; none if it stays. */
async function deletionOf(
  metadata: Partial<ObjectMeta>,
  options: ConstructorParameters<typeof DependentResource>[2] = {},
  attributes: Context<KubernetesObject>["attributes"] = new Map(),
): Promise<object | undefined> {
  const stored = { metadata: { ...KEY, uid: "u", ...metadata } } as ConfigMap;
  let deletion: object | undefined;
  const source: EventSource<KubernetesObject, ConfigMap> = {
    name: "maps",
    kind: ConfigMap,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    get: () => stored,
  };
  const ctx = {
    key: { namespace: "default", name: "x" },
    fieldManager: "gadget",
    delete: (_kind: unknown, _key: unknown, given: object) =>
      Promise.resolve(void (deletion = given)),
    attributes,
  } as unknown as Context<KubernetesObject>;
  const keeper = new DependentResource(ConfigMap, source, options as object);
  await keeper.delete(KEY, ctx, "uid of x");
  return deletion;
}

const owned = (uid: string, controller = false) => ({
  ownerReferences: [{
    apiVersion: "v1",
    kind: "Gadget",
    name: "x",
    uid,
    controller,
  }],
});
const annotated = (name: string, namespace: string) => ({
  annotations: {
    "coracle.dev/primary-name": name,
    "coracle.dev/primary-namespace": namespace,
  },
});
const applied = (manager: string, operation: "Apply" | "Update" = "Apply") => ({
  managedFields: [{ manager, operation }],
});

const OBJECTS: readonly (readonly [string, Partial<ObjectMeta>, boolean])[] = [
  ["that it owns", owned("uid of x"), true],
  ["of another owner", owned("other"), false],
  [
    "that another controls, though it applied it",
    { ...owned("other", true), ...applied("gadget") },
    false,
  ],
  ["annotated with it", annotated("x", "default"), true],
  ["annotated with its namesake", annotated("x", "other"), false],
  ["annotated with another", annotated("y", "default"), false],
  ["that it applied", applied("gadget"), true],
  ["that another applied", applied("other"), false],
  ["that it changed", applied("gadget", "Update"), false],
  [
    "that is being deleted",
    { ...owned("uid of x"), deletionTimestamp: "2026-01-01T00:00:00Z" },
    false,
  ],
];

for (const [title, metadata, isDeleted] of OBJECTS) {
  const verb = isDeleted ? "deletes" : "leaves";
  test(`DependentResource ${verb} an object ${title}`, async () => {
    assert.equal(await deletionOf(metadata) !== undefined, isDeleted);
  });
}

test("DependentResource deletes as its options say", async () => {
  const mine = owned("uid of x");
  assert.deepEqual(
    await deletionOf(mine, { propagationPolicy: "Foreground" }),
    { uid: "u", propagationPolicy: "Foreground" },
  );
  assert.equal(await deletionOf(mine, { unwanted: "orphan" }), undefined);
  // Another dependent has made it in the same run.
  const attributes = new Map([["ConfigMap default/m", {}]]);
  assert.equal(await deletionOf(mine, {}, attributes), undefined);
});

test("DependentResource is collected with its primary if that is its owner", () => {
  const source = { get: () => undefined } as never;
  for (
    const [relation, expected] of [
      [undefined, true],
      ["owner", true],
      ["annotations", false],
    ] as const
  ) {
    const keeper = new DependentResource(ConfigMap, source, { relation });
    assert.equal(keeper.garbageCollected, expected);
  }
});

test("DependentResource places an object by the scope of its kind", async () => {
  const source = { get: () => undefined } as never;
  const ctx = {
    key: { namespace: "team", name: "x" },
  } as unknown as Context<KubernetesObject>;
  const primary = gadget("x");
  const keyOf = async (
    kind: typeof ConfigMap | typeof Namespace,
    metadata: object,
  ) => {
    const relation = "annotations";
    const keeper = new DependentResource(kind as typeof ConfigMap, source, {
      relation,
    });
    return (await keeper.desired({ metadata }, { primary, ctx })).key;
  };
  assert.deepEqual(await keyOf(ConfigMap, { name: "m" }), {
    namespace: "team",
    name: "m",
  });
  assert.deepEqual(await keyOf(ConfigMap, { name: "m", namespace: "b" }), {
    namespace: "b",
    name: "m",
  });
  assert.deepEqual(await keyOf(Namespace, { name: "m" }), { name: "m" });
});

test("DependentResource refuses an owned object where its owner cannot be", () => {
  const source = { get: () => undefined } as never;
  const desired = (
    kind: typeof ConfigMap | typeof Namespace,
    home: string | undefined,
    namespace?: string,
  ) => {
    const key = { namespace: home, name: "x" };
    const ctx = { key } as unknown as Context<KubernetesObject>;
    new DependentResource(kind as typeof ConfigMap, source).desired(
      { metadata: { name: "m", namespace } },
      { primary: gadget("x"), ctx },
    );
  };
  assert.throws(() => desired(ConfigMap, "team", "b"), {
    name: "TypeError",
    message:
      'Cannot use a desired ConfigMap: it must be in the namespace of its primary, team, or the dependent have the option { relation: "annotations" }: received namespace b',
  });
  assert.throws(
    () => desired(Namespace, "team"),
    /relation: "annotations" }: received no namespace$/,
  );
  desired(ConfigMap, "team", "team");
  desired(ConfigMap, undefined, "b");
  desired(Namespace, undefined);
});

test("DependentResource refuses a desired object of another kind", () => {
  const source = { get: () => undefined } as never;
  const key = { namespace: "default", name: "x" };
  const ctx = { key } as unknown as Context<KubernetesObject>;
  const resource = new DependentResource(ConfigMap, source);
  const desired = (type: object) => {
    resource.desired(
      { ...type, metadata: { name: "m" } },
      { primary: gadget("x"), ctx },
    );
  };
  desired({ apiVersion: "v1", kind: "ConfigMap" });
  desired({ apiVersion: undefined, kind: undefined });
  for (
    const [type, received] of [
      [{ kind: "Secret" }, "v1 Secret"],
      [{ apiVersion: "v2" }, "v2 ConfigMap"],
      [{ apiVersion: "apps/v1", kind: "Deployment" }, "apps/v1 Deployment"],
    ] as const
  ) {
    assert.throws(() => desired(type), {
      name: "TypeError",
      message:
        `Cannot use a desired ConfigMap: it must be of the kind v1 ConfigMap: received ${received}`,
    });
  }
});

test("desiredObject adds the texts of a Secret to its data", () => {
  const secret = {
    metadata: { name: "s", labels: undefined },
    data: { old: "YQ==" },
    stringData: { text: "\u00ff\u00fe?>" },
  };
  assert.deepEqual(desiredObject(Secret, secret as never), {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    data: { old: "YQ==", text: "w7/Dvj8+" },
  });
});

test("appliedMetadata leaves out what the server sets", () => {
  const set = {
    creationTimestamp: "a",
    deletionTimestamp: "a",
    generation: 1,
    managedFields: [],
    resourceVersion: "1",
    selfLink: "a",
    uid: "u",
  };
  const kept = { name: "m", finalizers: ["f"] };
  assert.deepEqual(appliedMetadata({ ...set, ...kept }), kept);
});

test("isImmutable knows the words of servers for immutable fields", () => {
  const refused = (status: number, reason: string, message: string) =>
    isImmutable(new ApiError(message, { status, reason }));
  for (
    const message of [
      "spec.selector: field is immutable",
      'roleRef: Invalid value: {"Name":"b"}: cannot change roleRef',
      'roleRef: Invalid value: {"Name":"b"}: field is immutable',
      'spec.serviceName: Invalid value: "b": field is immutable',
      "clusterIP: may not change once set",
      "spec: Forbidden: updates to statefulset spec are forbidden",
      "pod updates may not add or remove containers",
      "the type cannot be changed",
    ]
  ) {
    assert.equal(refused(422, "Invalid", message), true, message);
    assert.equal(refused(409, "Conflict", message), true, message);
    assert.equal(refused(403, "Forbidden", message), false, message);
  }
  assert.equal(refused(422, "Invalid", "must be positive"), false);
  assert.equal(isImmutable(new Error("field is immutable")), false);
});
