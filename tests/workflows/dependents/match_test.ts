import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { UpdateLoopError } from "@coracle/operator/workflows";
import {
  firstDifference,
  MatchMemory,
} from "../../../workflows/dependents/field_match.ts";
import type {
  Form,
  StructForm,
} from "../../../workflows/dependents/value_form.ts";
import { UpdateLoops } from "../../../workflows/dependents/update_loop.ts";

const owned = {
  "f:metadata": { "f:labels": { "f:app": {} } },
  "f:spec": {
    "f:replicas": {},
    "f:template": {
      "f:containers": {
        'k:{"name":"web"}': {
          ".": {},
          "f:name": {},
          "f:image": {},
          "f:args": {},
          "f:env": {
            'k:{"name":"A"}': { ".": {}, "f:name": {}, "f:value": {} },
          },
          "f:ports": {
            'k:{"containerPort":80,"protocol":"TCP"}': {
              ".": {},
              "f:containerPort": {},
            },
          },
          "f:resources": { "f:limits": { "f:cpu": {}, "f:memory": {} } },
        },
      },
    },
    "f:finalizers": { 'v:"a"': {}, 'v:"b"': {} },
    "f:selector": {},
  },
};

function container(change: object = {}) {
  return {
    name: "web",
    image: "web:1",
    args: ["-v"],
    env: [{ name: "A", value: "1" }],
    ports: [{ containerPort: 80 }],
    resources: { limits: { cpu: "1", memory: "1Gi" } },
    ...change,
  };
}

function desired(spec: object = {}, change: object = {}) {
  return {
    apiVersion: "v1",
    kind: "Thing",
    metadata: { name: "x", namespace: "ns", labels: { app: "x" } },
    spec: {
      replicas: 2,
      template: { containers: [container(change)] },
      finalizers: ["b", "a"],
      selector: { app: "x" },
      ...spec,
    },
  };
}

/** What a server makes of it: defaults and spellings. */
const actual = {
  ...desired(),
  metadata: {
    ...desired().metadata,
    labels: { app: "x", other: "y" },
    uid: "u",
    generation: 1,
  },
  spec: {
    ...desired().spec,
    minReadySeconds: 0,
    template: {
      containers: [
        { name: "sidecar", image: "injected" },
        container({
          ports: [{ containerPort: 80, protocol: "TCP" }],
          resources: { limits: { cpu: "1000m", memory: "1Gi" } },
          imagePullPolicy: "Always",
        }),
      ],
    },
    finalizers: ["a", "b", "c"],
  },
  status: { replicas: 2 },
};

const form: StructForm = {
  fields: new Map([["limits", { form: "quantity" }]]),
  get rest(): Form {
    return form;
  },
};

const difference = (wanted: object, stored: object = actual) =>
  firstDifference(wanted, stored, { owned, form });

test("firstDifference ignores defaults, normalized values and others' fields", () => {
  assert.equal(difference(desired()), undefined);
});

const CHANGES: readonly (readonly [string, object, string])[] = [
  ["a scalar", desired({ replicas: 3 }), ".spec.replicas"],
  [
    "an atomic list",
    desired({}, { args: ["-v", "-x"] }),
    '.spec.template.containers[{"name":"web"}].args',
  ],
  [
    "an item of a nested keyed list",
    desired({}, { env: [{ name: "A", value: "2" }] }),
    '.spec.template.containers[{"name":"web"}].env[{"name":"A"}].value',
  ],
  [
    "a quantity",
    desired({}, { resources: { limits: { cpu: "1100m", memory: "1Gi" } } }),
    '.spec.template.containers[{"name":"web"}].resources.limits.cpu',
  ],
  [
    "a field that we own and do not want any more",
    desired({ selector: undefined }),
    ".spec.selector",
  ],
  ["a field that we do not own yet", desired({ paused: true }), ".spec.paused"],
  [
    "an item that we do not want any more",
    desired({}, { env: [] }),
    '.spec.template.containers[{"name":"web"}].env[{"name":"A"}]',
  ],
  [
    "an item that is new",
    desired({}, { env: [{ name: "A", value: "1" }, { name: "B" }] }),
    '.spec.template.containers[{"name":"web"}].env[]',
  ],
  [
    "an entry of a set",
    desired({ finalizers: ["a"] }),
    '.spec.finalizers["b"]',
  ],
  ["an entry of an atomic map", desired({ selector: {} }), ".spec.selector"],
];

