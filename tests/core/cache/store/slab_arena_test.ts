import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { currentRuntime } from "../../../../core/client/transport/runtime.ts";
import { SlabArena } from "../../../../core/cache/store/slab_arena.ts";

function content(owner: number, length: number): Uint8Array {
  return new Uint8Array(length).fill(owner % 251);
}

test("SlabArena keeps records through any history and reports moves", () => {
  const history = fc.array(
    fc.tuple(
      fc.nat(40),
      fc.oneof(fc.nat(2_000), fc.nat(60_000), fc.constant(300_000)),
      fc.constantFrom("write", "write", "free", "reclaim"),
    ),
    { maxLength: 200, size: "max" },
  );
  fc.assert(
    fc.property(history, (history) => {
      const addresses = new Map<number, number>();
      const lengths = new Map<number, number>();
      const arena = new SlabArena((owner, address) => {
        assert.ok(addresses.has(owner), "only live records move");
        addresses.set(owner, address);
      });
      for (const [owner, length, action] of history) {
        const known = addresses.get(owner);
        if (action === "reclaim") arena.reclaim();
        else if (action === "free" && known !== undefined) {
          arena.free(known);
          addresses.delete(owner);
          lengths.delete(owner);
        } else if (action === "write") {
          if (known === undefined || !arena.resize(known, length)) {
            const address = arena.allocate(owner, length);
            const former = addresses.get(owner); // it may have moved
            addresses.set(owner, address);
            if (former !== undefined) arena.free(former);
            arena.look(address);
          }
          arena.bytes.set(content(owner, length), arena.start);
          lengths.set(owner, length);
        }
      }
      let live = 0;
      for (const [owner, address] of addresses) {
        const { bytes, start, end } = arena.look(address);
        const length = lengths.get(owner) ?? -1;
        assert.equal(end - start, length);
        assert.deepEqual(
          new Uint8Array(bytes.subarray(start, end)),
          content(owner, length),
        );
        live += length;
      }
      assert.ok(arena.liveBytes >= live);
      assert.ok(arena.allocatedBytes >= arena.liveBytes);
    }),
    { numRuns: 100 },
  );
});

test("SlabArena frees dead space while records are added and freed", () => {
  const addresses = new Map<number, number>();
  const arena = new SlabArena((owner, address) =>
    addresses.set(owner, address)
  );
  for (let i = 0; i < 40_000; i++) {
    const owner = (i * 7919) % 500;
    const address = arena.allocate(owner, 1_000 + (i * 31) % 3_000);
    const former = addresses.get(owner);
    addresses.set(owner, address);
    if (former !== undefined) arena.free(former);
  }
  const { liveBytes, allocatedBytes } = arena;
  assert.ok(allocatedBytes < 1.6 * liveBytes, `${allocatedBytes} ${liveBytes}`);
  for (const address of addresses.values()) arena.free(address);
  assert.equal(arena.liveBytes, 0);
  assert.ok(arena.allocatedBytes <= 256 * 1024);
});

test("SlabArena moves nothing while nothing was freed", () => {
  const arena = new SlabArena(() => assert.fail("nothing has to move"), 1 / 32);
  for (let owner = 0; owner < 1_000; owner++) {
    arena.allocate(owner, 1_000);
    arena.reclaim();
  }
  assert.ok(arena.liveBytes > 1_000_000);
});

test("SlabArena reuses an empty slab before it allocates a new one", () => {
  const arena = new SlabArena(() => assert.fail("nothing has to move"));
  const kept = arena.allocate(0, 2_000_000);
  const memories = new Set<ArrayBufferLike>();
  for (let round = 0; round < 50; round++) {
    const addresses = Array.from({ length: 100 }, (_, owner) => {
      const address = arena.allocate(owner + 1, 4_000);
      arena.bytes.set(content(owner, 4_000), arena.start);
      memories.add(arena.bytes.buffer);
      return address;
    });
    addresses.forEach((address, owner) => {
      const { bytes, start, end } = arena.look(address);
      assert.deepEqual(
        new Uint8Array(bytes.subarray(start, end)),
        content(owner, 4_000),
      );
    });
    for (const address of addresses) arena.free(address);
  }
  assert.equal(memories.size, 2);
  arena.free(kept);
  assert.ok(arena.allocatedBytes <= 256 * 1024);
});

test("V8 counts no slab, and learns of memory that arenas have freed", {
  skip: currentRuntime() !== "node",
}, () => {
  const MIB = 2 ** 20;
  const { external } = process.memoryUsage();
  const counted = () => (process.memoryUsage().external - external) / MIB;
  const arena = new SlabArena(() => assert.fail("nothing has to move"));
  const addresses = Array.from(
    { length: 4_000 },
    (_, owner) => arena.allocate(owner, 16_000),
  );
  assert.ok(arena.allocatedBytes > 60 * MIB);
  assert.ok(counted() < 4, `${counted()} MiB`);
  for (const address of addresses) arena.free(address);
  assert.ok(counted() > 28, `${counted()} MiB`);
});
