import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { Perturbation } from "../../../dev/testing/check/perturbations.ts";
import type { WorldRun } from "./run_world.ts";
import {
  COPIER,
  copier,
  runCopier,
  statusOf,
  writesOf,
} from "./copier_world.ts";

/** Runs the operator with one perturbation, which must act, to its good end. */
async function perturbed(
  one: Perturbation,
  options: Parameters<typeof runCopier>[1] = {},
): Promise<WorldRun> {
  const run = await runCopier([one], options);
  assert.equal(run.hits.length, 1);
  assert((run.hits[0] ?? 0) > 0, "The perturbation has not acted");
  assert(run.quiet);
  const { text } = statusOf(run) as { text: string };
  assert.equal(text, "a");
  const secret = run.end["v1 Secret default/one"];
  assert.deepEqual(secret?.["data"], { text: "YQ==" });
  return run;
}

function eventsOf({ trace }: WorldRun): string[] {
  return trace.flatMap((entry) =>
    entry.type === "event" && entry.n !== undefined
      ? [
        `${entry.n} ${entry.watch} ${entry.event} ${entry.resource}${
          entry.fault ? ` ${entry.fault}` : ""
        }`,
      ]
      : []
  );
}

test("A conflict at a write is answered by 409, and the write is repeated", async () => {
  const run = await perturbed({ do: "conflict", write: 4, times: 2 });
  const refused = writesOf(run).filter((write) => write.endsWith(" 409"));
  assert.deepEqual(
    refused.map((write) => write.replace(/^\d+ /, "")),
    Array(2).fill("1 patch copiers/status 409"),
  );
  const changes = run.trace.flatMap((entry) =>
    entry.type === "actor" && entry.resource === "copiers" ? [entry.change] : []
  );
  // The user creates it, and another client changes it before each of the two.
  assert.deepEqual(changes, ["ADDED", ...Array(4).fill("MODIFIED")]);
  const { metadata } = run.end["world.coracle.dev/v1 Copier default/one"] ??
    assert.fail();
  assert.equal(metadata.annotations, undefined);
});

test("A refused write is answered by 403 or 422 as admission does", async () => {
  for (const code of [403, 422] as const) {
    const run = await perturbed({ do: "refuse", write: 3, code });
    assert.equal(writesOf(run)[2], `3 1 patch secrets ${code}`);
  }
});

test("A lost answer leaves the write, and the operator without its outcome", async () => {
  const run = await perturbed({ do: "lost", write: 3 });
  assert.equal(writesOf(run)[2], "3 1 patch secrets 0 changed unanswered");
});

test("Throttling answers every request with 429 for a while", async () => {
  const ms = 3_600_000;
  const run = await perturbed({ do: "throttle", write: 3, ms });
  const refused = run.trace.filter((entry) =>
    entry.type === "request" && entry.code === 429
  );
  assert(refused.length > 1);
  assert(run.virtualMs > ms);
});

test("Webhooks that are away, late or not trusted refuse writes, which are repeated", async () => {
  process.env["COPIER_ADMITS"] = "true";
  try {
    for (const how of ["down", "slow", "rotated"] as const) {
      const clean = writesOf(await runCopier());
      const at = clean.findIndex((text) => / patch secrets /.test(text)) + 1;
      const ms = 60_000;
      const run = await perturbed({ do: "webhook", write: at, how, ms });
      const codes = writesOf(run).filter((text) => / secrets /.test(text))
        .map((text) => text.replace(/^\d+ 1 patch secrets /, ""));
      // Nothing is admitted in that time, and nothing is lost.
      assert.deepEqual([codes[0], codes.at(-1)], ["500", "201 changed"]);
      assert(codes.slice(0, -1).every((code) => code === "500"), `${codes}`);
    }
  } finally {
    delete process.env["COPIER_ADMITS"];
  }
});

test("A jump of the clock moves the wall time and no timer", async () => {
  const clean = await runCopier();
  const run = await perturbed({ do: "clock", write: 2, ms: 86_400_000 });
  assert.equal(run.virtualMs, clean.virtualMs);
  const { metadata } = run.end["v1 Secret default/one"] ?? assert.fail();
  assert(metadata.creationTimestamp?.startsWith("2026-01-02"));
});

test("A foreign edit and a foreign deletion come before a write", async () => {
  const target = { apiVersion: "v1", kind: "ConfigMap", name: "one" };
  const run = await perturbed({ do: "edit", write: 3, target, delete: true });
  const changes = run.trace.flatMap((entry) =>
    entry.type === "actor" && entry.who === "check" ? [entry.change] : []
  );
  assert.deepEqual(changes, ["DELETED"]);
  const other = await perturbed({
    do: "edit",
    write: 3,
    target: { ...COPIER },
    patch: { metadata: { labels: { foreign: "true" } } },
  });
  const { metadata } = other.end["world.coracle.dev/v1 Copier default/one"] ??
    assert.fail();
  assert.deepEqual(metadata.labels, { foreign: "true" });
});

