import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  ApiError,
  defineKind,
  RunAbortedError,
  silentLogger,
} from "@coracle/operator/core";
import {
  ConfigMap,
  type KubernetesObject,
  Namespace,
} from "@coracle/operator/kinds";
import { logFields } from "../../../../core/controller/run/run_context.ts";
import { Pruner } from "../../../../core/json/prune.ts";
import { until } from "../../../support/until.ts";
import {
  configMap,
  contextOf,
  FINALIZER,
  GADGET,
  gadget,
  KEY,
  OK,
  refused,
} from "../../../support/run_context_case.ts";

test("RunContext reads with the signal of the run, and not after its abort", async () => {
  const { ctx, run, read } = contextOf();
  await ctx.get(ConfigMap, "m");
  await ctx.list(ConfigMap);
  await ctx.list(ConfigMap, "*");
  const key = { namespace: "default", name: "m" };
  assert.deepEqual(read, [
    [ConfigMap, key, ctx.signal],
    [ConfigMap, "default", ctx.signal],
    [ConfigMap, undefined, ctx.signal],
  ]);
  run.abort("timeout");
  await assert.rejects(ctx.get(ConfigMap, "m"), RunAbortedError);
  await assert.rejects(ctx.list(ConfigMap), RunAbortedError);
  await assert.rejects(ctx.secondaries(ConfigMap), RunAbortedError);
  assert.equal(read.length, 3);
});

test("RunContext writes after the abort of its run with another signal only", async () => {
  const { ctx, run, sent } = contextOf();
  run.abort("timeout");
  const patch = { data: { a: "b" } };
  await assert.rejects(ctx.patch(ConfigMap, "m", patch), RunAbortedError);
  await assert.rejects(ctx.delete(ConfigMap, "m"), RunAbortedError);
  assert.deepEqual(sent, []);
  const { signal } = new AbortController();
  await ctx.patch(ConfigMap, "m", patch, { signal });
  await ctx.modify(ConfigMap, "m", (map) => void (map.data = {}), { signal });
  assert.equal(sent.length, 3);
});

test("RunContext tells the caches what it sent, and whether it was stored", async () => {
  const { ctx, sent, written, requests } = contextOf({
    answers: [OK, OK, OK, OK, refused(409, "Conflict")],
  });
  const patch = { data: { a: "b" } };
  await ctx.patch(ConfigMap, "m", patch);
  const metadata = { ...KEY, resourceVersion: "5" };
  await ctx.patch(ConfigMap, "a", [], { type: "json", match: false });
  await ctx.replace(ConfigMap, { metadata, ...patch }, { trigger: true });
  await ctx.create(ConfigMap, { metadata: { name: "m" } });
  assert.equal(requests(), 1);
  await assert.rejects(
    ctx.patch(GADGET, KEY, { status: {} }, {
      subresource: "status",
      trigger: true,
    }),
  );
  assert.equal(requests(), 1);
  const none = { sent: undefined, base: undefined, subresource: false };
  assert.deepEqual(written, [
    "begin source default/m",
    ["source default/m", { ...none, sent: patch }],
    "begin source default/a",
    ["source default/a", none],
    "begin source default/a",
    ["source default/a", { ...none, base: "5" }],
    "begin source default/m",
    ["source default/m", none],
    "begin primary default/a",
    "fail primary default/a",
  ]);
  assert.match(sent[4] ?? "", /^PATCH .*\/gadgets\/a\/status\?/);
});

test("RunContext finds the primaries of other namespaces by their key", async () => {
  const { ctx, written } = contextOf();
  await ctx.patch(GADGET, { namespace: "other", name: "a" }, { spec: {} });
  assert.equal(written[0], "begin primary other/a");
});

test("RunContext leaves the namespace of a cluster-scoped object out", async () => {
  const { ctx, run, sent } = contextOf();
  await ctx.delete(Namespace, "team");
  assert.deepEqual(sent, ["DELETE /api/v1/namespaces/team"]);
  assert.deepEqual(run.writes.map(({ key }) => key), ["team"]);
});

