import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  LineSplitter,
  TooLongError,
} from "../../../core/json/line_splitter.ts";

function split(
  splitter: LineSplitter,
  chunks: readonly Uint8Array[],
): string[] {
  const lines: string[] = [];
  const take = () => {
    const { bytes, start, end } = splitter;
    lines.push(Buffer.from(bytes.subarray(start, end)).toString());
  };
  for (const chunk of chunks) {
    splitter.push(chunk);
    while (splitter.next()) take();
  }
  if (splitter.finish()) take();
  return lines;
}

test("LineSplitter returns the same lines for any chunk boundaries", () => {
  const text = fc.array(
    fc.constantFrom("\n", "\r\n", "a", "bc", "é", "", "line"),
    { maxLength: 30 },
  ).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, fc.array(fc.nat(6)), (text, sizes) => {
      const bytes = Buffer.from(text);
      const chunks: Uint8Array[] = [];
      let at = 0;
      for (const size of [...sizes, bytes.length]) {
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      const expected = text.split(/\r?\n/).filter((line) => line !== "");
      assert.deepEqual(split(new LineSplitter(), chunks), expected);
    }),
  );
});

test("LineSplitter does not copy a line within one chunk", () => {
  const splitter = new LineSplitter();
  const chunk = Buffer.from("one\ntwo\n");
  splitter.push(chunk);
  assert.ok(splitter.next());
  assert.equal(splitter.bytes.buffer, chunk.buffer);
  assert.deepEqual([splitter.start, splitter.end], [0, 3]);
});

test("LineSplitter rejects a line over the limit, complete or not", () => {
  const limit = 10;
  assert.deepEqual(
    split(new LineSplitter(limit), [Buffer.from("0123456789\n")]),
    ["0123456789"],
  );
  for (const chunks of [["0123456789a\n"], ["01234", "56789", "a"]]) {
    assert.throws(
      () =>
        split(new LineSplitter(limit), chunks.map((text) => Buffer.from(text))),
      (error: unknown) =>
        TooLongError.is(error) && error.size === 11 && error.limit === 10 &&
        /a line: it is longer than 10 bytes/.test(error.message),
    );
  }
});

test("LineSplitter rejects a chunk while lines are unread", () => {
  const splitter = new LineSplitter();
  splitter.push(Buffer.from("one\ntwo\n"));
  assert.ok(splitter.next());
  assert.throws(() => splitter.push(Buffer.from("x")), /Cannot push a chunk/);
});

test("LineSplitter frees the memory of a long line", () => {
  const splitter = new LineSplitter();
  const long = Buffer.alloc(3 * 1024 * 1024, "x");
  assert.equal(
    split(splitter, [long, Buffer.from("y\n")])[0]?.length,
    long.length + 1,
  );
  split(splitter, [Buffer.from("sho"), Buffer.from("rt\n")]);
  assert.ok(splitter.bytes.buffer.byteLength <= 1024 * 1024);
});

test("LineSplitter that released its chunk holds no part of it", () => {
  const splitter = new LineSplitter();
  splitter.push(Buffer.from("one\ntw"));
  while (splitter.next());
  splitter.release();
  assert.equal(splitter.bytes.buffer.byteLength, 0);
  splitter.push(Buffer.from("o\n"));
  assert.equal(splitter.next(), true);
  const { bytes, start, end } = splitter;
  assert.equal(Buffer.from(bytes.subarray(start, end)).toString(), "two");
});