test("A suspended leader whose lease another took writes nothing more", async () => {
  process.env["COPIER_LEASE"] = "true";
  try {
    const run = await perturbed({ do: "leader", write: 3 });
    const [fenced, next] = writesOf(run).slice(2);
    assert.equal(fenced, "3 1 patch secrets 0 unanswered");
    assert(next !== undefined, "It leads again when the other has given up");
    const stopped = run.trace.find((entry) =>
      entry.type === "log" && entry.message === "Stopped leading"
    );
    assert(stopped !== undefined);
  } finally {
    delete process.env["COPIER_LEASE"];
  }
});

test("Twins are two incarnations that are alive together", async () => {
  const run = await perturbed({ do: "twins", write: 3 });
  assert.equal(run.incarnations, 2);
  const writers = new Set(
    run.trace.flatMap((entry) =>
      entry.type === "request" ? [entry.incarnation] : []
    ),
  );
  assert.deepEqual([...writers].sort(), [1, 2]);
  assert(!run.trace.some(({ type }) => type === "kill"));
});

test("A cut and an expired watch lose an event, and the operator lists again", async () => {
  const clean = eventsOf(await runCopier());
  const n = clean.findIndex((event) => event.includes("ADDED copiers")) + 1;
  assert(n > 0, `${clean}`);
  for (const fault of ["cut", "expire"] as const) {
    const events = eventsOf(await perturbed({ do: fault, event: n }));
    assert.equal(events[n - 1], `${clean[n - 1]} ${fault}`);
    assert(events.slice(n).some((event) => event.includes("ADDED copiers")));
  }
});

test("Withheld events do not arrive, and later ones do", async () => {
  const clean = await runCopier();
  const added = clean.trace.find((entry) =>
    entry.type === "event" && entry.n !== undefined &&
    entry.resource === "copiers"
  );
  assert(added?.type === "event");
  const run = await runCopier([{
    do: "missed",
    resource: "copiers",
    from: added.revision,
    to: added.revision + 1,
  }], {
    steps: [{ apply: copier("a"), settle: false }, { apply: copier("b") }],
  });
  assert.deepEqual(run.hits, [1]);
  assert.deepEqual(statusOf(run), { runs: 1, text: "b" });
});

test("A delayed event is overtaken by events of other watches", async () => {
  const steps = [{ apply: copier("a") }, { delete: COPIER }];
  const clean = eventsOf(await runCopier([], { steps }));
  const event = clean.findIndex((one) => /DELETED copiers/.test(one)) + 1;
  const after = clean.findIndex((one) => /DELETED configmaps/.test(one)) + 1;
  assert(after > event && event > 0, clean.join("\n"));
  const delay = { do: "order", event, after } as const;
  const run = await runCopier([delay], { steps });
  assert.deepEqual(run.hits, [1]);
  const events = eventsOf(run);
  assert.equal(events[after - 1], clean[event - 1]);
});

test("A stale server shows a new incarnation the state of a revision", async () => {
  const clean = await runCopier();
  const before = clean.trace.find((entry) =>
    entry.type === "actor" && entry.who === "user"
  );
  assert(before?.type === "actor");
  const run = await perturbed({
    do: "stale",
    write: 4,
    revision: before.revision - 1,
    ms: 60_000,
  });
  assert.equal(run.incarnations, 2);
  const second = run.trace.filter((entry) =>
    entry.type === "event" && entry.incarnation === 2 &&
    entry.resource === "copiers" && entry.event !== "BOOKMARK"
  );
  // The object was there, but is added only when the server has caught up.
  assert.equal(
    second[0]?.at,
    (run.trace.find(({ type }) => type === "kill")?.at ?? 0) + 60_000,
  );
});

test("A server that is stale in one resource shows the others as they are", async () => {
  const clean = await runCopier();
  const before = clean.trace.find((entry) =>
    entry.type === "actor" && entry.who === "user"
  );
  assert(before?.type === "actor");
  const run = await perturbed({
    do: "stale",
    write: 4,
    revision: before.revision - 1,
    resource: "copiers",
    ms: 60_000,
  });
  const killed = run.trace.find(({ type }) => type === "kill")?.at ?? 0;
  const first = (resource: string) =>
    run.trace.find((entry) =>
      entry.type === "event" && entry.incarnation === 2 &&
      entry.resource === resource && entry.event !== "BOOKMARK"
    )?.at;
  assert.equal(first("copiers"), killed + 60_000);
  assert.equal(first("configmaps"), killed);
});

test("Dependents become ready late, or flap, or never", async () => {
  const workload = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default" },
    spec: { containers: [{ name: "main", image: "web" }] },
  } as never;
  const changes = async (mode: "late" | "flap" | "never") => {
    const run = await runCopier([{ do: mode }], {
      steps: [{ apply: workload, settle: false }, { advance: 700_000 }],
    });
    const { status } = run.end["v1 Pod default/web"] as unknown as {
      status: { conditions: { type: string; status: string }[] };
    };
    const ready = status.conditions.find(({ type }) => type === "Ready");
    const count =
      run.trace.filter((entry) =>
        entry.type === "actor" && entry.resource === "pods"
      ).length;
    return { ready: ready?.status, count };
  };
  const never = await changes("never");
  const late = await changes("late");
  const flap = await changes("flap");
  assert.equal(never.ready, "False");
  assert.equal(late.ready, "True");
  assert.equal(late.count, never.count + 1);
  assert(flap.count > late.count + 3);
});
