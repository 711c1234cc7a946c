import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import {
  clusterState,
  differenceName,
  differencesText,
  fieldPath,
  stateDifferences,
} from "../../../dev/testing/check/state.ts";

const uid = (digit: number) =>
  `${String(digit).repeat(8)}-1111-4111-8111-111111111111`;

function object(
  kind: string,
  name: string,
  more: JsonObject & { metadata?: JsonObject } = {},
): JsonObject {
  const { metadata, ...rest } = more;
  return {
    apiVersion: kind === "Gadget" ? "sample.coracle.dev/v1" : "v1",
    kind,
    metadata: { namespace: "default", name, uid: uid(1), ...metadata },
    ...rest,
  };
}

function differ(before: JsonObject[], after: JsonObject[]) {
  return stateDifferences(clusterState(before), clusterState(after));
}

test("States are equal if only times, UIDs, versions and addresses differ", () => {
  const run = (digit: number, day: string) => [
    object("Gadget", "a", {
      metadata: {
        uid: uid(digit),
        generation: digit,
        resourceVersion: `${digit}`,
      },
      status: {
        observedGeneration: digit,
        message: `Reconciling generation ${digit}`,
        since: `2026-01-0${day}T00:00:00Z`,
      },
    }),
    object("Service", "a", {
      metadata: {
        uid: uid(digit + 2),
        ownerReferences: [{ kind: "Gadget", name: "a", uid: uid(digit) }],
      },
      spec: { clusterIP: `10.0.0.${digit}` },
    }),
  ];
  assert.deepEqual(differ(run(1, "1"), run(2, "2")), []);
});

test("An empty list is as good as none, unlike an empty object", () => {
  const volumes = (...all: JsonObject[]) => [
    object("Gadget", "a", { spec: { volumes: all } }),
  ];
  assert.deepEqual(
    differ(volumes(), [object("Gadget", "a", { spec: {} })]),
    [],
  );
  assert.equal(differ(volumes({ emptyDir: {} }), volumes({})).length, 1);
});

test("An owner that is gone and an older observed generation are differences", () => {
  const owned = (owner: string) => [
    object("Gadget", "a", {
      metadata: { generation: 2 },
      status: { observedGeneration: owner === uid(1) ? 2 : 1 },
    }),
    object("Service", "a", {
      metadata: { uid: uid(3), ownerReferences: [{ uid: owner }] },
    }),
  ];
  const found = differ(owned(uid(1)), owned(uid(7)));
  assert.equal(
    differencesText(found),
    [
      "  Gadget default/a",
      '-   .status.observedGeneration: "<generation>"',
      "  Service default/a",
      '-   .metadata.ownerReferences[0].uid: "<uid of Gadget default/a>"',
      '+   .metadata.ownerReferences[0].uid: "<uid of no object>"',
    ].join("\n"),
  );
});

test("Conditions of an older generation say nothing of the newest one", () => {
  const gadget = (status?: JsonObject) => [
    object("Gadget", "a", {
      metadata: { generation: 2 },
      ...(status && { status }),
    }),
  ];
  const condition = (observedGeneration: number) => ({
    type: "Down",
    status: "True",
    observedGeneration,
  });
  const old = { observedGeneration: 1, conditions: [condition(1)] };
  assert.deepEqual(differ(gadget(), gadget(old)), []);
  const current = { conditions: [condition(2)] };
  assert.equal(differ(gadget(), gadget(current)).length, 1);
  assert.equal(differ(gadget(current), gadget(old)).length, 1);
});

test("The default of imagePullPolicy is no difference, an applied one is", () => {
  const pod = (imagePullPolicy: string, operation: string) =>
    object("Pod", "a", {
      metadata: {
        managedFields: [{
          operation,
          fieldsV1: { "f:spec": { "f:imagePullPolicy": {} } },
        }],
      },
      spec: { containers: [{ name: "a", image: "a:1", imagePullPolicy }] },
    });
  const differences = (operation: string) =>
    differ([pod("Always", operation)], [pod("IfNotPresent", operation)])
      .map(differenceName);
  assert.deepEqual(differences("Update"), []);
  assert.deepEqual(differences("Apply"), [
    "Pod .spec.containers[].imagePullPolicy",
  ]);
});