test("RunContext sends a patch unless the cache shows its result", async () => {
  const cached = { "ConfigMap default/m": configMap({ name: "m" }) };
  const { ctx, sent } = contextOf({ cached });
  const empty = { metadata: { name: "m" } };
  await ctx.patch(ConfigMap, "m", empty);
  assert.equal(sent.length, 0);
  await ctx.patch(ConfigMap, "m", empty, { match: false });
  await ctx.patch(ConfigMap, "m", empty, { type: "strategic" });
  await ctx.patch(ConfigMap, "m", { data: { a: "b" } }, {
    fieldManager: "other",
  });
  assert.deepEqual(sent.map((line) => line.split("=")[1]), [
    "gadget",
    "gadget",
    "other",
  ]);
});

test("RunContext replaces an equal object if its version is another", async () => {
  const cached = { "ConfigMap default/a": configMap() };
  const { ctx, sent } = contextOf({ cached });
  await ctx.replace(ConfigMap, configMap());
  assert.deepEqual(sent, []);
  const status = { subresource: "status" } as const;
  const changed = { ...configMap(), data: { a: "b" } };
  await ctx.replace(ConfigMap, changed, status);
  assert.deepEqual(sent, [], "its status is the same");
  const older = configMap({ resourceVersion: "4" });
  await ctx.replace(ConfigMap, older);
  await ctx.replace(ConfigMap, older, status);
  assert.equal(sent.length, 2);
});

test("RunContext deletes in the background, and only the object with the UID", async () => {
  const { ctx, run, bodies } = contextOf({
    answers: [OK, OK, refused(404, "NotFound"), refused(409, "Conflict")],
  });
  await ctx.delete(ConfigMap, "m");
  await ctx.delete(ConfigMap, "m", {
    uid: "uid-m",
    propagationPolicy: "Orphan",
  });
  const [first, second] = bodies;
  assert.equal(first?.["propagationPolicy"], "Background");
  assert.equal(first?.["preconditions"], undefined);
  assert.equal(second?.["propagationPolicy"], "Orphan");
  assert.deepEqual(second?.["preconditions"], { uid: "uid-m" });
  await ctx.delete(ConfigMap, "m");
  await assert.rejects(ctx.delete(ConfigMap, "m"), /Conflict/);
  assert.deepEqual(run.writes.map(({ verb, key }) => `${verb} ${key}`), [
    "delete default/m",
    "delete default/m",
  ]);
});

test("RunContext modifies again after a conflict, ten times at most", async () => {
  const conflict = refused(409, "Conflict");
  const { ctx, sent } = contextOf({
    answers: Array.from({ length: 10 }, (_, at) => [
      { body: configMap({ resourceVersion: `${at + 5}` }) },
      conflict,
    ]).flat(),
  });
  const change = (map: ConfigMap) => void (map.data = { a: "b" });
  await assert.rejects(
    ctx.modify(ConfigMap, KEY, change),
    (error) => ApiError.is(error) && error.isConflict,
  );
  assert.equal(sent.length, 20);
});

test("RunContext modifies once if a webhook refuses the write by 409", async () => {
  const body = configMap();
  const answers = [{ body }, refused(409, "Conflict"), { body }];
  const { ctx, sent } = contextOf({ answers });
  const change = (map: ConfigMap) => void (map.data = { a: "b" });
  await assert.rejects(
    ctx.modify(ConfigMap, KEY, change),
    /no other client has changed the object/,
  );
  assert.equal(sent.length, 3);
});

test("RunContext returns nothing if the object to modify is gone", async () => {
  const gone = refused(404, "NotFound");
  const change = (map: ConfigMap) => void (map.data = { a: "b" });
  for (const answers of [[gone], [{ body: configMap() }, gone]]) {
    const { ctx } = contextOf({ answers });
    assert.equal(await ctx.modify(ConfigMap, KEY, change), undefined);
  }
});

test("RunContext caches an object that a modification leaves as it is", async () => {
  const { ctx, sent, written } = contextOf({
    answers: [{ body: configMap() }],
  });
  await ctx.modify(ConfigMap, KEY, () => {});
  assert.equal(sent.length, 1);
  assert.deepEqual(written, [
    "begin source default/a",
    ["source default/a", { base: "5" }],
  ]);
});

