import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import {
  compressPage,
  decompressPage,
  discardPage,
  usableDictionary,
} from "../../../../core/cache/store/page_codec.ts";

test("decompressPage restores pages of any length and discards no other page", () => {
  const content = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.tuple(fc.string({ minLength: 1, maxLength: 50 }), fc.nat(3_000))
      .map(([text, times]) => text.repeat(times)),
  );
  const text = "what many pages have in common ".repeat(40);
  const dictionary = usableDictionary(Buffer.from(text));
  fc.assert(
    fc.property(content, content, (one, other) => {
      const [first, second] = [one, other].map((text) => {
        const bytes = Buffer.from(text);
        const frame = compressPage(bytes, dictionary);
        const { length } = bytes;
        return decompressPage(frame, { length, dictionary });
      });
      assert.equal(first?.toString(), one);
      discardPage(first!);
      assert.equal(second?.toString(), other);
    }),
    { numRuns: 100 },
  );
});
