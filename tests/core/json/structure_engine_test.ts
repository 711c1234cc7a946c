import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  INCOMPLETE,
  scalarProgram,
  simdProgram,
  StructureEngine,
} from "../../../core/json/structure_engine.ts";
import { damaged, jsonText } from "../../support/json_documents.ts";

const nested = fc.oneof(
  jsonText.map((text) => `[${text}]`),
  fc.array(jsonText, { maxLength: 30 }).map((list) => `{"a":[${list}]}`),
);

function simdEngine(): StructureEngine {
  const program = simdProgram();
  assert.ok(program, "this runtime has WebAssembly SIMD");
  return new StructureEngine(program);
}

test("StructureEngine finds the same end of any value with either program", () => {
  const simd = simdEngine();
  const scalar = new StructureEngine(scalarProgram());
  fc.assert(
    fc.property(
      fc.oneof(nested, damaged(nested)),
      fc.nat(130),
      (text, offset) => {
        fc.pre(/^[{[]/.test(text));
        const bytes = Buffer.from(`${"\\".repeat(offset)}${text}"]}\\`);
        const end = bytes.length - 4;
        scalar.load(bytes, offset, end);
        simd.load(bytes, offset, end);
        assert.equal(simd.skip(offset), scalar.skip(offset));
      },
    ),
    { numRuns: 500 },
  );
});

test("StructureEngine finds the end of a value received in parts", () => {
  const engines = [simdEngine(), new StructureEngine(scalarProgram())];
  fc.assert(
    fc.property(
      nested,
      fc.array(fc.nat(150), { minLength: 1 }),
      (text, sizes) => {
        const bytes = Buffer.from(`${text}"]}`);
        const expected = Buffer.byteLength(text);
        for (const engine of engines) {
          engine.reset();
          let from = 0;
          let known = 0;
          let found = INCOMPLETE;
          for (let i = 0; found === INCOMPLETE && known < bytes.length; i++) {
            const size = (sizes[i % sizes.length] ?? 0) + 1;
            known = Math.min(known + size, bytes.length);
            found = engine.resume(bytes, from, known);
            from = engine.position;
            const saved = engine.save();
            engine.reset(); // as another user of the engine would
            engine.restore(saved);
          }
          assert.equal(found, expected);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("StructureEngine continues after its window", () => {
  for (const program of [simdProgram(), scalarProgram()]) {
    assert.ok(program);
    const engine = new StructureEngine(program);
    for (const size of [65_300, 65_400, 65_500, 200_000]) {
      const value = `[${'"\\\\\\"]",'.repeat(size / 8)}{}]`;
      const bytes = Buffer.from(`[0]${value}[1]`);
      engine.load(bytes, 0, bytes.length);
      assert.equal(engine.skip(0), 3);
      assert.equal(engine.skip(3), 3 + value.length);
      assert.equal(engine.skip(0), 3, "the window has changed");
      assert.equal(engine.skip(3 + value.length), bytes.length);
      assert.equal(engine.skip(0), 3, "it can go back");
    }
  }
});
