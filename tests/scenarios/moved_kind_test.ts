/**
 * A CustomResourceDefinition that returns under another plural or scope: kinds
 * that do not state them are found again by discovery.
 */
import assert from "node:assert/strict";
import { untyped, type UntypedObject } from "@coracle/operator/client";
import type { OperatorOptions } from "@coracle/operator/core";
import { CustomResourceDefinition } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { until } from "../support/until.ts";

const GROUP = "moved.coracle.dev";
const PARCEL = untyped({ group: GROUP, version: "v1", kind: "Parcel" });

async function define(
  fixture: OperatorFixture,
  plural: string,
  scope: "Namespaced" | "Cluster",
): Promise<void> {
  const name = `${plural}.${GROUP}`;
  await fixture.client.create(CustomResourceDefinition, {
    metadata: { name },
    spec: {
      group: GROUP,
      scope,
      names: {
        plural,
        singular: plural.slice(0, -1),
        kind: "Parcel",
        listKind: "ParcelList",
      },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            "x-kubernetes-preserve-unknown-fields": true,
          },
        },
      }],
    },
  });
  await fixture.until(async () => {
    const { status } = await fixture.client.get(CustomResourceDefinition, {
      name,
    });
    return status?.conditions?.some(({ type, status }) =>
      type === "Established" && status === "True"
    ) === true;
  });
}

async function undefine(
  fixture: OperatorFixture,
  plural: string,
): Promise<void> {
  const name = `${plural}.${GROUP}`;
  await fixture.client.delete(CustomResourceDefinition, { name });
  await fixture.until(async () =>
    await fixture.client.find(CustomResourceDefinition, { name }) === undefined
  );
}

for (
  const [change, plural, scope] of [
    ["another plural", "packages", "Namespaced"],
    ["another scope", "parcels", "Cluster"],
  ] as const
) {
  for (
    const [how, options] of [
      ["", {}],
      [", with leader election", { leaderElection: { name: "lock" } }],
    ] as readonly [string, OperatorOptions][]
  ) {
    scenario(
      `Primaries whose definition returns with ${change} run within a minute${how}`,
      async (fixture) => {
        await define(fixture, "parcels", "Namespaced");
        const operator = fixture.operator({
          ...options,
          random: () => 0.99,
        });
        const cleaned: string[] = [];
        const controller = operator.register(PARCEL, {
          reconcile: (_parcel: UntypedObject) => {},
          cleanup({ metadata }) {
            cleaned.push(metadata.name);
          },
        }, { name: "parcels" });
        await fixture.start(operator);
        const make = async (name: string, namespace?: string) =>
          await fixture.client.create(PARCEL, {
            metadata: { name, namespace },
          });
        const finalizers = async (name: string, namespace?: string) =>
          (await fixture.client.find(PARCEL, { name, namespace }))
            ?.metadata.finalizers ?? [];
        await make("a", "default");
        await fixture.until(async () =>
          (await finalizers("a", "default")).length === 1
        );
        await undefine(fixture, "parcels");
        assert.deepEqual(
          cleaned,
          ["a"],
          "the definition goes after its objects",
        );
        await fixture.advance(10 * 60_000); // Pauses are as long as they become.
        await define(fixture, plural, scope);
        const began = fixture.clock.now();
        await until(
          "the kind is served again",
          () =>
            fixture.client.resolve(PARCEL, { fresh: true })
              .then(() => true, () => false),
        );
        const namespace = scope === "Cluster" ? undefined : "default";
        await make("b", namespace);
        await fixture.until(
          async () =>
            (await finalizers("b", namespace)).includes(
              `${plural}.${GROUP}/finalizer`,
            ),
          90_000,
        );
        const took = fixture.clock.now() - began;
        assert.ok(took <= 60_000, `${took} ms`);
        assert.ok(
          fixture.log.some(({ level, message }) =>
            level === "warn" && /under another plural or scope/.test(message)
          ),
        );
        await fixture.until(() => controller.health().healthy);
        await fixture.client.delete(PARCEL, { name: "b", namespace });
        await fixture.until(() => cleaned.includes("b"));
        await fixture.done(operator.stop());
        await undefine(fixture, plural);
      },
    );
  }
}

scenario(
  "Secondaries whose definition returns with another plural trigger within a minute",
  async (fixture) => {
    await define(fixture, "parcels", "Namespaced");
    const runs: string[] = [];
    const operator = fixture.operator({ random: () => 0.99 });
    operator.register(Gadget, {
      async reconcile({ metadata }, ctx) {
        const list = await ctx.list(PARCEL, "default");
        runs.push(`${metadata.name}: ${list.map((one) => one.metadata.name)}`);
      },
    }, {
      sources: [watch(PARCEL, { mapper: byFunction(() => ["default/x"]) })],
    });
    await fixture.start(operator);
    await fixture.create("x");
    await fixture.until(() => runs.includes("x: "));
    await undefine(fixture, "parcels");
    await fixture.advance(2 * 60_000); // Discovery is cached for longer.
    await define(fixture, "packages", "Namespaced");
    const began = fixture.clock.now();
    await fixture.client.resolve(PARCEL, { fresh: true });
    await fixture.client.create(PARCEL, {
      metadata: { namespace: "default", name: "b" },
    });
    await fixture.until(() => runs.includes("x: b"), 90_000);
    assert.ok(fixture.clock.now() - began <= 60_000);
    await fixture.done(operator.stop());
    await undefine(fixture, "packages");
  },
);
