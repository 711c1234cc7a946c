/**
 * Versions of a kind that the operator converts: read, written and watched in each,
 * and migrated.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { withTestCluster } from "@coracle/dev";
import {
  Operator,
  patchStatus,
  systemClock,
  untyped,
  type UntypedObject,
} from "@coracle/operator/core";
import { crdManifest, defineKind } from "@coracle/operator/crd";
import { migrateStorage } from "../../core/conversion/migrate_storage.ts";
import { failureOf } from "../../core/conversion/unconverted.ts";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { removesDefinitions } from "../support/remove_objects.ts";
import { until } from "../support/until.ts";

const names = { group: "versions.coracle.dev", kind: "Pool" } as const;
const NAME = "pools.versions.coracle.dev";
const OLD = untyped({ ...names, version: "v1beta1" });

const Pool = defineKind({
  ...names,
  version: "v1",
  spec: z.object({ min: z.int(), max: z.int() }),
  status: z.object({ seen: z.int() }).partial(),
  versions: [{
    name: "v1beta1",
    spec: z.object({ size: z.string(), note: z.string().optional() }),
    status: z.object({ seen: z.int() }).partial(),
    up: ({ spec: { size } }) => {
      const min = Number(size);
      if (!Number.isInteger(min)) throw new Error(`no size: ${size}`);
      return { spec: { min, max: min } };
    },
    down: ({ spec: { min } }) => ({ spec: { size: String(min) } }),
  }],
});
removesDefinitions(Pool);

/** The definition of an earlier release, which knows one version. */
const EarlierPool = defineKind({
  ...names,
  version: "v1beta1",
  spec: z.object({ size: z.string(), note: z.string().optional() }),
  status: z.object({ seen: z.int() }).partial(),
});

const old = (name: string, spec: object) => ({
  apiVersion: `${names.group}/v1beta1`,
  kind: names.kind,
  metadata: { name },
  spec,
});
const seen = new Set<string>();

test(
  "an operator converts between the versions of its kind, and migrates them",
  // The controller of a real server begins a migration half a minute late.
  { timeout: 180_000 },
  withTestCluster({
    objects: [
      crdManifest(EarlierPool) as object as UntypedObject,
      old("stored", { size: "2", note: "old" }),
      old("broken", { size: "many" }),
    ],
    operator(options) {
      const operator = new Operator(options);
      operator.register(Pool, {
        reconcile({ metadata, spec }) {
          seen.add(metadata.name);
          return patchStatus({ seen: spec.max });
        },
      }, { install: true });
      return operator;
    },
  }, async ({ client, namespace }) => {
    const key = (name: string) => ({ name, namespace });

    // Stored in the old version, and reconciled in the new one.
    await until(
      "the old object is reconciled",
      async () => (await client.get(Pool, key("stored"))).status?.seen === 2,
    );
    const stored = await client.get(OLD, key("stored")) as UntypedObject;
    assert.deepEqual(stored.spec, { size: "2", note: "old" });
    assert.deepEqual(stored.status, { seen: 2 });

    // What one version lacks survives an apply in it, and the managers.
    await client.apply(Pool, {
      metadata: key("new"),
      spec: { min: 1, max: 5 },
    }, { fieldManager: "new" });
    await client.apply(OLD, {
      metadata: key("new"),
      spec: { size: "1", note: "mine" },
    } as never, { fieldManager: "old" });
    const both = await client.get(Pool, key("new"));
    assert.deepEqual(both.spec, { min: 1, max: 5 });
    assert.deepEqual(
      both.metadata.managedFields?.map(({ manager, apiVersion }) =>
        `${manager} ${apiVersion}`
      ).filter((text) => /^(new|old) /.test(text)).sort(),
      ["new versions.coracle.dev/v1", "old versions.coracle.dev/v1beta1"],
    );

    // One that cannot be converted is listed and watched with the others.
    const { items } = await client.list(Pool, { namespace });
    assert.deepEqual(
      items.filter((item) => failureOf(item)).map(({ metadata }) =>
        metadata.name
      ),
      ["broken"],
    );
    assert.equal(seen.has("broken"), false);
    await assert.rejects(
      migrate(),
      /mend what the server refuses.*broken: up of v1beta1 has thrown/,
    );
    const broken = await client.get(OLD, key("broken"));
    assert.deepEqual((broken as UntypedObject).spec, { size: "many" });
    await client.patch(OLD, key("broken"), { spec: { size: "9" } } as never);
    await until(
      "the mended object is reconciled",
      async () => (await client.get(Pool, key("broken"))).status?.seen === 9,
    );

    await migrate();
    const crd = await client.get(CRD_KIND, { name: NAME });
    assert.deepEqual(crd.status?.storedVersions, ["v1"]);

    function migrate() {
      return migrateStorage(client, NAME, {
        clock: systemClock,
        signal: new AbortController().signal,
        rate: 1_000,
      });
    }
  }),
);