for (const [what, wanted, path] of CHANGES) {
  test(`firstDifference names ${what}`, () => {
    assert.equal(difference(JSON.parse(JSON.stringify(wanted))), path);
  });
}

test("firstDifference compares atomic items, and ignores others' map entries", () => {
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
  const wanted = { metadata: { labels: {}, ownerReferences: [owner] } };
  const known = {
    owned: {
      "f:metadata": {
        "f:labels": { ".": {} },
        "f:ownerReferences": { 'k:{"uid":"u"}': {} },
      },
    },
  };
  const compare = (change: object) =>
    firstDifference(
      wanted as never,
      {
        metadata: {
          labels: { of: "others" },
          ownerReferences: [{ ...owner, ...change }],
        },
      } as never,
      known,
    );
  assert.equal(compare({}), undefined);
  assert.equal(
    compare({ name: "other" }),
    '.metadata.ownerReferences[{"uid":"u"}].name',
  );
});

test("firstDifference finds the values of sets that Go escapes in managedFields", () => {
  const urls = ["https://a?x=1&y=<ü>", "\u2028b\\"];
  const spec = { urls };
  const [first, second] = [
    String.raw`v:"https://a?x=1\u0026y=\u003cü\u003e"`,
    String.raw`v:"\u2028b\\"`,
  ];
  const owned = { "f:spec": { "f:urls": { [first]: {}, [second]: {} } } };
  assert.equal(firstDifference({ spec }, { spec }, { owned }), undefined);
  assert.equal(
    firstDifference({ spec: { urls: ["c&d"] } }, { spec }, { owned }),
    '.spec.urls["c&d"]',
  );
});

test("firstDifference finds an owned field that another writer changed", () => {
  const changed = { ...actual, spec: { ...actual.spec, replicas: 7 } };
  assert.equal(difference(desired(), changed), ".spec.replicas");
});

test("firstDifference treats empty values as absent", () => {
  const wanted = desired({ strategy: {}, paused: null, note: "", list: [] });
  assert.equal(difference(wanted), undefined);
});

function stored(
  resourceVersion: string,
  spec: object,
  ownedSpec: object | null = { "f:a": {} },
): KubernetesObject {
  return {
    metadata: {
      name: "x",
      uid: "u1",
      resourceVersion,
      managedFields: [
        { manager: "other", operation: "Apply", fieldsV1: { "f:spec": {} } },
        ...(ownedSpec
          ? [{
            manager: "me",
            operation: "Apply" as const,
            fieldsV1: { "f:spec": ownedSpec },
          }]
          : []),
      ],
    },
    spec,
  } as KubernetesObject;
}

/** A desired for `spec.a` and the state that it meets, as of one manager. */
function met(actual: KubernetesObject, a = "1h") {
  const intent = {
    metadata: { name: "x" },
    spec: { a },
  } as KubernetesObject;
  return { id: "k", desired: a, intent, actual, fieldManager: "me" };
}

test("MatchMemory does not match what we have never applied", () => {
  const memory = new MatchMemory();
  const actual = stored("1", { a: "1h" }, null);
  assert.equal(memory.difference(met(actual)), ".spec");
});

test("MatchMemory does not own an empty object that somebody else has made", () => {
  const memory = new MatchMemory();
  const intent = { metadata: { name: "x" } };
  const ofOther = { ...met(stored("1", {}, null)), intent };
  assert.equal(memory.difference(ofOther), "");
  assert.equal(memory.difference(ofOther), "", "nothing was learned from it");
  const applied = { ...met(stored("2", {}, {})), intent };
  memory.applied(applied);
  assert.equal(memory.difference(applied), undefined);
});

test("MatchMemory learns what the server makes of a value", () => {
  const memory = new MatchMemory();
  const actual = stored("5", { a: "1h0m0s" });
  assert.equal(memory.difference(met(actual)), ".spec.a");
  memory.applied(met(actual));
  assert.equal(memory.isUntouched(met(actual)), true);
  assert.equal(memory.difference(met(actual)), undefined);
  const later = stored("6", { a: "1h0m0s", b: "of somebody else" });
  assert.equal(memory.isUntouched(met(later)), false);
  assert.equal(memory.difference(met(later)), undefined);
  assert.equal(memory.isUntouched(met(later)), true);
  const changed = stored("7", { a: "2h0m0s" });
  assert.notEqual(memory.difference(met(changed)), undefined);
});

