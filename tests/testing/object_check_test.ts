import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { checkObject, TestCluster } from "@coracle/dev";
import { ApiError, type UntypedObject } from "@coracle/operator/client";
import { defineKind, immutable, rule } from "@coracle/operator/crd";
import { ConfigMap } from "@coracle/operator/kinds";

const Pool = defineKind({
  group: "objectcheck.coracle.dev",
  version: "v1",
  kind: "Pool",
  spec: z.object({
    min: z.int().min(1).default(1),
    max: z.int().max(10),
    mode: z.enum(["fast", "safe"]).optional(),
    storageClass: z.string().optional(),
    hosts: z.array(z.string()).optional(),
    bytes: z.int().min(-(2 ** 63)).max(2 ** 63).optional(),
  }),
  status: z.object({ ready: z.int().min(0) }).partial(),
  rules: [
    rule("self.spec.max >= self.spec.min", {
      message: "max must not be below min",
      fieldPath: ".spec.max",
    }),
    immutable(".spec.storageClass"),
  ],
});

type Spec = Readonly<Record<string, unknown>>;

const pool = (spec: Spec, more: object = {}) => ({
  metadata: { name: "a" },
  spec,
  ...more,
});

/** Objects, with the ones that they replace. */
const CASES:
  readonly (readonly [title: string, object: object, old?: object])[] = [
    ["a valid object", pool({ max: 2 })],
    ["a required field", pool({})],
    ["a wrong type", pool({ max: "2" })],
    ["several violations", pool({ min: 0, max: 11, mode: "slow" })],
    ["a rule with a default", pool({ max: 0 })],
    ["an integer beyond 2^53", pool({ max: 2, bytes: 2 ** 60 })],
    ["an integer of more than 64 bits", pool({ max: 2, bytes: 2 ** 64 })],
    ["an unknown field", pool({ max: 2, other: 1 })],
    ["an unknown field of the metadata", {
      metadata: { name: "a", label: "b" },
      spec: { max: 2 },
    }],
    ["a name", { metadata: { name: "A_" }, spec: { max: 2 } }],
    ["a generated name", {
      metadata: { generateName: "a-" },
      spec: { max: 2 },
    }],
    ["no name", { metadata: {}, spec: { max: 2 } }],
    ["a label", {
      metadata: { name: "a", labels: { "a b": "c" } },
      spec: { max: 2 },
    }],
    ["a valid change", pool({ max: 3 }), pool({ max: 2 })],
    [
      "a rule about a change",
      pool({ max: 2, storageClass: "slow" }),
      pool({ max: 2, storageClass: "fast" }),
    ],
    [
      "a field that a change removes",
      pool({ max: 2 }),
      pool({ max: 2, storageClass: "fast" }),
    ],
    [
      "a field that a change adds",
      pool({ max: 2, storageClass: "fast" }),
      pool({ max: 2 }),
    ],
    ["a change that breaks a rule", pool({ min: 3, max: 2 }), pool({ max: 2 })],
  ];

test("checkObject says what the API server does", async () => {
  const cluster = await TestCluster.start({ kinds: [Pool] });
  const { client, namespace } = cluster;
  const strict = { fieldValidation: "Strict", dryRun: true } as const;
  const messageOf = (answer: Promise<unknown>) =>
    answer.then(() => undefined, (error: unknown) => {
      assert.ok(ApiError.is(error), String(error));
      return error.message;
    });
  try {
    for (const [title, object, old] of CASES) {
      const given = object as UntypedObject;
      const key = { namespace };
      let answer: string | undefined;
      if (old === undefined) {
        answer = await messageOf(
          client.create(Pool as never, {
            ...given,
            metadata: { ...given.metadata, ...key },
          } as never, strict),
        );
      } else {
        const before = old as UntypedObject;
        const stored = await client.create(Pool as never, {
          ...before,
          metadata: { ...before.metadata, ...key },
        } as never) as UntypedObject;
        answer = await messageOf(
          client.replace(Pool as never, {
            ...given,
            metadata: {
              ...given.metadata,
              ...key,
              resourceVersion: stored.metadata.resourceVersion,
            },
          } as never, strict),
        );
        await client.delete(Pool, { ...key, name: "a" });
      }
      const said = await checkObject(Pool, object, old);
      // The client says around it what it could not do.
      const isSame = said === answer || answer?.includes(String(said));
      assert.ok(isSame, `${title}: ${said} instead of ${answer}`);
    }
  } finally {
    await cluster.stop();
  }
});

test("checkObject accepts integers of 64 bits beyond 2^53", async () => {
  for (const bytes of [2 ** 53, 2 ** 60, -(2 ** 60)]) {
    const said = await checkObject(Pool, pool({ max: 2, bytes }));
    assert.equal(said, undefined);
  }
});

test("checkObject judges the status as its own write, and keeps old faults", async () => {
  const ready = (ready: number) => ({ status: { ready } });
  assert.match(
    await checkObject(Pool, pool({ max: 2 }, ready(-1))) ?? "",
    /^Pool\.objectcheck\.coracle\.dev "a" is invalid: status\.ready: Invalid value: -1: .* greater than or equal to 0$/,
  );
  assert.equal(await checkObject(Pool, pool({ max: 2 }, ready(1))), undefined);
  const old = pool({ max: 99, hosts: ["a"] });
  assert.equal(
    await checkObject(Pool, pool({ max: 99, hosts: ["b"] }), old),
    undefined,
  );
  assert.match(
    await checkObject(Pool, pool({ max: 98 }), old) ?? "",
    /spec\.max: Invalid value: 98/,
  );
});

test("checkObject ignores the namespace of a cluster-scoped object, as servers do", async () => {
  const Rack = defineKind({
    group: "objectcheck.coracle.dev",
    version: "v1",
    kind: "Rack",
    scope: "Cluster",
    spec: z.object({ max: z.int() }),
  });
  const metadata = { namespace: "default", name: "a" };
  assert.equal(
    await checkObject(Rack, { metadata, spec: { max: 1 } }),
    undefined,
  );
});

test("checkObject refuses other kinds and other versions", async () => {
  await assert.rejects(
    checkObject(ConfigMap as never, { metadata: { name: "a" } }),
    /the kind must be one of defineKind\(\) or kindFromCrd\(\): received ConfigMap/,
  );
  await assert.rejects(
    checkObject(Pool, { apiVersion: "other/v1", ...pool({ max: 1 }) }),
    /it must be a Pool of objectcheck\.coracle\.dev\/v1: received Pool of other\/v1/,
  );
});
