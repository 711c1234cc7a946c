import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  defineKind,
  type KubernetesObject,
  patchResource,
  patchResourceAndStatus,
  patchStatus,
  type ReconcileResult,
  setStatus,
} from "@coracle/operator/core";
import { ResultWriter } from "../../../../core/controller/run/result_writer.ts";
import {
  contextOf,
  FINALIZER,
  GADGET,
  gadget,
  KEY,
  refused,
} from "../../../support/run_context_case.ts";

/** Kind whose status has the observed generation. */
const OBSERVING = defineKind({
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ value: z.string().optional() }),
  status: z.object({
    value: z.string().optional(),
    observedGeneration: z.number().optional(),
  }),
});

/** Writer of the results of runs, with the context of one. */
function writerOf(
  parts: Parameters<typeof contextOf>[0] & {
    readonly serverSideApply?: boolean;
  } = {},
) {
  const { serverSideApply = true, ...others } = parts;
  const all = contextOf({ kind: OBSERVING, ...others });
  const { ctx, deps } = all;
  const writer = new ResultWriter({ runDeps: deps, serverSideApply });
  const primary = others.primary ?? gadget({ generation: 3 });
  const { signal } = new AbortController();
  return {
    ...all,
    writer,
    write: (result?: object, succeeded = true, to = primary) =>
      writer.write(ctx, {
        primary: to,
        result: result as ReconcileResult,
        signal,
        succeeded,
      }),
  };
}

const observed = (generation?: number) => ({
  ...gadget({ generation: 3 }),
  status: { observedGeneration: generation },
});

test("ResultWriter has work for a result, or a generation not yet observed", () => {
  const unobserved = { observed: false } as ReconcileResult;
  for (const cacheIsPartial of [false, true]) {
    const { writer } = writerOf({ cacheIsPartial });
    assert.equal(writer.hasWork(gadget(), patchStatus({ value: "a" })), true);
    assert.equal(writer.hasWork(gadget(), patchResource({ spec: {} })), true);
    assert.equal(writer.hasWork(observed(3)), false);
    assert.equal(writer.hasWork(observed(2)), true);
    assert.equal(writer.hasWork(observed(2), unobserved), false);
    assert.equal(writer.hasWork(observed()), !cacheIsPartial);
  }
});

test("ResultWriter writes the generation that a run has observed", async () => {
  const status = { observedGeneration: 3 };
  const metadata = { uid: "uid-a" };
  const result = patchStatus({ value: "a" });
  for (
    const [given, succeeded, sent] of [
      [undefined, true, status],
      [result, true, { ...status, value: "a" }],
      [result, false, { value: "a" }],
      [{ ...result, observed: false }, true, { value: "a" }],
      [patchStatus({ observedGeneration: 1 }), true, { observedGeneration: 1 }],
    ] as const
  ) {
    const { write, bodies, sent: lines } = writerOf();
    await write(given, succeeded);
    assert.deepEqual(bodies, [{ metadata, status: sent }]);
    assert.match(lines[0] ?? "", /^PATCH .*\/gadgets\/a\/status\?/);
  }
  const { write, sent } = writerOf();
  await write(undefined, false);
  assert.equal(sent.length, 0);
});

test("ResultWriter leaves the generation to the next run, but not the status", async () => {
  const { write, bodies } = writerOf({ isDirty: true });
  await write();
  assert.deepEqual(bodies, []);
  await write(patchStatus({ value: "a" }));
  assert.equal(bodies.length, 1);
});

test("ResultWriter writes fields before the status, each to its own place", async () => {
  const { write, bodies, sent } = writerOf({
    keptFinalizer: FINALIZER,
    answers: [{ body: gadget({ generation: 4 }) }],
  });
  const metadata = { uid: "another", finalizers: ["example.com/theirs"] };
  const resource = { metadata, spec: {}, status: { value: "b" } };
  await write(patchResourceAndStatus(resource as object, { value: "a" }));
  assert.match(sent[0] ?? "", /^PATCH .*\/gadgets\/a\?/);
  assert.match(sent[1] ?? "", /^PATCH .*\/gadgets\/a\/status\?/);
  const finalizers = ["example.com/theirs", FINALIZER];
  assert.deepEqual(bodies[0], {
    metadata: { uid: "uid-a", finalizers },
    spec: {},
  });
  const { status } = bodies[1] as { status?: object };
  assert.deepEqual(status, { observedGeneration: 4, value: "a" });
});

