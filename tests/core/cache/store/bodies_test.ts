import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { BodyWriter } from "../../../../core/cache/store/bodies.ts";
import { rangeText, wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";

const kind = { group: "apps", version: "v1", kind: "Deployment" };

test("BodyWriter writes the stored form of an object at any position", () => {
  const scanner = new EventScanner();
  const managed = fc.constantFrom(undefined, [], [{ manager: "me" }]);
  const name = fc.string().map((text) => text.replaceAll("/", "-"));
  const object = fc.record({
    apiVersion: fc.constant("apps/v1"),
    kind: fc.constant("Deployment"),
    metadata: fc.record({ name, managedFields: managed }),
    spec: fc.json().map((text) => JSON.parse(text)),
  }, { requiredKeys: ["metadata"] });
  const paths = fc.constantFrom([], ["metadata.managedFields"], ["spec"]);
  fc.assert(
    fc.property(object, paths, fc.nat(20), (told, prune, start) => {
      const writer = new BodyWriter(kind, prune);
      const header = scanner.scanObject(wholeRange(JSON.stringify(told)));
      const expected = JSON.parse(JSON.stringify({
        apiVersion: "apps/v1",
        kind: "Deployment",
        ...told,
      }));
      if (prune[0] === "spec") delete expected.spec;
      else if (prune.length > 0) delete expected.metadata.managedFields;
      assert.deepEqual(JSON.parse(rangeText(writer.write(header))), expected);

      const { length } = writer.take(header);
      const target = Buffer.alloc(start + length + 5, "#");
      writer.writeTo(target, start);
      const text = target.toString();
      assert.equal(target.toString("utf8", 0, start), "#".repeat(start));
      assert.ok(text.endsWith("#".repeat(5)));
      assert.deepEqual(
        JSON.parse(target.toString("utf8", start, start + length)),
        expected,
      );
    }),
  );
});
