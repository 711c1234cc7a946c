import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { SortedKeys } from "../../../dev/apiserver/storage/sorted_keys.ts";

const key = fc.stringMatching(/^[a-c]{1,3}\/[a-c-]{1,3}$/);

test("SortedKeys returns any range in order after any adds and deletes", () => {
  const step = fc.record({
    key,
    read: fc.option(fc.tuple(key, key), { nil: undefined }),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
    const keys = new SortedKeys();
    const model = new Set<string>();
    for (const { key, read } of steps) {
      if (model.delete(key)) keys.delete(key);
      else {
        model.add(key);
        keys.add(key);
      }
      if (read) {
        const [start, end] = read;
        assert.deepEqual(
          keys.range(start, end),
          [...model].sort().filter((each) => each >= start && each < end),
        );
      }
    }
    assert.deepEqual(keys.range("", undefined), [...model].sort());
  }));
});
