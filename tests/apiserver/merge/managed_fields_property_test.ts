import assert from "node:assert/strict";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import { apply, owned, type Spec } from "../../support/managed_widget.ts";

/** Plain objects whose fields may be absent. */
function plainRecord(
  fields: Record<string, fc.Arbitrary<unknown>>,
  requiredKeys: string[] = [],
): fc.Arbitrary<Spec> {
  return fc.record(fields, { requiredKeys, noNullPrototype: true });
}

const words = fc.constantFrom("a", "b", "c");
const specs: fc.Arbitrary<Spec> = plainRecord({
  n: fc.nat(2),
  color: words,
  deep: plainRecord({ x: fc.nat(2) }, ["x"]),
  labels: fc.dictionary(words, words, { minKeys: 1, noNullPrototype: true }),
  tags: fc.uniqueArray(words, { minLength: 1 }),
  steps: fc.array(words, { minLength: 1, maxLength: 3 }),
  parts: fc.uniqueArray(
    plainRecord({ name: words, size: fc.nat(2), note: words }, ["name"]),
    { selector: ({ name }) => name, minLength: 1 },
  ),
});

test("applyManaged is idempotent", () => {
  fc.assert(fc.property(specs, specs, (first, second) => {
    const live = apply(undefined, "one", first);
    const once = apply(live, "two", second, true);
    const twice = apply(once, "two", second, true);
    assert.deepEqual(twice, once);
  }));
});

test("applyManaged gives a manager exactly the fields that it applied last", () => {
  fc.assert(
    fc.property(fc.array(specs, { minLength: 1, maxLength: 4 }), (all) => {
      let live: UntypedObject | undefined;
      for (const spec of all) live = apply(live, "one", spec);
      const wanted = all.at(-1) ?? {};
      // An object that loses its last field becomes null.
      if (Object.keys(wanted).length > 0) assert.deepEqual(live?.spec, wanted);
    }),
  );
});

test("applyManaged never loses a field that another manager owns", () => {
  fc.assert(fc.property(specs, specs, specs, (mine, theirs, next) => {
    let live = apply(undefined, "one", mine);
    live = apply(live, "two", theirs, true);
    live = apply(live, "one", next, true);
    const before = owned(live)["two Apply"] ?? [];
    live = apply(live, "one", {}, true);
    assert.deepEqual(owned(live)["two Apply"] ?? [], before);
    const alone = apply(live, "two", theirs, true);
    assert.deepEqual(sortLists(alone.spec ?? {}), sortLists(theirs));
  }));
});

/** Sorts merged lists, which keep their previous order, to compare their content. */
function sortLists(value: unknown, name = ""): unknown {
  if (Array.isArray(value) && name !== "steps") {
    return value.map((item) => JSON.stringify(sortLists(item))).sort();
  }
  if (Array.isArray(value) || typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
      .map(([key, field]) => [key, sortLists(field, key)]),
  );
}
