import { fc } from "../../support/property.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareResourceVersions } from "../../../core/api/resource_version.ts";

test("compareResourceVersions orders numbers of any length [J5]", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n }), fc.bigInt({ min: 0n }), (a, b) => {
      const order = compareResourceVersions(String(a), String(b));
      assert.equal(Math.sign(order), a < b ? -1 : a > b ? 1 : 0);
    }),
  );
});

test("compareResourceVersions orders a missing version before all others", () => {
  assert.ok(compareResourceVersions("", "0") < 0);
  assert.equal(compareResourceVersions("", ""), 0);
});
