import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { MemoryBudget, silentLogger } from "@coracle/operator/client";
import {
  cgroupMemoryLimit,
  defaultCacheBudget,
} from "../../../../core/cache/store/cgroup_limit.ts";
import { fc } from "../../../support/property.ts";
import { MemoryPressure } from "../../../../core/cache/store/memory_pressure.ts";

/** Member whose memory shrinks by 10 bytes per step. */
class Member {
  readonly budget: MemoryBudget;
  held = 0;
  steps = 0;
  constructor(budget: MemoryBudget) {
    this.budget = budget;
  }
  get demotableBytes(): number {
    return this.held;
  }
  use(bytes: number): void {
    this.held = bytes;
    this.budget.charge(this, bytes);
  }
  demote(): void {
    this.steps++;
    this.use(Math.max(0, this.held - 10));
  }
}

test("MemoryBudget demotes objects of the largest member, a few with each change", () => {
  const budget = new MemoryBudget(100);
  const small = new Member(budget);
  const large = new Member(budget);
  small.use(60);
  assert.equal(budget.used, 60);
  large.use(90);
  assert.deepEqual({ small: small.steps, large: large.steps }, {
    small: 0,
    large: 2,
  });
  assert.ok(budget.isExceeded);
  assert.equal(budget.settle(), true);
  assert.equal(budget.used, 100);
  budget.limit = "10B";
  assert.equal(budget.settle(1), false);
  assert.equal(budget.settle(), true);
  assert.ok(budget.used <= 10);
  budget.leave(large);
  budget.leave(small);
  assert.equal(budget.used, 0);
});

test("MemoryBudget always demotes the member with the most, until it is met", () => {
  const sizes = fc.array(
    fc.record({ member: fc.nat(4), bytes: fc.nat(200), leaves: fc.boolean() }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), sizes, (limit, steps) => {
      const budget = new MemoryBudget(limit);
      const members = Array.from({ length: 5 }, () => new Member(budget));
      const inUse = new Set<Member>();
      for (const one of members) {
        const demote = one.demote.bind(one);
        one.demote = () => {
          const most = Math.max(...Array.from(inUse, ({ held }) => held));
          assert.equal(one.held, most);
          demote();
        };
      }
      for (const { member, bytes, leaves } of steps) {
        const one = members[member] as Member;
        if (leaves) {
          inUse.delete(one);
          budget.leave(one);
        } else {
          inUse.add(one);
          one.held = bytes;
          budget.charge(one, bytes);
        }
        const used = () => [...inUse].reduce((sum, { held }) => sum + held, 0);
        assert.equal(budget.used, used());
        assert.equal(budget.settle(), true);
        assert.equal(budget.used, used());
        assert.ok(budget.used <= limit);
      }
    }),
  );
});

test("MemoryBudget demotes below its limit with each change while memory is short", () => {
  const pressure = new MemoryPressure({
    limit: 1_000,
    used: () => 950,
    clock: new VirtualClock(),
    log: silentLogger,
  });
  const member = new Member(new MemoryBudget("1MiB", { pressure }));
  member.use(800);
  assert.equal(member.steps, 0);
  assert.equal(member.budget.mustWait(), true);
  assert.equal(member.budget.allowed, 700);
  member.use(800);
  assert.equal(member.steps, 2);
});

test("MemoryBudget seldom asks many members of which none can demote", () => {
  const budget = new MemoryBudget(1);
  let asked = 0;
  let demotable = 0;
  const members = Array.from({ length: 800 }, () => ({
    get demotableBytes() {
      asked++;
      return demotable;
    },
    demote: () => void (demotable = 0),
  }));
  for (const member of members) budget.charge(member, 10);
  asked = 0;
  for (const member of members) budget.charge(member, 20);
  assert.ok(asked > 0 && asked <= 9 * members.length, `received ${asked}`);
  demotable = 1;
  for (const member of members.slice(0, 101)) budget.charge(member, 30);
  assert.equal(demotable, 0, "they are asked after a while");
});

