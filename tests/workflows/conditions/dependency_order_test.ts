import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  DependencyCycleError,
  dependencyOrder,
} from "../../../workflows/kstatus/dependencies.ts";

function dependent(
  name: string,
  ...dependsOn: string[]
): Parameters<typeof dependencyOrder>[0][number] {
  return {
    key: { namespace: "ns", name },
    dependsOn: dependsOn.map((text) => {
      const [other, namespace] = text.split("/").reverse();
      return { name: other!, ...(namespace && { namespace }) };
    }),
  };
}

test("dependencyOrder is stable and puts dependencies first, unknown ones too [F41]", () => {
  assert.deepEqual(
    dependencyOrder([
      dependent("c", "b", "other/x"),
      dependent("a"),
      dependent("b", "a"),
    ]),
    ["ns/a", "ns/b", "other/x", "ns/c"],
  );
});

test("dependencyOrder refuses a cycle and names its path [F41]", () => {
  assert.throws(
    () =>
      dependencyOrder([
        dependent("start", "a"),
        dependent("a", "b"),
        dependent("b", "c"),
        dependent("c", "a"),
      ]),
    (error: unknown) => {
      assert.ok(error instanceof DependencyCycleError);
      assert.deepEqual(error.path, ["ns/a", "ns/b", "ns/c", "ns/a"]);
      return true;
    },
  );
});

test("dependencyOrder takes a chain of any length", () => {
  const chain = Array.from(
    { length: 50_000 },
    (_, index) => dependent(`n${index}`, `n${index + 1}`),
  );
  assert.equal(dependencyOrder(chain)[0], "ns/n50000");
});

test("dependencyOrder puts each object of a random graph after its dependencies [F41]", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.nat(20), { maxLength: 4 }), { maxLength: 20 }),
      (edges) => {
        const objects = edges.map((targets, index) =>
          dependent(
            `n${index}`,
            ...targets.filter((target) => target < index)
              .map((target) => `n${target}`),
          )
        );
        const order = dependencyOrder(objects);
        for (const { key, dependsOn = [] } of objects) {
          for (const { name } of dependsOn) {
            assert.ok(
              order.indexOf(`ns/${name}`) < order.indexOf(`ns/${key.name}`),
            );
          }
        }
        assert.equal(new Set(order).size, order.length);
      },
    ),
  );
});
