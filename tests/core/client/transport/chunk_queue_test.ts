import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ChunkQueue,
  WholeBody,
} from "../../../../core/client/transport/chunk_queue.ts";

class Source {
  readonly calls: string[] = [];
  pause(): void {
    this.calls.push("pause");
  }
  resume(): void {
    this.calls.push("resume");
  }
  leave(): void {
    this.calls.push("leave");
  }
}

function bytes(length: number): Uint8Array {
  return new Uint8Array(length);
}

async function rest(queue: ChunkQueue): Promise<number[]> {
  const lengths: number[] = [];
  for await (const chunk of queue) lengths.push(chunk.byteLength);
  return lengths;
}

test("ChunkQueue delivers chunks in order, whoever is first", async () => {
  const queue = new ChunkQueue(new Source());
  const early = queue.next();
  queue.push(bytes(1));
  queue.push(bytes(2));
  assert.equal((await early).value?.byteLength, 1);
  queue.push(bytes(3));
  queue.end();
  queue.push(bytes(4));
  assert.deepEqual(await rest(queue), [2, 3]);
  assert.deepEqual(await rest(queue), []);
});

test("ChunkQueue pauses its source when full and resumes at half", async () => {
  const source = new Source();
  const queue = new ChunkQueue(source, { highWaterMark: 10 });
  for (const length of [5, 5]) queue.push(bytes(length));
  assert.deepEqual(source.calls, []);
  for (const length of [5, 5]) queue.push(bytes(length));
  assert.deepEqual(source.calls, ["pause"]);
  for (let count = 0; count < 2; count++) await queue.next();
  assert.deepEqual(source.calls, ["pause"]);
  await queue.next();
  assert.deepEqual(source.calls, ["pause", "resume"]);
  for (const length of [5, 5]) queue.push(bytes(length));
  assert.deepEqual(source.calls, ["pause", "resume", "pause"], "once more");
  for (let count = 0; count < 2; count++) await queue.next();
  assert.deepEqual(source.calls, ["pause", "resume", "pause", "resume"]);
});

test("ChunkQueue throws a failure once, after the chunks before it", async () => {
  const queue = new ChunkQueue(new Source());
  queue.push(bytes(1));
  queue.fail(new Error("broken"));
  queue.end();
  assert.equal((await queue.next()).value?.byteLength, 1);
  await assert.rejects(() => queue.next(), /broken/);
  assert.equal((await queue.next()).done, true);
  const waiting = new ChunkQueue(new Source());
  const next = waiting.next();
  waiting.fail(new Error("broken"));
  await assert.rejects(next, /broken/);
  assert.equal((await waiting.next()).done, true);
});

test("ChunkQueue that has ended or failed takes no other end", async () => {
  const ended = new ChunkQueue(new Source());
  ended.push(bytes(1));
  ended.end();
  ended.fail(new Error("reset"), true);
  assert.deepEqual(await rest(ended), [1]);
  const failed = new ChunkQueue(new Source());
  failed.fail(new Error("first"));
  failed.fail(new Error("second"));
  failed.end();
  await assert.rejects(() => failed.next(), /first/);
});

test("ChunkQueue ends its source once when the reader leaves", async () => {
  const source = new Source();
  const queue = new ChunkQueue(source);
  queue.push(bytes(1));
  for await (const _chunk of queue) break;
  await queue.return();
  queue.push(bytes(2));
  assert.deepEqual(source.calls, ["leave"]);
  assert.deepEqual(await rest(queue), []);
  const ended = new ChunkQueue(source);
  ended.end();
  await ended.return();
  assert.deepEqual(source.calls, ["leave"]);
});

test("ChunkQueue ends a read that waits when the reader leaves", async () => {
  const source = new Source();
  const queue = new ChunkQueue(source);
  const waiting = queue.next();
  await queue.return();
  assert.deepEqual(
    await Promise.race([waiting, new Promise(setImmediate)]),
    { done: true, value: undefined },
  );
  assert.deepEqual(source.calls, ["leave"]);
});

test("ChunkQueue fails beyond its limit", async () => {
  const source = new Source();
  const queue = new ChunkQueue(source, { highWaterMark: Infinity, limit: 10 });
  queue.push(bytes(6));
  queue.push(bytes(6));
  assert.deepEqual(source.calls, ["leave"]);
  assert.equal(queue.closed, true);
  await assert.rejects(() => rest(queue), RangeError);
});

test("ChunkQueue that is left or drops has nothing to read", async () => {
  const left = new ChunkQueue(new Source());
  const failed = new ChunkQueue(new Source());
  for (const queue of [left, failed]) queue.push(bytes(3));
  await left.return();
  assert.deepEqual(await rest(left), []);
  failed.fail(new Error("broken"), true);
  await assert.rejects(failed.next(), /broken/);
  for (const queue of [left, failed]) assert.equal(queue.size, 0);
});

test("WholeBody that is empty has no chunk", async () => {
  for await (const _chunk of new WholeBody(bytes(0))) assert.fail("a chunk");
});
