import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { shardSelector } from "../../support/shard_selector.ts";
import {
  inShard,
  parseShardSelector,
} from "../../../core/api/shard_selector.ts";

const ALL = "shardRange(object.metadata.uid, '0x0000000000000000', " +
  "'0x10000000000000000')";

/** Reference implementation of FNV-1a. */
function fnv1a(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash;
}

function range(start: bigint, end: bigint): string {
  const digits = (value: bigint) =>
    `'0x${value.toString(16).padStart(16, "0")}'`;
  return `shardRange(object.metadata.uid, ${digits(start)}, ${digits(end)})`;
}

test("inShard hashes with 64-bit FNV-1a", () => {
  fc.assert(
    fc.property(fc.uuid(), (uid) => {
      const hash = fnv1a(uid);
      const object = { uid, namespace: "default" };
      const matches = (text: string) =>
        inShard(parseShardSelector(text), object);
      assert.equal(matches(range(hash, hash + 1n)), true);
      assert.equal(matches(range(hash + 1n, 1n << 64n)), false);
      assert.equal(matches(range(0n, hash)), false);
      assert.equal(
        matches(`${range(0n, hash)} || ${range(hash, 1n << 64n)}`),
        true,
      );
    }),
  );
  assert.equal(fnv1a("a"), 0xaf63dc4c8601ec8cn, "a published value");
});

test("Each object is in exactly one of all parts", () => {
  fc.assert(
    fc.property(
      fc.uuid(),
      fc.integer({ min: 1, max: 9 }),
      fc.constantFrom("uid" as const, "namespace" as const),
      (text, count, field) => {
        const parts = Array.from(
          { length: count },
          (_, index) => shardSelector({ index, count, field }),
        ).filter((selector) =>
          inShard(parseShardSelector(selector), { uid: text, namespace: text })
        );
        assert.equal(parts.length, 1);
      },
    ),
  );
});

test("parseShardSelector rejects selectors like a server, with the reason", () => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ["", /must be shardRange/],
    ["true", /must be shardRange/],
    [ALL.replace("object.metadata.uid", "metadata.uid"), /must be shardRange/],
    [ALL.replace("uid", "name"), /must be shardRange/],
    [ALL.replace("0x0000000000000000", "0x0"), /16 digits/],
    [ALL.replace("0x10000000000000000", "0x10000000000000001"), /16 digits/],
    [ALL.replace("0x0000000000000000", "0xABCDEF0000000000"), /16 digits/],
    [range(5n, 5n), /must not be empty/],
    [`${ALL} || ${ALL.replace("uid", "namespace")}`, /the same field/],
  ];
  for (const [text, message] of bad) {
    assert.throws(() => parseShardSelector(text), (error) => {
      assert.ok(error instanceof SyntaxError);
      assert.match(error.message, message);
      return true;
    });
  }
});