test("MemoryBudget stops when nothing demotable is left", () => {
  const budget = new MemoryBudget(10);
  const member = {
    demotableBytes: 0,
    demote: () => assert.fail("nothing is demotable"),
  };
  budget.charge(member, 50);
  assert.equal(budget.settle(), true);
  assert.ok(budget.isExceeded);
});

function files(
  map: Record<string, string>,
): (path: string) => string | undefined {
  return (path) => map[path];
}

test("cgroupMemoryLimit reads version 2, in a container and on a host", () => {
  assert.equal(
    cgroupMemoryLimit(files({
      "/proc/self/cgroup": "0::/\n",
      "/sys/fs/cgroup/memory.max": "536870912\n",
    })),
    536870912,
  );
  assert.equal(
    cgroupMemoryLimit(files({
      "/proc/self/cgroup": "0::/kubepods.slice/pod1/container\n",
      "/sys/fs/cgroup/kubepods.slice/pod1/container/memory.max": "max\n",
      "/sys/fs/cgroup/kubepods.slice/pod1/memory.max": "1073741824\n",
      "/sys/fs/cgroup/kubepods.slice/memory.max": "9663676416\n",
    })),
    1073741824,
  );
});

test("cgroupMemoryLimit reads version 1, also with the path of the host", () => {
  const cgroup = "12:pids:/x\n7:memory:/kubepods/pod1/abc\n0::/x\n";
  assert.equal(
    cgroupMemoryLimit(files({
      "/proc/self/cgroup": cgroup,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
    })),
    268435456,
  );
  assert.equal(
    cgroupMemoryLimit(files({
      "/proc/self/cgroup": cgroup,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    })),
    undefined,
  );
});

test("cgroupMemoryLimit is undefined without control groups", () => {
  assert.equal(cgroupMemoryLimit(() => undefined), undefined);
});

test("defaultCacheBudget is a quarter of the memory limit, with a minimum", () => {
  const limited = files({
    "/proc/self/cgroup": "0::/\n",
    "/sys/fs/cgroup/memory.max": String(512 * 1024 ** 2),
  });
  assert.equal(defaultCacheBudget(8 * 1024 ** 3, limited), 128 * 1024 ** 2);
  assert.equal(defaultCacheBudget(1024 ** 3, () => undefined), 256 * 1024 ** 2);
  assert.equal(defaultCacheBudget(1024, () => undefined), 16 * 1024 ** 2);
});

test("MemoryBudget lets caches wait while it is exceeded or the pressure grows", () => {
  const measured: number[] = [];
  const pressure = {
    limit: 1_000,
    cap: Infinity,
    isGrowing: false,
    measure: (used: number) => void measured.push(used),
  };
  const budget = new MemoryBudget(100, {
    pressure: pressure as unknown as MemoryPressure,
  });
  const member = { demotableBytes: 0, demote() {} };
  budget.charge(member, 100);
  assert.equal(budget.mustWait(), false);
  pressure.isGrowing = true;
  assert.equal(budget.mustWait(), true);
  pressure.isGrowing = false;
  budget.charge(member, 101);
  assert.equal(budget.mustWait(), true);
  assert.deepEqual(measured, [100, 100, 101]);
  assert.equal(new MemoryBudget(100).mustWait(), false);
  const misspelt = { presure: pressure } as object;
  assert.throws(() => new MemoryBudget(100, misspelt), TypeError);
});

test("Decoded objects of all stores together are limited, whatever the budget", () => {
  const budget = new MemoryBudget("4GiB");
  const shrunk: number[] = [];
  const members = [20, 10, 5].map((mebibytes, index) => {
    const member = {
      demotableBytes: 0,
      demote() {},
      decoded: mebibytes * 2 ** 20,
      shrinkDecoded() {
        shrunk.push(index);
        member.decoded /= 2;
        budget.charge(member, member.decoded, member.decoded);
      },
    };
    budget.charge(member, member.decoded, member.decoded);
    return member;
  });
  assert.deepEqual(shrunk, [0], "the largest is halved when it is too much");
  assert.equal(budget.used, 25 * 2 ** 20);
  members.forEach((member) => budget.leave(member));
  assert.equal(budget.used, 0);
});