test("ResultWriter observes the generation of its own fields, not of others'", async () => {
  const written = (more: object, generation = 4) => ({
    body: {
      ...gadget({ generation, resourceVersion: "2", ...more }),
      spec: { value: "a" },
    },
  });
  const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  for (
    const [answer, generation] of [
      [written({}), 4],
      [written({ labels: { theirs: "yes" } }), 4],
      [written(deleted), 3],
    ] as const
  ) {
    const { write, bodies } = writerOf({ answers: [answer] });
    await write(patchResource({ spec: { value: "a" } }));
    const { status } = bodies[1] as { status?: object };
    assert.deepEqual(status, { observedGeneration: generation });
  }
});

test("ResultWriter writes the generation alone without the method of the result", async () => {
  const result = patchResource({ spec: { value: "a" } }, { method: "replace" });
  const { write, sent } = writerOf();
  await write(result);
  assert.deepEqual(sent.map((line) => line.split(/[ ?]/, 1)[0]), [
    "PUT",
    "PATCH",
  ]);
});

test("ResultWriter tests the UID of the object that a JSON patch changes", async () => {
  const primary = { ...gadget(), spec: { value: "a" } };
  const { write, bodies } = writerOf({ primary });
  const method = { method: "json" } as const;
  await write({
    ...patchResource({ spec: { value: "b" } }, method),
    observed: false,
  });
  assert.deepEqual(bodies[0], [
    { op: "test", path: "/metadata/uid", value: "uid-a" },
    { op: "replace", path: "/spec/value", value: "b" },
  ]);
});

test("ResultWriter reads a pruned object, and refuses one changed since", async () => {
  const method = { method: "replace" } as const;
  const result = patchResource({ spec: { value: "b" } }, method);
  const full = { ...gadget(), spec: { value: "a", kept: 1 } };
  const { write, bodies } = writerOf({
    cacheIsPartial: true,
    answers: [{ body: full }],
  });
  await write({ ...result, observed: false });
  assert.deepEqual((bodies[1] as { spec?: object }).spec, {
    value: "b",
    kept: 1,
  });
  const changed = writerOf({
    cacheIsPartial: true,
    answers: [{ body: gadget({ resourceVersion: "2" }) }],
  });
  await assert.rejects(
    changed.write(result),
    (error: { isConflict?: boolean }) => error.isConflict === true,
  );
});

test("ResultWriter replaces a pruned object that has only its metadata", async () => {
  const metadata = { labels: { size: "large" } };
  const { apiVersion, kind, metadata: full } = gadget();
  const { write, bodies } = writerOf({
    cacheIsPartial: true,
    answers: [{ body: { apiVersion, kind, metadata: full } }],
  });
  const result = patchResource({ metadata }, { method: "replace" });
  await write({ ...result, observed: false });
  assert.deepEqual(bodies.at(-1)?.["metadata"], { ...full, ...metadata });
});

test("ResultWriter adds its finalizer although the cache has it, and none without", async () => {
  const finalizers = [FINALIZER];
  const primary = gadget({ finalizers });
  const cached = { "Gadget default/a": primary };
  const kept = writerOf({ primary, cached, keptFinalizer: FINALIZER });
  for (const _attempt of [1, 2]) {
    await kept.writer.addFinalizer(kept.ctx, primary);
  }
  assert.equal(kept.sent.length, 2);
  assert.deepEqual(kept.bodies[0]?.["metadata"], {
    ...KEY,
    uid: "uid-a",
    finalizers,
  });
  const patched = writerOf({
    keptFinalizer: FINALIZER,
    serverSideApply: false,
  });
  await patched.writer.addFinalizer(patched.ctx, gadget());
  assert.ok(Array.isArray(patched.bodies[0]));
  const none = writerOf({ primary, cached });
  assert.equal(await none.writer.addFinalizer(none.ctx, primary), primary);
  await none.writer.removeFinalizer(none.ctx);
  assert.equal(none.sent.length, 0);
  await kept.writer.removeFinalizer(kept.ctx);
  assert.deepEqual((kept.bodies[2] as unknown as object[]).at(-1), {
    op: "replace",
    path: "/metadata/finalizers",
    value: [],
  });
});