test("RunContext applies the primary with its UID and the finalizer it keeps", async () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const ours = { finalizers: [FINALIZER] };
  for (
    const [state, finalizers] of [
      [{}, ["example.com/theirs", FINALIZER]],
      [{ deletionTimestamp }, ["example.com/theirs"]],
      [{ deletionTimestamp, ...ours }, ["example.com/theirs", FINALIZER]],
    ] as const
  ) {
    const { ctx } = contextOf({
      primary: gadget(state),
      keptFinalizer: FINALIZER,
    });
    const theirs = { finalizers: ["example.com/theirs"] };
    const object = { metadata: { name: "a", ...theirs } };
    const { metadata } = await ctx.intent(GADGET, object);
    assert.deepEqual(metadata, { ...KEY, uid: "uid-a", finalizers });
  }
  const { ctx, bodies } = contextOf({ keptFinalizer: FINALIZER });
  const uid = "uid-b";
  const other = await ctx.intent(GADGET, { metadata: { name: "a", uid } });
  assert.equal(other.metadata.uid, uid);
  await ctx.apply(GADGET, { metadata: { name: "a" }, status: {} } as never, {
    subresource: "status",
  });
  assert.deepEqual(bodies[0]?.["metadata"], { ...KEY, uid: "uid-a" });
});

test("RunContext applies the status of an object without taking it over", async () => {
  const { ctx, sent, bodies } = contextOf();
  const status = { metadata: { name: "m" }, status: {} } as never;
  await ctx.apply(ConfigMap, status, { subresource: "status" });
  const { metadata } = bodies[0] as unknown as KubernetesObject;
  assert.equal(metadata.ownerReferences, undefined);
  assert.match(sent[0] ?? "", /\/configmaps\/m\/status\?.*force=true/);
});

test("RunContext sends an apply again that was forgotten, status and object apart", async () => {
  const cached = { "ConfigMap default/a": configMap() };
  const { ctx, sent } = contextOf({ cached });
  const object = { metadata: { name: "a" } };
  const apply = (subresource?: "status") =>
    ctx.apply(ConfigMap, object, { owned: false, subresource });
  for (const part of [undefined, "status"] as const) {
    await apply(part);
    await apply(part);
  }
  assert.equal(sent.length, 2);
  await ctx.writes.forgetApply(ConfigMap, KEY, "status");
  await apply();
  assert.equal(sent.length, 2);
  await apply("status");
  assert.equal(sent.length, 3);
  await ctx.writes.forgetApply(ConfigMap, KEY);
  await apply("status");
  assert.equal(sent.length, 3);
  await apply();
  assert.equal(sent.length, 4);
});

test("RunContext takes an object over from an earlier primary of its name", async () => {
  const reference = (uid: string) => ({
    apiVersion: "example.com/v1",
    kind: "Gadget",
    name: "a",
    uid,
    controller: true,
  });
  const body = configMap({ ownerReferences: [reference("uid-before")] });
  const invalid = refused(422, "Invalid");
  const map = { metadata: { name: "a" } };
  const { ctx, sent, bodies } = contextOf({ answers: [invalid, { body }] });
  await ctx.apply(ConfigMap, map);
  assert.deepEqual(sent.map((line) => line.split(" ")[0]), [
    "PATCH",
    "GET",
    "PATCH",
    "PATCH",
  ]);
  assert.ok(Array.isArray(bodies[2]), "it removes the reference");
  for (const owned of [false, undefined]) {
    const answers = [invalid, { body: configMap() }];
    const other = contextOf({ answers });
    await assert.rejects(other.ctx.apply(ConfigMap, map, { owned }), /Invalid/);
    assert.equal(other.sent.length, owned === false ? 1 : 2);
  }
});

test("RunContext refuses to apply over the annotations of another owner", async () => {
  const owner = {
    annotations: {
      "coracle.dev/primary-name": "b",
      "coracle.dev/primary-namespace": "default",
      "coracle.dev/primary-kind": "Gadget.example.com",
    },
  };
  const theirs = configMap({ namespace: "other", ...owner });
  const object = { metadata: { name: "a", namespace: "other" } };
  const { ctx } = contextOf({ answers: [{ body: theirs }] });
  await assert.rejects(ctx.apply(ConfigMap, object), /another controller owns/);
  const none = contextOf({ cached: { "ConfigMap other/a": theirs } });
  await assert.rejects(none.ctx.apply(ConfigMap, object), /another controller/);
  assert.deepEqual(none.sent, []);
  await none.ctx.apply(ConfigMap, object, { owned: false });
  assert.equal(none.sent.length, 1);
});

