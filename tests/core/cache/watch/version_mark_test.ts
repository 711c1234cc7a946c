import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { compareResourceVersions } from "../../../../core/api/resource_version.ts";
import { VersionMark } from "../../../../core/cache/watch/reflector.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import type { ObjectHeader } from "../../../../core/json/object_header.ts";

const version = fc.oneof(
  fc.nat(20).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 20n }).map(String),
  fc.constantFrom("", "007", "999999999999999", "1000000000000000", "a"),
);

function headerOf(resourceVersion: string): ObjectHeader {
  const object = { metadata: { name: "web", resourceVersion } };
  return new EventScanner().scanObject(wholeRange(JSON.stringify(object)));
}

test("VersionMark keeps any version and orders them like compareResourceVersions", () => {
  fc.assert(
    fc.property(version, version, fc.boolean(), (at, next, asText) => {
      const mark = new VersionMark();
      if (asText) mark.text = at;
      else mark.moveTo(headerOf(at));
      assert.equal(mark.text, at);
      assert.equal(
        mark.isAheadOf(headerOf(next)),
        compareResourceVersions(at, next) > 0,
      );
      mark.moveTo(headerOf(next));
      assert.equal(mark.text, next);
    }),
  );
});

test("VersionMark is behind every version before it moves", () => {
  const mark = new VersionMark();
  assert.equal(mark.text, "");
  assert.ok(!mark.isAheadOf(headerOf("0")));
});