test("setStatus keeps the observed generation that is stored", async () => {
  const stored = { ...observed(2), metadata: gadget().metadata };
  const send = async (parts: Parameters<typeof writerOf>[0], to?: object) => {
    const { write, bodies } = writerOf(parts);
    await write(setStatus({ value: "a" }), false, to as KubernetesObject);
    return (bodies.at(-1) as { status?: object }).status;
  };
  const kept = { value: "a", observedGeneration: 2 };
  const cached = { "Gadget default/a": stored };
  assert.deepEqual(await send({ cached }), kept);
  assert.deepEqual(await send({}, stored), kept);
  const answers = [{ body: stored }];
  assert.deepEqual(await send({ cacheIsPartial: true, answers }), kept);
});

test("setStatus sends the observed generation of its result", async () => {
  const cached = { "Gadget default/a": observed(2) };
  const { write, bodies } = writerOf({ cached });
  await write(setStatus({ observedGeneration: 9 }), false);
  assert.deepEqual(bodies[0]?.["status"], { observedGeneration: 9 });
});

test("setStatus removes what its controller has patched, of its object only", async () => {
  const managedFields = [{
    manager: "gadget",
    operation: "Update",
    subresource: "status",
    fieldsV1: { "f:status": { "f:old": {} } },
  }];
  const left = (more: object) => ({
    body: {
      ...gadget({ resourceVersion: "2", managedFields, ...more }),
      status: { value: "a", old: "b" },
    },
  });
  const conflict = refused(409, "Conflict");
  const statusOf = async (...answers: object[]) => {
    const { write, bodies } = writerOf({ answers });
    await write(setStatus({ value: "a" }), false);
    return bodies;
  };
  const patch = (resourceVersion: string) => ({
    metadata: { uid: "uid-a", resourceVersion },
    status: { old: null },
  });
  const [, ...once] = await statusOf(left({}));
  assert.deepEqual(once, [patch("2")]);
  const [, ...twice] = await statusOf(
    left({}),
    conflict,
    left({ resourceVersion: "3" }),
  );
  assert.deepEqual(twice, [patch("2"), {}, patch("3")]);
  assert.equal((await statusOf(left({ uid: "uid-b" }))).length, 1);
  const theirs = managedFields.map((entry) => ({ ...entry, manager: "other" }));
  assert.equal((await statusOf(left({ managedFields: theirs }))).length, 1);
});

test("setStatus is sent again if the removal of old fields failed", async () => {
  const managedFields = [{
    manager: "gadget",
    operation: "Update",
    subresource: "status",
    fieldsV1: { "f:status": { "f:old": {} } },
  }];
  const stored = {
    ...gadget({ managedFields }),
    status: { value: "a", old: "b" },
  };
  const cached = { "Gadget default/a": stored };
  const { write, sent } = writerOf({
    cached,
    answers: [{ body: stored }, refused(403, "Forbidden"), { body: gadget() }],
  });
  const result = setStatus({ value: "a" });
  await assert.rejects(write(result, false));
  const [apply] = sent;
  const before = sent.length;
  await write(result, false);
  assert.equal(sent[before], apply, "the apply, and not only the removal");
});