test("MatchMemory forgets a recreated object, another desired state, or on request", () => {
  const memory = new MatchMemory();
  const actual = stored("5", { a: "1h0m0s" });
  memory.applied(met(actual));
  const reborn = structuredClone(actual);
  reborn.metadata.uid = "u2";
  assert.notEqual(memory.difference(met(reborn)), undefined);
  assert.notEqual(memory.difference(met(actual, "60m")), undefined);
  memory.forget("k");
  assert.equal(memory.size, 0);
  assert.notEqual(memory.difference(met(actual)), undefined);
});

test("MatchMemory does not take fields of another version for those that it asks for [DetectApiVersionChangeIT]", () => {
  const actual = stored("5", { a: "1h" });
  actual.metadata.managedFields![1]!.apiVersion = "example.com/v1";
  const match = met(actual);
  const asked = (apiVersion: string) => ({
    ...match,
    intent: { ...match.intent, apiVersion },
  });
  const memory = new MatchMemory();
  assert.notEqual(memory.difference(asked("example.com/v2")), undefined);
  assert.equal(memory.difference(asked("example.com/v1")), undefined);
});

test("MatchMemory goes by the fields of the object, not by those of its status", () => {
  const actual = stored("5", { a: "1h" });
  actual.metadata.managedFields!.unshift({
    manager: "me",
    operation: "Apply",
    subresource: "status",
    fieldsV1: { "f:status": { "f:phase": {} } },
  });
  assert.equal(new MatchMemory().difference(met(actual)), undefined);
});

test("MatchMemory learns from every answer, not only from the first", () => {
  const memory = new MatchMemory();
  memory.applied(met(stored("5", { a: "1h0m0s" })));
  const reborn = stored("8", { a: "60m" });
  reborn.metadata.uid = "u2";
  memory.applied(met(reborn));
  assert.equal(memory.isUntouched(met(reborn)), true);
  assert.equal(memory.difference(met(reborn)), undefined);
});

test("MatchMemory with a limit knows the objects that were learned last", () => {
  const memory = new MatchMemory(undefined, 10);
  for (let index = 0; index < 1_000; index++) {
    memory.applied({ ...met(stored("5", { a: "1h" })), id: `${index}` });
  }
  assert.ok(memory.size <= 20, `${memory.size} of 1,000 are remembered`);
  const match = met(stored("5", { a: "1h" }));
  for (let index = 990; index < 1_000; index++) {
    assert.equal(memory.isUntouched({ ...match, id: `${index}` }), true);
  }
  assert.equal(memory.isUntouched({ ...match, id: "0" }), false);
});

test("UpdateLoops allows five writes of a field, then fewer and fewer", () => {
  const loops = new UpdateLoops();
  const write = (field = ".spec.a", now = 0) => {
    try {
      loops.beforeWrite("k", { what: "Thing ns/x", field, now });
      return true;
    } catch (error) {
      assert.ok(error instanceof UpdateLoopError);
      assert.match(error.message, /received \.spec\.a after \d+ writes/);
      return false;
    }
  };
  const passed = Array.from({ length: 20 }, () => write());
  assert.deepEqual(passed.slice(0, 6), Array(6).fill(true));
  assert.equal(passed.filter(Boolean).length, 9);
  assert.equal(write(".spec.a", 299_999), false);
  assert.equal(write(".spec.a", 300_000), true, "one every five minutes");
  assert.equal(write(".spec.a", 300_001), false, "counted from the last");
  assert.equal(write(".spec.b"), true, "another field is no loop");
  loops.settled("k");
  assert.equal(write(), true);
});

test("UpdateLoops does not delay the write after one that failed", () => {
  const loops = new UpdateLoops();
  const write = () =>
    loops.beforeWrite("k", { what: "Thing ns/x", field: ".spec.a", now: 0 });
  for (let count = 0; count < 6; count++) write();
  for (let count = 0; count < 3; count++) {
    // The server was away: nothing was written that could be reverted.
    loops.failed("k");
    write();
  }
  assert.throws(write, UpdateLoopError, "the sixth that was stored");
  for (let count = 0; count < 6; count++) loops.failed("k");
  assert.equal(loops.size, 0);
});
