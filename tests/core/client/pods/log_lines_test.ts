import assert from "node:assert/strict";
import { test } from "node:test";
import { logLines } from "../../../../core/client/pods/pod_requests.ts";

async function* chunks(
  bytes: Uint8Array,
  size: number,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    yield await Promise.resolve(bytes.subarray(at, at + size));
  }
}

async function read(text: string, size: number): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  const lines: string[] = [];
  for await (const line of logLines(chunks(bytes, size))) lines.push(line);
  return lines;
}

test("logLines gives each line once, wherever the chunks end", async () => {
  for (let size = 1; size < 20; size++) {
    assert.deepEqual(await read("één\n\nto\nthe end", size), [
      "één",
      "",
      "to",
      "the end",
    ]);
    assert.deepEqual(await read("a\nb\n", size), ["a", "b"]);
  }
});

test("logLines marks a character that the end of the log cuts", async () => {
  const bytes = new TextEncoder().encode("aé").subarray(0, 2);
  const lines: string[] = [];
  for await (const line of logLines(chunks(bytes, 1))) lines.push(line);
  assert.deepEqual(lines, ["a\ufffd"]);
});

test("logLines gives a line that is too long in parts", async () => {
  const long = "abcdefgh".repeat(400_000);
  const lines = await read(`one\n${long}\ntwo\n`, 100_000);
  const parts = lines.slice(1, -1);
  assert.deepEqual([lines[0], lines.at(-1)], ["one", "two"]);
  assert.equal(parts.join(""), long);
  assert.ok(parts.length > 2);
  assert.ok(parts.every(({ length }) => length < (1 << 20) + 100_000));
});
