import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { LruCache } from "../../../../core/cache/store/lru_cache.ts";

test("LruCache equals a list ordered by use over any history", () => {
  const history = fc.array(
    fc.record({
      do: fc.constantFrom("set", "set", "get", "peek", "delete", "limit"),
      key: fc.nat(20),
      size: fc.nat(9),
    }),
    { maxLength: 200, size: "max" },
  );
  fc.assert(
    fc.property(history, (history) => {
      const cache = new LruCache<number, string>(40);
      let model: { key: number; value: string; size: number }[] = [];
      let limit = 40;
      const trim = () => {
        const sum = () => model.reduce((sum, { size }) => sum + size, 0);
        while (sum() > limit) model.shift();
        return sum();
      };
      history.forEach((step, i) => {
        const known = model.find(({ key }) => key === step.key);
        const rest = model.filter(({ key }) => key !== step.key);
        if (step.do === "set") {
          const entry = { key: step.key, value: `${i}`, size: step.size };
          cache.set(step.key, entry.value, step.size);
          model = step.size > limit ? rest : [...rest, entry];
        } else if (step.do === "get") {
          assert.equal(cache.get(step.key), known?.value);
          if (known) model = [...rest, known];
        } else if (step.do === "peek") {
          assert.equal(cache.peek(step.key), known?.value);
        } else if (step.do === "delete") {
          cache.delete(step.key);
          model = rest;
        } else cache.maxSize = limit = step.size * 6;
        assert.equal(trim(), cache.size);
        assert.equal(cache.count, model.length);
      });
      for (const { key, value } of model) assert.equal(cache.peek(key), value);
    }),
    { numRuns: 300 },
  );
});