test("setStatus repairs an invalid status of its object in the state it read", async () => {
  const invalid = refused(422, "Invalid");
  const result = setStatus({ value: "a" });
  const live = (metadata: object) => ({
    body: { ...gadget(metadata), status: { value: 5 } },
  });
  const repaired = writerOf({
    answers: [invalid, live({ resourceVersion: "7" })],
  });
  await repaired.write(result, false);
  assert.deepEqual(
    repaired.sent.map((request) => request.split(" ")[0]),
    ["PATCH", "GET", "PATCH", "PATCH"],
  );
  assert.deepEqual(repaired.bodies[2]?.["metadata"], {
    uid: "uid-a",
    resourceVersion: "7",
  });
  const other = writerOf({ answers: [invalid, live({ uid: "uid-b" })] });
  await assert.rejects(other.write(result, false), { status: 422 });
  assert.equal(other.sent.length, 2);
});

/** Kind whose status has a list with keys. */
const LISTING = defineKind({
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ value: z.string().optional() }),
  status: z.object({
    parts: z.array(
      z.object({ name: z.string(), value: z.string().optional() }),
    ).meta({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
    }),
  }),
});

test("ResultWriter merges lists with the cached state of its own object only", async () => {
  for (
    const [uid, version, names] of [
      ["uid-a", "2", ["theirs", "ours"]],
      ["uid-b", "1", ["ours"]],
    ] as const
  ) {
    const cached = {
      "Gadget default/a": {
        ...gadget({ uid, resourceVersion: "2" }),
        status: { parts: [{ name: "theirs" }] },
      },
    };
    const { write, bodies } = writerOf({ kind: LISTING, cached });
    await write(patchStatus({ parts: [{ name: "ours" }] }), false);
    const [{ metadata, status } = {}] = bodies as {
      metadata?: { resourceVersion?: string };
      status?: { parts: { name: string }[] };
    }[];
    assert.equal(metadata?.resourceVersion, version);
    assert.deepEqual(
      status?.parts.map(({ name }) => name).toSorted(),
      [
        ...names,
      ].toSorted(),
    );
  }
});

test("ResultWriter does not merge lists into another object after a conflict", async () => {
  for (
    const answer of [
      { body: gadget({ uid: "uid-b" }) },
      refused(404, "NotFound"),
    ]
  ) {
    const { write, sent } = writerOf({
      kind: LISTING,
      answers: [refused(409, "Conflict"), answer],
    });
    const written = write(patchStatus({ parts: [{ name: "ours" }] }), false);
    await assert.rejects(written, { status: 409 });
    assert.equal(sent.length, 2);
  }
});

test("ResultWriter replaces the older generation that a status was copied with", async () => {
  const sent = async (own: number, stored: number | undefined) => {
    const { write, bodies } = writerOf();
    const result = patchStatus({ value: "a", observedGeneration: own });
    await write(result, true, observed(stored));
    return (bodies[0] as { status: { observedGeneration: number } }).status
      .observedGeneration;
  };
  assert.equal(await sent(2, 2), 3, "it is copied");
  assert.equal(await sent(2, 1), 2, "it is the reconciler's own");
  assert.equal(await sent(3, 3), 3);
});

test("ResultWriter sends a new object as a merge patch, to keep what others add", async () => {
  const { write, bodies, sent } = writerOf();
  await write({
    ...patchResource({ spec: { limits: { cpu: 1 } } }, { method: "json" }),
    observed: false,
  });
  assert.deepEqual(bodies, [{
    spec: { limits: { cpu: 1 } },
    metadata: { uid: "uid-a" },
  }]);
  assert.match(sent[0] ?? "", /^PATCH /);
});

test("ResultWriter keeps a newer generation that a status was copied with", async () => {
  const { write, bodies } = writerOf();
  await write(patchStatus({ observedGeneration: 5 }), true, observed(5));
  assert.deepEqual(bodies[0]?.["status"], { observedGeneration: 5 });
});

test("ResultWriter writes the status after the fields in the version of their answer", async () => {
  const { write, bodies } = writerOf({
    answers: [{ body: gadget({ generation: 4, resourceVersion: "2" }) }],
  });
  await write(patchResourceAndStatus({ spec: {} }, { value: "a" }, {
    method: "replace",
  }));
  const versions = bodies.map(({ metadata }) =>
    (metadata as { resourceVersion?: string }).resourceVersion
  );
  assert.deepEqual(versions, ["1", "2"]);
});