test("Numbers that are times of the world are no differences, others are", () => {
  const since = (value: number) => [
    object("Gadget", "a", { status: { since: value } }),
  ];
  const time = Date.parse("2026-01-02T00:00:00Z");
  assert.deepEqual(differ(since(time), since(time + 90_000)), []);
  assert.deepEqual(differ(since(time / 1_000), since(time / 1_000 + 90)), []);
  assert.equal(differ(since(90_000), since(180_000)).length, 1);
});

test("Missing, extra and doubly generated objects are named", () => {
  const job = (name: string) =>
    object("Job", name, {
      metadata: { generateName: "job-", uid: uid(name === "job-x" ? 4 : 5) },
    });
  const found = differ(
    [object("ConfigMap", "a"), job("job-x")],
    [object("Secret", "b"), job("job-y"), job("job-x")],
  );
  assert.deepEqual(differencesText(found).split("\n").sort(), [
    "+ Job default/job-* (2)   (not in the reference)",
    "+ Secret default/b   (not in the reference)",
    "- ConfigMap default/a   (missing)",
  ]);
});

test("Values of Secrets are never shown", () => {
  const secret = (
    value: string,
  ) => [object("Secret", "a", { data: { k: value } })];
  const text = differencesText(differ(secret("b25l"), secret("dHdv")));
  assert.doesNotMatch(text, /b25l|dHdv/);
  assert.match(text, /\.data\.k/);
});

test("Objects of the cluster's own controllers are left out", () => {
  const pod = object("Pod", "a-1", {
    metadata: {
      ownerReferences: [{
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        controller: true,
      }],
    },
  });
  assert.deepEqual(
    differ([], [pod, object("Event", "e"), object("Lease", "l")]),
    [],
  );
});

test("Neither the order of conditions nor the status of built-in kinds matters", () => {
  const state = (...types: readonly string[]) => [
    object("Gadget", "a", {
      apiVersion: "sample.coracle.dev/v1",
      status: { conditions: types.map((type) => ({ type, status: "True" })) },
    }),
    object("Deployment", "a", {
      apiVersion: "apps/v1",
      status: { conditions: types },
    }),
  ];
  assert.deepEqual(differ(state("A", "B"), state("B", "A")), []);
  assert.equal(differ(state("A", "B"), state("A")).length, 1);
});

test("A masked place is no difference, whatever the object and the index", () => {
  const pods = (
    ip: string,
  ) => [object("Gadget", "a", { spec: { hosts: [{ ip }] } })];
  const [found] = differ(pods("1"), pods("2"));
  const masked = new Set([differenceName(found!)]);
  assert.deepEqual([...masked], ["Gadget .spec.hosts[].ip"]);
  const states = [clusterState(pods("1")), clusterState(pods("2"))] as const;
  assert.deepEqual(stateDifferences(...states, masked), []);
});

test("Objects of one generated name are compared in the order of their age", () => {
  const job = (day: number, size: number) =>
    object("Job", `job-${day}`, {
      metadata: {
        generateName: "job-",
        creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      },
      spec: { size },
    });
  assert.deepEqual(differ([job(1, 1), job(2, 2)], [job(3, 2), job(2, 1)]), []);
  assert.equal(
    differ([job(1, 1), job(2, 2)], [job(3, 1), job(2, 2)]).length,
    2,
  );
});

test("Only what controllers of the cluster own, or make, is left out", () => {
  const owned = (owner: JsonObject) =>
    object("Pod", "a-1", { metadata: { ownerReferences: [owner] } });
  const [kind, controller] = ["ReplicationController", true];
  const owner = { apiVersion: "v1", kind, controller };
  assert.deepEqual(differ([], [owned(owner)]), []);
  for (
    const other of [
      { ...owner, controller: false },
      { ...owner, apiVersion: "test.dev/v1" },
      { ...owner, kind: "Gadget" },
    ]
  ) assert.equal(differ([], [owned(other)]).length, 1);
  const name = "kube-root-ca.crt";
  assert.deepEqual(differ([], [object("ConfigMap", name)]), []);
  assert.equal(differ([], [object("Secret", name)]).length, 1);
});

