import assert from "node:assert/strict";
import { test } from "node:test";
import {
  applyJsonPatch,
  type Kind,
  silentLogger,
} from "@coracle/operator/client";
import {
  ConfigMap,
  type KubernetesObject,
  Namespace,
  type OwnerReference,
  PersistentVolume,
  Secret,
} from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import {
  Ownership,
  placedObject,
  type Relation,
} from "../../../../core/controller/run/owner.ts";
import type { WatchingSource } from "../../../../core/controller/watch/watch_source.ts";

const primary = {
  metadata: { namespace: "default", name: "one", uid: "uid-1" },
};
const OWNER = { primary, primaryKind: ConfigMap };

test("placedObject defaults to the namespace of the primary and sets the owner", () => {
  const { intent: { metadata } } = placedObject(
    ConfigMap,
    { metadata: { name: "two" } as ConfigMap["metadata"] },
    OWNER,
  );
  assert.equal(metadata.namespace, "default");
  assert.deepEqual(
    metadata.ownerReferences?.map(({ kind, uid }) => [kind, uid]),
    [["ConfigMap", "uid-1"]],
  );
});

test("placedObject owns objects that share only the name or the kind of the primary", () => {
  const { name, namespace } = primary.metadata;
  const metadata = { name, namespace } as ConfigMap["metadata"];
  const other = { name, namespace: "other" } as ConfigMap["metadata"];
  assert.equal(placedObject(Secret, { metadata }, OWNER).relation, "reference");
  const away = placedObject(ConfigMap, { metadata: other }, OWNER);
  assert.equal(away.relation, "annotations");
});

test("placedObject needs metadata", () => {
  for (
    const [object, received] of [
      [{ data: {} }, "one with data"],
      [undefined, "nothing"],
      [null, "null"],
    ]
  ) {
    assert.throws(() => placedObject(ConfigMap, object as ConfigMap, OWNER), {
      name: "TypeError",
      message:
        `Cannot write ConfigMap: it must be an object with "metadata": received ${received}`,
    });
  }
});

test("placedObject replaces an earlier owner and refuses another controller", () => {
  const owner = { apiVersion: "v2", kind: "ConfigMap", name: "one", uid: "0" };
  const object = (ownerReferences: OwnerReference[]) => ({
    metadata: { name: "two", ownerReferences },
  });
  const guest = { ...owner, name: "guest", uid: "2" };
  const { intent } = placedObject(
    ConfigMap,
    object([{ ...owner, controller: true }, guest]),
    OWNER,
  );
  assert.deepEqual(
    intent.metadata.ownerReferences.map(({ uid, controller }) => [
      uid,
      controller,
    ]),
    [["2", undefined], ["uid-1", true]],
  );
  assert.throws(
    () =>
      placedObject(ConfigMap, object([{ ...guest, controller: true }]), OWNER),
    /^Error: Cannot own v1 ConfigMap default\/two: another controller owns it, .* received owner v2 ConfigMap "guest"$/,
  );
});

test("placedObject sets no owner on the primary itself, and rejects a request for it", () => {
  const itself: ConfigMap = { metadata: { name: "one" } };
  assert.equal(placedObject(ConfigMap, itself, OWNER).relation, "none");
  assert.throws(
    () => placedObject(ConfigMap, itself, { ...OWNER, owned: true }),
    /^TypeError: Cannot own ConfigMap one: it is the primary itself$/,
  );
});

test("placedObject annotates across namespaces, and rejects a request to own", () => {
  const elsewhere: ConfigMap = {
    metadata: { namespace: "other", name: "two" },
  };
  const volume: PersistentVolume = { metadata: { name: "disk" } };
  for (
    const [placed, refused] of [
      [
        (owned?: true) =>
          placedObject(ConfigMap, elsewhere, { ...OWNER, owned }),
        /Cannot own ConfigMap two: .*: received namespace other for an owner in default$/,
      ],
      [
        (owned?: true) =>
          placedObject(PersistentVolume, volume, { ...OWNER, owned }),
        /Cannot own PersistentVolume disk: .*: received no namespace for an owner in default$/,
      ],
    ] as const
  ) {
    const { intent: { metadata }, relation } = placed();
    assert.equal(metadata.ownerReferences, undefined);
    assert.equal(relation, "annotations");
    assert.deepEqual(metadata.annotations, {
      "coracle.dev/primary-kind": "ConfigMap",
      "coracle.dev/primary-name": "one",
      "coracle.dev/primary-namespace": "default",
    });
    assert.throws(() => placed(true), { name: "TypeError", message: refused });
  }
});

test("placedObject accepts a cluster-scoped owner of a namespaced object", () => {
  const owner = { metadata: { name: "home", uid: "uid-2" } };
  const { intent: { metadata } } = placedObject(
    ConfigMap,
    { metadata: { namespace: "home", name: "two" } },
    { primary: owner, primaryKind: Namespace, owned: true },
  );
  assert.equal(
    (metadata as ConfigMap["metadata"]).ownerReferences?.[0]?.uid,
    "uid-2",
  );
});

const ownership = new Ownership<ConfigMap>({
  kind: ConfigMap,
  sources: { ofKind: () => [] },
  log: silentLogger,
});