test("RunContext adds a finalizer to the newest state of its own object", async () => {
  const newer = gadget({ resourceVersion: "2", finalizers: ["theirs"] });
  const other = gadget({ resourceVersion: "3", uid: "uid-b" });
  for (
    const [cached, version, path] of [
      [newer, "2", "/metadata/finalizers/-"],
      [other, "1", "/metadata/finalizers"],
    ] as const
  ) {
    const { ctx, bodies } = contextOf({
      cached: { "Gadget default/a": cached },
      answers: [{ body: gadget() }],
    });
    await ctx.addFinalizer();
    const value = path.endsWith("-") ? FINALIZER : [FINALIZER];
    assert.deepEqual(bodies, [[
      { op: "test", path: "/metadata/resourceVersion", value: version },
      { op: "add", path, value },
    ]]);
  }
});

test("RunContext fails its end with a write that nobody awaited", async () => {
  const { ctx } = contextOf({ answers: [refused(403, "Forbidden")] });
  void ctx.patch(ConfigMap, "m", { data: { a: "b" } });
  await ctx.patch(ConfigMap, "n", { data: { a: "b" } });
  await assert.rejects(async () => await ctx.endWrites(), /Forbidden/);
});

test("RunContext reads an object whose status others may write, unless pruned", async () => {
  for (const cacheIsPartial of [false, true]) {
    const { ctx, run, sent } = contextOf({ needsLive: true, cacheIsPartial });
    run.abort("timeout");
    await ctx.patch(GADGET, KEY, { status: {} }, {
      subresource: "status",
      signal: new AbortController().signal,
    });
    assert.equal(sent.length, cacheIsPartial ? 1 : 2);
  }
});

test("RunContext reads before a status write with the signal of the write", async () => {
  const { ctx, deps } = contextOf({ needsLive: true });
  const signals: unknown[] = [];
  deps.client.find = (_kind, _key, options) => {
    signals.push(options?.signal);
    return Promise.resolve(undefined);
  };
  const { signal } = new AbortController();
  for (const given of [{ signal }, {}]) {
    const options = { subresource: "status", ...given } as const;
    await ctx.patch(GADGET, KEY, { status: {} }, options);
  }
  assert.deepEqual(signals, [signal, ctx.signal]);
});

test("RunContext does not replace an object that its cache has pruned", async () => {
  const { ctx, sent } = contextOf();
  const read = () => ({
    ...gadget(),
    spec: { old: 1 },
    status: { value: "a" },
  });
  const pruned = (path: string) => {
    const object = read();
    const [part = "", field = ""] = path.split(".");
    Reflect.deleteProperty(Reflect.get(object, part), field);
    new Pruner([path]).guard(object);
    return object;
  };
  await assert.rejects(
    ctx.replace(GADGET, pruned("spec.old")),
    /^TypeError: Cannot replace .* its cache does not keep "spec.old", which/,
  );
  await assert.rejects(
    ctx.replace(GADGET, pruned("status.value"), { subresource: "status" }),
    /its cache does not keep "status.value"/,
  );
  assert.deepEqual(sent, []);
  await ctx.replace(GADGET, pruned("spec.old"), { subresource: "status" });
  assert.equal(sent.length, 1, "only the status is written");
});

test("RunContext sends no status before an asynchronous check has accepted it", async () => {
  const kind = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Gadget",
    spec: z.object({}),
    status: z.object({
      value: z.string().refine((value) => Promise.resolve(value !== "bad")),
    }),
  });
  const { ctx, sent } = contextOf({ kind });
  const patch = (value: string) =>
    ctx.patch(kind, KEY, { status: { value } }, { subresource: "status" });
  await assert.rejects(patch("bad"), /status/);
  assert.deepEqual(sent, []);
  await patch("good");
  assert.equal(sent.length, 1);
});

