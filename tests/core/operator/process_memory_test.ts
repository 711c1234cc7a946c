import assert from "node:assert/strict";
import { totalmem } from "node:os";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  MetricsRegistry,
  Operator,
  type OperatorCacheOptions,
  silentLogger,
} from "@coracle/operator/core";
import {
  operatorBudget,
  SYSTEM,
  type SystemMemory,
} from "../../../core/operator/process_memory.ts";
import { Gadget, scenario } from "../../support/operator_fixture.ts";

const MIB = 2 ** 20;

function budgetOf(cache: OperatorCacheOptions, system: Partial<SystemMemory>) {
  const parts = { clock: new VirtualClock(), log: silentLogger };
  const budget = operatorBudget(cache, parts, {
    total: 4_096 * MIB,
    readFile: () => undefined,
    used: () => 0,
    ...system,
  });
  const { limit, pressure } = budget;
  return { budget: limit / MIB, limit: pressure && pressure.limit / MIB };
}

const V1 = {
  "/proc/self/cgroup": "4:memory:/pod\n",
  "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes": String(512 * MIB),
};
const V2 = {
  "/proc/self/cgroup": "0::/pod\n",
  "/sys/fs/cgroup/pod/memory.max": String(512 * MIB),
};
const reading = (files: Readonly<Record<string, string>>) => ({
  readFile: (path: string) => files[path],
});

test("The memory of the machine is asked for by an operator, not by an import", () => {
  const { get } = Object.getOwnPropertyDescriptor(SYSTEM, "total") ?? {};
  assert.equal(get?.call(SYSTEM), totalmem());
});

test("Caches of an operator respect the memory limit of the control group", () => {
  for (const files of [V1, V2]) {
    assert.deepEqual(budgetOf({}, reading(files)), { budget: 128, limit: 512 });
    assert.deepEqual(budgetOf({ budget: "300MiB" }, reading(files)), {
      budget: 300,
      limit: 512,
    });
    assert.deepEqual(budgetOf({ memoryLimit: false }, reading(files)), {
      budget: 128,
      limit: undefined,
    });
    assert.deepEqual(budgetOf({ memoryLimit: "256MiB" }, reading(files)), {
      budget: 64,
      limit: 256,
    });
  }
  assert.deepEqual(budgetOf({}, {}), { budget: 1_024, limit: undefined });
  assert.deepEqual(budgetOf({ memoryLimit: "8GiB" }, {}), {
    budget: 1_024,
    limit: 4_096,
  });
});

test("Operator rejects a memory limit that is not a size", () => {
  for (const memoryLimit of ["much", true, -1, null]) {
    assert.throws(
      () => new Operator({ cache: { memoryLimit: memoryLimit as never } }),
      /: received /,
    );
  }
});

scenario(
  "Memory metrics are exposed if the memory limit is known",
  async (fixture) => {
    const metrics = new MetricsRegistry();
    const operator = fixture.operator({
      metrics,
      cache: { memoryLimit: "1MiB" },
    });
    operator.register(Gadget, { reconcile() {} });
    await fixture.start(operator);
    const text = operator.metrics();
    assert.match(text, /^coracle_memory_limit_bytes 1048576$/m);
    assert.match(text, /^coracle_memory_short 1$/m);
    const used = /^coracle_memory_used_bytes (\d+)$/m.exec(text);
    assert(Number(used?.[1]) > MIB, text);
    const warned = fixture.log.filter(({ message }) =>
      message.startsWith("The process uses nearly all of its memory")
    );
    assert.equal(warned.length, 1);
  },
);
