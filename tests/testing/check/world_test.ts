import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "@coracle/operator/kinds";
import { World } from "../../../dev/testing/check/world.ts";
import {
  COPIER,
  copier,
  loadCopier,
  runCopier,
  statusOf,
  writesOf,
} from "./copier_world.ts";
import { fingerprint, firstDifference } from "./trace_lines.ts";

const CLEAN = [
  "1 1 patch customresourcedefinitions 201 changed",
  "2 1 patch configmaps 201 changed",
  "3 1 patch secrets 201 changed",
  "4 1 patch copiers/status 200 changed",
];

test("A world runs an operator file that names no client and no clock", async () => {
  const run = await runCopier();
  assert.deepEqual(writesOf(run), CLEAN);
  assert(run.quiet);
  const status = statusOf(run);
  assert.deepEqual(status, { runs: 1, text: "a" });
  assert.deepEqual(run.trace.filter(({ type }) => type === "rejection"), []);
});

test("A world decides time, random numbers and what fetch reaches", async () => {
  const before = [Date, setTimeout, fetch, Math.random, performance.now];
  const bodies: string[] = [];
  const run = () =>
    runCopier([], {
      steps: [{ apply: copier("external") }],
      async fetch(request) {
        bodies.push(await request.text());
        return new Response(null, { status: 201 });
      },
    });
  const external = (await run()).trace.filter(({ type }) =>
    type === "external"
  );
  await run();
  assert.equal(external.length, 1);
  assert.equal(bodies.length, 2);
  assert.equal(bodies[0], bodies[1]);
  const [, now, iso] = JSON.parse(bodies[0] as string);
  assert.equal(new Date(now).toISOString(), iso);
  assert(iso.startsWith("2026-01-01T00:0"), iso);
  const after = [Date, setTimeout, fetch, Math.random, performance.now];
  assert.deepEqual(after, before, "The globals are restored");
});

test("Only one world exists at a time", async () => {
  const world = await World.start({ seed: 1, load: loadCopier });
  try {
    await assert.rejects(
      World.start({ seed: 1, load: loadCopier }),
      /Cannot start a world: another one has not ended/,
    );
  } finally {
    await world.end();
  }
});

test("A killed process whose start fails afterwards is not restarted", async () => {
  const loading = Promise.withResolvers<undefined>();
  const world = await World.start({
    seed: 1,
    load({ incarnation, cluster: { client } }) {
      if (incarnation > 1) return loadCopier();
      void client.list(ConfigMap); // Never answered: the world stands still.
      return loading.promise;
    },
  });
  try {
    await world.restart();
    loading.reject(new Error("Too late"));
    await world.advance(3_600_000);
    assert.equal(world.incarnation, 2);
  } finally {
    await world.end();
  }
});

test("Two runs of a seed have one trace, and another seed another", async () => {
  const options = { order: "seeded" } as const;
  const first = await runCopier([], options);
  const second = await runCopier([], options);
  assert.equal(firstDifference(first, second)?.text, undefined);
  assert.equal(fingerprint(first.trace), fingerprint(second.trace));
  const other = await runCopier([], { ...options, seed: 2 });
  const difference = firstDifference(first, other);
  assert(difference !== undefined);
  assert.notEqual(fingerprint(first.trace), fingerprint(other.trace));
});

test("The first difference of two runs names the request", async () => {
  const run = (text: string) =>
    runCopier([], { steps: [{ apply: copier(text) }] });
  const { a, b, text } = firstDifference(await run("a"), await run("b")) ??
    assert.fail();
  assert(a?.type === "request" && b?.type === "request");
  assert.equal(a.resource, "configmaps");
  assert.match(text, /differs between two runs: .*configmaps/);
});

test("A change and a deletion of the user are steps of the world", async () => {
  const run = await runCopier([], {
    steps: [
      { apply: copier("a") },
      { patch: copier("b") },
      { delete: COPIER },
      { advance: 60_000 },
    ],
  });
  const texts = run.after.map((objects) =>
    (objects["v1 ConfigMap default/one"] as { data?: { text: string } })?.data
      ?.text
  );
  assert.deepEqual(texts, ["a", "b", undefined, undefined]);
  const users = run.trace.flatMap((entry) =>
    entry.type === "actor" && entry.who === "user" ? [entry.change] : []
  );
  assert.deepEqual(users, ["ADDED", "MODIFIED", "DELETED"]);
});
