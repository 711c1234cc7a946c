import assert from "node:assert/strict";
import { test } from "node:test";
import { placedObject } from "../../../../core/controller/run/owner.ts";
import {
  ConfigMap,
  Namespace,
  PersistentVolume,
} from "../../../../core/kinds/core_v1.ts";

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

test("placedObject sets no owner across namespaces, and rejects a request for it", () => {
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
    assert.equal(placed().intent.metadata.ownerReferences, undefined);
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