test("ResultWriter gives up merging lists after five conflicts", async () => {
  const answers = Array.from({ length: 5 }, (_, at) => [
    refused(409, "Conflict"),
    { body: gadget({ resourceVersion: `${at + 2}` }) },
  ]).flat();
  const { write, sent } = writerOf({ kind: LISTING, answers });
  const written = write(patchStatus({ parts: [{ name: "ours" }] }), false);
  await assert.rejects(written, { status: 409 });
  assert.equal(sent.filter((line) => line.startsWith("PATCH")).length, 5);
});

test("ResultWriter merges lists once if a webhook refuses the write by 409", async () => {
  const answers = [refused(409, "Conflict"), { body: gadget() }];
  const { write, sent } = writerOf({ kind: LISTING, answers });
  await assert.rejects(
    write(patchStatus({ parts: [{ name: "ours" }] }), false),
    /no other client has changed the object/,
  );
  assert.equal(sent.length, 2);
});

test("ResultWriter leaves entries of a list as they are that it has copied", async () => {
  const part = (name: string, value: string) => ({ name, value });
  const states = (value: string) => ({
    ...gadget(),
    status: { parts: [part("copied", value)] },
  });
  const { write, bodies } = writerOf({
    kind: LISTING,
    cached: { "Gadget default/a": states("newer") },
  });
  const result = patchStatus({
    parts: [part("copied", "old"), part("b", "c")],
  });
  await write(result, false, states("old"));
  assert.deepEqual(bodies[0]?.["status"], {
    parts: [part("copied", "newer"), part("b", "c")],
  });
});

test("setStatus applies to its object only, and no generation to other kinds", async () => {
  const cached = { "Gadget default/a": observed(2) };
  const { write, bodies } = writerOf({ kind: GADGET, cached });
  await write(setStatus({ value: "a" }), false);
  assert.deepEqual(bodies[0]?.["status"], { value: "a" });
  const { metadata } = bodies[0] as { metadata?: { uid?: string } };
  assert.equal(metadata?.uid, "uid-a");
});

test("setStatus passes on a refusal that is no invalid status", async () => {
  const { write, sent } = writerOf({ answers: [refused(400, "BadRequest")] });
  await assert.rejects(write(setStatus({ value: "a" }), false), {
    status: 400,
  });
  assert.equal(sent.length, 1);
});

test("ResultWriter sends a new field that is no object as a JSON patch", async () => {
  const { write, bodies } = writerOf();
  await write({
    ...patchResource({ spec: { value: "new" } }, { method: "json" }),
    observed: false,
  });
  assert.deepEqual(bodies, [[
    { op: "test", path: "/metadata/uid", value: "uid-a" },
    { op: "add", path: "/spec/value", value: "new" },
  ]]);
});

test("ResultWriter merges lists with what it reads where its cache is partial", async () => {
  const parts = [{ name: "theirs" }];
  const stored = { ...gadget({ resourceVersion: "7" }), status: { parts } };
  const { write, bodies } = writerOf({
    kind: LISTING,
    cacheIsPartial: true,
    answers: [{ body: stored }],
  });
  await write(patchStatus({ parts: [{ name: "ours" }] }), false);
  const { metadata, status } = bodies.at(-1) as {
    metadata: { resourceVersion?: string };
    status: { parts: { name: string }[] };
  };
  assert.equal(metadata.resourceVersion, "7");
  const names = status.parts.map(({ name }) => name).toSorted();
  assert.deepEqual(names, ["ours", "theirs"]);
});

test("setStatus applies to the UID of its object, without fields that are null", async () => {
  const { write, bodies } = writerOf();
  await write(setStatus({ value: null as never }));
  const { metadata, status } = bodies[0] as Record<string, unknown>;
  assert.equal((metadata as { uid?: string }).uid, "uid-a");
  assert.deepEqual(status, { observedGeneration: 3 });
});