test("Ownership takes the former primary off an object, and no other owner", () => {
  const [guest, former, other] = ["guest", "one", "other"].map((name) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    name,
    uid: `former-${name}`,
    ...(name === "one" && { controller: true }),
  })) as [OwnerReference, OwnerReference, OwnerReference];
  const object = (...ownerReferences: OwnerReference[]) => ({
    metadata: { namespace: "default", name: "two", ownerReferences },
  });
  const check = (...owners: OwnerReference[]) =>
    ownership.checkOwner(ConfigMap, object(...owners), primary);
  const patch = check(guest, former, other);
  assert.ok(patch !== undefined);
  assert.deepEqual(
    applyJsonPatch(object(guest, former, other), patch),
    object(guest, other),
  );
  // Others have changed the list since it was read.
  for (const owners of [[former, other], [guest, other], [former]]) {
    assert.throws(() => applyJsonPatch(object(...owners), patch));
  }
  assert.equal(check(guest, { ...former, uid: "uid-1" }), undefined);
  assert.throws(
    () => check(guest, { ...other, controller: true }),
    /^Error: Cannot own .* received owner v1 ConfigMap "other"$/,
  );
});

test("Ownership refuses an object that the annotations give to another primary", () => {
  const owned = (kind: string, name: string, namespace = "default") => ({
    metadata: {
      namespace: "other",
      name: "two",
      annotations: {
        "coracle.dev/primary-kind": kind,
        "coracle.dev/primary-name": name,
        "coracle.dev/primary-namespace": namespace,
      },
    },
  });
  const check = (object: ConfigMap) =>
    ownership.checkOwner(ConfigMap, object, primary);
  assert.equal(check(owned("ConfigMap", "one")), undefined);
  assert.equal(check({ metadata: { name: "two" } }), undefined);
  const refused = {
    'ConfigMap "default/two"': owned("ConfigMap", "two"),
    'ConfigMap "home/one"': owned("ConfigMap", "one", "home"),
    'Widget.example.com "default/one"': owned("Widget.example.com", "one"),
  };
  for (const [owner, object] of Object.entries(refused)) {
    assert.throws(() => check(object), (error: Error) => {
      assert.match(error.message, /^Cannot .*ConfigMap other\/two/);
      assert.ok(error.message.includes(owner), error.message);
      return true;
    });
  }
});

/** Ownership of a controller with sources, and its warnings. */
function owning(...sources: WatchingSource<KubernetesObject>[]) {
  const warnings: string[] = [];
  const made = new Ownership({
    kind: ConfigMap,
    sources: {
      ofKind: ({ kind }) => sources.filter((one) => one.kind.kind === kind),
    },
    log: { ...silentLogger, warn: (text) => warnings.push(text) },
  });
  const check = (
    kind: Kind,
    verb: "apply" | "create",
    labels: Record<string, string> = {},
    relation: Relation = "reference",
  ) => {
    const intent = { metadata: { namespace: "default", name: "a", labels } };
    made.checkWatched(kind, { intent, relation }, verb);
  };
  return { warnings, check, ownership: made };
}

const source = (
  role: "owns" | "watches",
  options: Parameters<typeof watch<KubernetesObject, Secret>>[1] = {},
) =>
  (watch(Secret, options) as unknown as WatchingSource<KubernetesObject>)
    .usedAs(role);

test("placedObject keeps annotations beside those that name the owner", () => {
  const { intent } = placedObject(ConfigMap, {
    metadata: { namespace: "other", name: "two", annotations: { a: "b" } },
  }, OWNER);
  const { annotations } = intent.metadata as ConfigMap["metadata"];
  assert.equal(annotations?.["a"], "b");
  assert.equal(annotations?.["coracle.dev/primary-name"], "one");
});

test("Ownership owns no objects by default that all sources take for others'", () => {
  const others = source("watches", { mapper: byFunction(() => []) });
  assert.equal(owning().ownership.byDefault(Secret), undefined);
  assert.equal(owning(others).ownership.byDefault(Secret), false);
  const both = owning(others, source("owns"));
  assert.equal(both.ownership.byDefault(Secret), undefined);
});

test("Ownership refuses an object that all sources of its kind would hide", () => {
  const labelSelector = "app=web";
  const hiding = source("owns", { name: "hiding", labelSelector });
  const one = owning(hiding);
  one.check(Secret, "apply", { app: "web" });
  one.check(Secret, "apply", {}, "none");
  assert.throws(
    () => one.check(Secret, "create"),
    /^Error: Cannot create v1 Secret default\/a: the event source "hiding" would not show it/,
  );
  owning(hiding, source("owns")).check(Secret, "apply");
  owning(source("watches", { labelSelector })).check(Secret, "apply");
});

test("Ownership warns once of each kind that nothing watches or collects", () => {
  const { warnings, check } = owning();
  check(Secret, "create");
  check(ConfigMap, "apply");
  assert.deepEqual(warnings, []);
  for (let count = 0; count < 2; count++) check(Secret, "apply");
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^Nothing watches v1 Secret/);
  for (let count = 0; count < 2; count++) {
    check(ConfigMap, "apply", {}, "annotations");
  }
  assert.equal(warnings.length, 2);
  assert.match(warnings[1] ?? "", /garbage collector .* across namespaces$/);
});