test("Numbers of generations are compared only if they are of another object", () => {
  const gadget = (generation: number, status: JsonObject) => [
    object("Gadget", "a", { metadata: { generation }, status }),
  ];
  const message = (one: number) =>
    gadget(one, { message: `generation ${one} follows generation ${one + 1}` });
  assert.deepEqual(differ(message(1), message(5)), []);
  const own = (one: number) => gadget(one, { generation: one });
  assert.deepEqual(differ(own(1), own(2)), []);
  const other = (one: number) => gadget(1, { generation: one });
  assert.equal(differ(other(7), other(8)).length, 1);
});

test("Numbers later than the time of the world are no times", () => {
  const at = (
    value: number,
  ) => [object("Gadget", "a", { spec: { at: value } })];
  assert.equal(differ(at(2e12), at(3e12)).length, 1);
  assert.equal(differ(at(2e9), at(3e9)).length, 1);
});

test("Masks are of objects, and of places with what is in them", () => {
  const gadget = (value: number) => [
    object("Gadget", "a", { spec: { a: [{ b: [0, value] }] } }),
  ];
  const states = [clusterState(gadget(1)), clusterState(gadget(2))] as const;
  const [found] = stateDifferences(...states);
  assert.equal(found?.path, ".spec.a[0].b[1]");
  assert.equal(differenceName(found!), "Gadget .spec.a[].b[]");
  const parts = [".spec", ".spec.a", ".spec.a[].b", ".spec.a[].b[]"];
  for (const mask of ["default/a", ...parts].map((one) => `Gadget ${one}`)) {
    assert.deepEqual(stateDifferences(...states, new Set([mask])), []);
  }
  for (const mask of ["Gadget default/b", "Gadget .spe", "Gadget "]) {
    assert.equal(stateDifferences(...states, new Set([mask])).length, 1);
  }
});

test("Paths quote names that are no words", () => {
  assert.equal(fieldPath(".a", "b-c_1"), ".a.b-c_1");
  assert.equal(fieldPath(".a", "b.c"), '.a["b.c"]');
  assert.equal(fieldPath("", "b/c"), '["b/c"]');
});

test("The text of differences has 12 of them, and 200 characters of a value", () => {
  const spec = (count: number, value: string) => [
    object("Gadget", "a", {
      spec: Object.fromEntries(
        Array.from({ length: count }, (_, at) => [`f${at + 10}`, value]),
      ),
    }),
  ];
  const lines = (count: number) =>
    differencesText(differ(spec(count, "a"), spec(count, "b"))).split("\n");
  assert.equal(lines(12).length, 1 + 2 * 12);
  assert.equal(lines(13).length, 1 + 2 * 12 + 1);
  assert.equal(lines(13).at(-1), "  … and 1 more differences");
  const long = (length: number) =>
    differencesText(differ(spec(1, "x".repeat(length)), spec(1, "b")));
  assert.match(long(198), /^- {3}\.spec\.f10: "x{198}"$/m);
  assert.match(long(199), /^- {3}\.spec\.f10: "x{199}…$/m);
});

test("Masks are of kinds, and of objects with labels", () => {
  const pod = (name: string, labels?: JsonObject) =>
    object("Pod", name, { metadata: { labels: labels ?? {} } });
  const left = (masked: string, ...labels: readonly JsonObject[]) =>
    stateDifferences(
      clusterState([]),
      clusterState(labels.map((one, at) => pod(`p${at}`, one))),
      new Set([masked]),
    ).map((one) => one.object);
  const [web, worker] = [{ app: "a", tier: "web" }, { app: "a", tier: "b" }];
  assert.deepEqual(left("Pod", web, worker), []);
  assert.deepEqual(left("Po", web), ["Pod default/p0"]);
  assert.deepEqual(left("Pod app=a", web, worker), []);
  assert.deepEqual(left("Pod app=a,tier=web", web, worker), ["Pod default/p1"]);
  assert.deepEqual(left("Pod app=", web), ["Pod default/p0"]);
  assert.deepEqual(left("Gadget app=a", web), ["Pod default/p0"]);
});
