import assert from "node:assert/strict";
import {
  bulkDependent,
  kubernetesDependent,
  untyped,
  type UntypedObject,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { mapValue, valueMap } from "../support/gadget_dependents.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "A standalone dependent can be called by code and sees its own write [StandaloneDependentResourceIT]",
  async (fixture) => {
    const dependent = kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
      desired: valueMap(""),
    });
    const seen: (string | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const { operation, resource } = await dependent.reconcile(gadget, ctx);
        seen.push(`${operation} ${resource?.data?.["value"]}`);
        seen.push((await ctx.get(ConfigMap))?.data?.["value"]);
        seen.push((await dependent.read(gadget, ctx))?.data?.["value"]);
      },
    }, { sources: dependent.sources });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 3);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => seen.length === 6);
    assert.deepEqual(seen, [
      "created first",
      "first",
      "first",
      "updated second",
      "second",
      "second",
    ]);
  },
);

scenario(
  "Two standalone dependents of one kind are distinguished by name [MultipleDependentResourceWithNoDiscriminatorIT]",
  async (fixture) => {
    const first = kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
      desired: valueMap("-1"),
    });
    const second = kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
      source: first.source,
      desired: valueMap("-2"),
    });
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await first.reconcile(gadget, ctx);
        if (gadget.spec.value === "one") await second.delete(gadget, ctx);
        else await second.reconcile(gadget, ctx);
      },
    }, { sources: first.sources });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () => await mapValue(fixture, "a-2") === "first");
    await fixture.change("a", { value: "both" });
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(async () => await mapValue(fixture, name) === "both");
    }
    await fixture.change("a", { value: "one" });
    await fixture.until(async () =>
      await mapValue(fixture, "a-2") === undefined
    );
    assert.equal(await mapValue(fixture, "a-1"), "one");
  },
);

scenario(
  "An untyped standalone dependent is created, changed and deleted [GenericKubernetesDependentStandaloneIT]",
  async (fixture) => {
    const Maps = untyped({ group: "", version: "v1", kind: "ConfigMap" });
    const dependent = kubernetesDependent<Gadget, UntypedObject>(Maps, {
      relation: "annotations",
      desired: ({ metadata, spec }) => ({
        metadata: { name: metadata.name },
        data: { value: spec.value },
      }),
    });
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await dependent.reconcile(gadget, ctx);
      },
      async cleanup(gadget, ctx) {
        await dependent.delete(gadget, ctx);
      },
    }, { sources: dependent.sources });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () => await mapValue(fixture, "a") === "first");
    await fixture.change("a", { value: "second" });
    await fixture.until(async () => await mapValue(fixture, "a") === "second");
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(await mapValue(fixture, "a"), undefined);
  },
);

for (const form of ["list", "map"] as const) {
  scenario(
    `A standalone bulk of a ${form} follows the number in the spec and its primary [StandaloneBulkDependentIT]`,
    async (fixture) => {
      const maps = bulkDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: ({ metadata, spec }) => {
          const list = Array.from(
            { length: spec.numberOfExecutions ?? 0 },
            (_, index) => ({
              metadata: {
                name: `${metadata.name}-${index}`,
                labels: { value: spec.value },
              },
            }),
          );
          return form === "list"
            ? list
            : new Map(list.map((map, index) => [`slot-${index}`, map]));
        },
      });
      const operator = fixture.operator();
      const sizes: (number | undefined)[] = [];
      operator.register(Gadget, {
        async reconcile(gadget, ctx) {
          sizes.push((await maps.reconcile(gadget, ctx)).resource?.size);
        },
      }, { sources: maps.sources });
      const labels = async () =>
        (await fixture.client.list(ConfigMap, { namespace: "default" })).items
          .filter(({ metadata }) => metadata.name.startsWith("a-"))
          .map(({ metadata }) => metadata.labels?.["value"])
          .join();
      await fixture.start(operator);
      await fixture.create("a", { numberOfExecutions: 3 });
      await fixture.until(async () => await labels() === "first,first,first");
      await fixture.change("a", { numberOfExecutions: 1, value: "second" });
      await fixture.until(async () => await labels() === "second");
      await fixture.change("a", { numberOfExecutions: 2 });
      await fixture.until(async () => await labels() === "second,second");
      const [first, second] = sizes;
      assert.deepEqual(
        { first, second, last: sizes.at(-1) },
        { first: 3, second: 1, last: 2 },
      );
      await fixture.remove("a");
      await fixture.until(async () => await labels() === "");
    },
  );
}