test("RunContext says that a kind has no status in the version it is written", async () => {
  const list = (items: unknown[]) => ({
    body: { kind: "APIGroupDiscoveryList", items },
  });
  const version = (name: string, ...names: string[]) => ({
    version: name,
    resources: [{
      resource: "gadgets",
      responseKind: { kind: "Gadget" },
      scope: "Namespaced",
      subresources: names.map((subresource) => ({ subresource })),
    }],
  });
  const versions = [version("v2", "status"), version("v1")];
  for (
    const [status, reason, group] of [
      [403, "Forbidden", "example.com"],
      [404, "NotFound", "example.com"],
      [404, "NotFound", "gateway.networking.k8s.io"],
    ] as const
  ) {
    const { ctx } = contextOf({
      answers: [
        refused(status, reason),
        list([]),
        list([{ metadata: { name: group }, versions }]),
      ],
    });
    await assert.rejects(
      ctx.patch({ ...GADGET, group }, KEY, { status: {} }, {
        subresource: "status",
      }),
      /^TypeError: Cannot write the status of Gadget: the kind has none, so give/,
    );
  }
});

test("RunContext logs a write after the end of its run that fails", async () => {
  const lines: string[] = [];
  const { ctx, deps } = contextOf({ answers: [refused(403, "Forbidden")] });
  const log = { ...silentLogger, error: (text: string) => lines.push(text) };
  Object.assign(deps, { log: { ...log, with: () => log } });
  assert.equal(ctx.endWrites(), undefined);
  void ctx.patch(ConfigMap, "m", { data: {} });
  await until("the error is logged", () => lines.length > 0);
  assert.match(lines[0] ?? "", /write "await" before ctx\.patch\(ConfigMap\)$/);
});

test("RunContext refuses an Event without a reason", () => {
  const { ctx } = contextOf();
  assert.throws(() => ctx.events.normal(1 as never, "text"), TypeError);
  assert.throws(() => ctx.events.warning("Reason", {} as never), TypeError);
});

test("RunContext gives the only secondary, and refuses to choose", async () => {
  const { ctx, deps } = contextOf();
  const found: unknown[] = [];
  Object.assign(deps.sources, { secondaries: () => Promise.resolve(found) });
  assert.equal(await ctx.secondary(ConfigMap), undefined);
  const one = configMap();
  found.push(one);
  assert.equal(await ctx.secondary(ConfigMap), one);
  found.push(configMap({ name: "b" }));
  await assert.rejects(ctx.secondary(ConfigMap), {
    name: "RangeError",
    message: /there is more than one, .*: received 2$/,
  });
});

test("RunContext repeats an apply only if the object is invalid", async () => {
  const { ctx, sent } = contextOf({ answers: [refused(403, "Forbidden")] });
  await assert.rejects(
    ctx.apply(ConfigMap, { metadata: { name: "m" } }, { owned: true }),
    /No/,
  );
  assert.equal(sent.length, 1);
});

test("RunContext replaces only what was read, and as a whole", async () => {
  const { ctx, sent } = contextOf({ cacheIsPartial: true });
  await assert.rejects(
    ctx.replace(ConfigMap, { metadata: KEY }),
    /it needs the metadata\.resourceVersion that it was read with$/,
  );
  const { apiVersion, kind, metadata } = gadget();
  await assert.rejects(
    ctx.replace(GADGET, { apiVersion, kind, metadata }),
    /its cache keeps only the metadata, so the rest would be lost/,
  );
  assert.deepEqual(sent, []);
  await ctx.replace(GADGET, gadget());
  assert.equal(sent.length, 1);
});

test("RunContext modifies by a function that returns nothing, or its object", async () => {
  const { ctx } = contextOf();
  await ctx.modify(ConfigMap, "m", (map) => {
    map.data = { a: "b" };
    return map as never;
  });
  for (
    const [change, received] of [
      [() => Promise.reject(new Error("late")), "a promise"],
      [(map: object) => ({ ...map }), "another object"],
    ] as const
  ) {
    await assert.rejects(
      ctx.modify(ConfigMap, "m", change as () => void),
      new RegExp(`received ${received}$`),
    );
  }
  await new Promise((resolve) => setImmediate(resolve));
});

test("logFields has a namespace and a generation only if the object has them", () => {
  const metadata = { name: "a", uid: "1", resourceVersion: "2" };
  assert.deepEqual(logFields({ metadata }, GADGET), {
    kind: "Gadget",
    ...metadata,
  });
  const more = { ...metadata, namespace: "b", generation: 3 };
  assert.deepEqual(logFields({ metadata: more }, GADGET), {
    kind: "Gadget",
    ...more,
  });
});
