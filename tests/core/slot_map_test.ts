import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { SlotMap } from "../../core/slot_map.ts";

test("SlotMap equals a Map over any history", () => {
  const history = fc.array(
    fc.record({
      do: fc.constantFrom("set", "set", "delete", "get", "clear"),
      key: fc.nat(9),
    }),
    { maxLength: 100, size: "max" },
  );
  fc.assert(
    fc.property(history, (history) => {
      const map = new SlotMap<number, { readonly step: number }>();
      const model = new Map<number, { readonly step: number }>();
      history.forEach(({ do: what, key }, step) => {
        if (what === "set") {
          map.set(key, { step });
          model.set(key, { step });
        } else if (what === "delete") {
          assert.equal(map.delete(key), model.delete(key));
        } else if (what === "clear") {
          map.clear();
          model.clear();
        } else assert.deepEqual(map.get(key), model.get(key));
        assert.equal(map.size, model.size);
        assert.deepEqual([...map], [...model]);
        assert.deepEqual([...map.keys()], [...model.keys()]);
        assert.deepEqual([...map.values()], [...model.values()]);
      });
    }),
  );
});

test("SlotMap can lose values while they are iterated", () => {
  const map = new SlotMap<string, { readonly name: string }>();
  for (const name of ["a", "b", "c"]) map.set(name, { name });
  const seen: string[] = [];
  for (const { name } of map.values()) {
    seen.push(name);
    map.delete(name);
    map.delete("b");
  }
  assert.deepEqual(seen, ["a", "c"]);
});
