import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { sizeCommand } from "../../dev/cli/size_command.ts";
import {
  memoryWith,
  needOf,
  replicasFor,
  type Workload,
} from "../../dev/cli/size_model.ts";
import { runCommandLine } from "../../dev/cli/main.ts";

const MIB = 2 ** 20;
const NOTHING: Workload = {
  objects: 0,
  objectSize: 4_234,
  kinds: 1,
  clusters: 0,
  events: 0,
  runs: 0,
  isSplit: false,
};

/** A kept figure of the benches. */
function kept(bench: string, subject: string, unit: string): number {
  const file = new URL("../../bench/results/node.json", import.meta.url);
  const { results } = JSON.parse(readFileSync(file, "utf8"));
  return results.find((one: Record<string, unknown>) =>
    one["bench"] === bench && one["subject"] === subject && one["unit"] === unit
  ).value;
}

test("Model of sizes is within a fifth of what benches have measured", () => {
  const points: readonly (readonly [number, Partial<Workload>, number])[] = [
    [
      kept("memory", "operator, 1M", "MiB peak RSS"),
      { objects: 1_000_000, kinds: 2 },
      200,
    ],
    [
      kept("sync", "coracle, stream", "MiB peak RSS"),
      { objects: 50_000 },
      Infinity,
    ],
    // npm run bench -- --only kinds --subject "1000 kinds of 0, HTTP/2"
    [189, { kinds: 1_000 }, Infinity],
    // npm run bench -- --only kinds --subject "1000 kinds of 100, HTTP/2"
    [295, { objects: 100_000, objectSize: 648, kinds: 1_000 }, Infinity],
    // npm run bench -- --only clusters --subject "400 clusters of 3 kinds"
    [274, { clusters: 400 }, Infinity],
    // npm run bench -- --only certificates
    [239, { objects: 30_000, objectSize: 3_430, kinds: 3 }, Infinity],
  ];
  for (const [measured, work, budget] of points) {
    const need = needOf({ ...NOTHING, ...work }, 1);
    const computed = memoryWith(need, budget * MIB) / MIB;
    assert.ok(
      Math.abs(computed / measured - 1) <= 0.2,
      `${JSON.stringify(work)}: ${computed} for ${measured} MiB`,
    );
  }
});

test("Model of sizes divides what replicas can share, and nothing else", () => {
  const work = { ...NOTHING, objects: 1e8, events: 10_000, runs: 500 };
  assert.equal(replicasFor(work, 4 * 1024 * MIB), undefined);
  const split = { ...work, isSplit: true };
  const replicas = replicasFor(split, 4 * 1024 * MIB) ?? NaN;
  const { least, processors, objects } = needOf(split, replicas);
  assert.ok(least <= 4 * 1024 * MIB && processors <= 0.6);
  assert.ok(objects * replicas >= 1e8);
  const fewer = needOf(split, replicas - 1);
  assert.ok(fewer.least > 4 * 1024 * MIB || fewer.processors > 0.6);
  // Replicas that keep all objects share the runs.
  const busy = { ...NOTHING, objects: 1_000, runs: 5_000 };
  const shared = replicasFor(busy, 512 * MIB) ?? NaN;
  assert.equal(shared, 5);
  assert.equal(needOf(busy, shared).objects, 1_000);
});

test("coracle size says what replicas need, or that no number is enough", async () => {
  const run = async (...args: readonly string[]) => {
    let [out, said] = ["", ""];
    const code = await runCommandLine(["size", ...args], {
      colors: false,
      interrupts: () => new AbortController().signal,
      out: (text) => void (out += text),
      say: (text) => void (said += text),
    }, [sizeCommand]);
    return { code, out, said };
  };
  const enough = await run("--objects", "1000000", "--events", "500");
  assert.equal(enough.code, 0);
  assert.match(enough.out, /^replicas {12}1$/m);
  assert.match(enough.out, /^objects of each {5}1,000,000$/m);
  assert.match(
    enough.out,
    /^memory of each {6}4\d\d MiB to 1,024 MiB, compress/m,
  );
  const many = await run("--objects", "100000000", "--memory", "4GiB");
  assert.equal(many.code, 1);
  assert.match(
    many.said,
    /^No number of replicas is enough: one of them takes/,
  );
  const small = await run("--objects", "1000", "--memory", "256MiB");
  assert.match(small.out, /^memory of each {6}125 MiB, nothing compressed$/m);
  for (
    const wrong of [["--objects", "-1"], ["--objects", "1", "--memory", "0"]]
  ) {
    const { code, said } = await run(...wrong);
    assert.equal(code, 2);
    assert.match(said, /must be a (number|size)|takes/);
  }
});
