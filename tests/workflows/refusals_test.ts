import assert from "node:assert/strict";
import { test } from "node:test";
import { noMetrics } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { inboundSource } from "@coracle/operator/sources";
import {
  applySet,
  bulkDependent,
  Canary,
  celRules,
  changeMap,
  checkAccess,
  chooseUpgrade,
  externalBulkDependent,
  externalDependent,
  intervalSchedule,
  jittered,
  kubernetesDependent,
  LifecycleMetrics,
  newFailures,
  oneShotTask,
  phased,
  pruneSet,
  readOnlyBulkDependent,
  readOnlyDependent,
  requireReady,
  SharedStatus,
  Stalled,
  states,
  statusOf,
  statusState,
  summarized,
  waitFor,
  Waiting,
  WebhookNotifier,
  Workflow,
} from "@coracle/operator/workflows";
import { testRefusals } from "../support/refusals.ts";

const call = () => undefined as never;
const source = inboundSource("outside");
const client = {} as never;
const kind = ConfigMap as never;
const object = { metadata: { name: "web" } };
const owner = { group: "example.com", name: "web" };
const FUNCTION = "a function: received";

test("oneShotTask() refuses a first delay above the longest one", () => {
  const task = { start: call, check: call };
  assert.throws(
    () => oneShotTask(kind, { ...task, backOff: "1m", maxBackOff: "30s" }),
    /"backOff" must not be longer than "maxBackOff", 30000 ms: received 60000 ms$/,
  );
  assert.throws(
    () => oneShotTask(kind, { ...task, backOff: "2h" }),
    /"maxBackOff", 3600000 ms: received 7200000 ms$/,
  );
  oneShotTask(kind, { ...task, backOff: "30s", maxBackOff: "30s" });
  oneShotTask(kind, { ...task, maxBackOff: "5s" });
});

testRefusals([
  {
    what: "kubernetesDependent()",
    make: (options) => kubernetesDependent(ConfigMap, options),
    good: { desired: call },
    bad: {
      desired: [undefined, `${FUNCTION} nothing`],
      existing: ["take", "one of refuse, adopt"],
      recreate: ["yes", "true or false"],
      source: ["x", "an object"],
    },
  },
  {
    what: "readOnlyDependent()",
    make: (options) => readOnlyDependent(ConfigMap, options),
    good: {},
    optional: true,
    bad: { key: ["a", FUNCTION] },
  },
  {
    what: "bulkDependent()",
    make: (options) => bulkDependent(ConfigMap, options),
    good: { desired: call },
    bad: { desired: [5, FUNCTION], relation: ["label", "owner, annotations"] },
  },
  {
    what: "readOnlyBulkDependent()",
    make: (options) => readOnlyBulkDependent(ConfigMap, options),
    good: {},
    optional: true,
    bad: { watch: [5, "an object"] },
  },
  {
    what: "externalDependent()",
    make: externalDependent,
    good: { source, desired: call },
    bad: { source: [undefined, "an object"], create: [5, FUNCTION] },
  },
  {
    what: "externalBulkDependent()",
    make: externalBulkDependent,
    good: { source, key: call },
    bad: { source: [null, "received null"], delete: [true, FUNCTION] },
  },
  {
    what: "statusState()",
    make: (options) => statusState(kind, "accountId", options),
    good: { many: true },
    optional: true,
    bad: { many: ["yes", "true or false"] },
  },
  {
    what: "A workflow",
    make: (options) => new Workflow(options),
    good: {},
    optional: true,
    bad: { errors: ["ignore", "throw, collect"], concurrency: [0, "from 1"] },
  },
  {
    what: "A node of a workflow",
    make: (options) => new Workflow().add("a", { read: call }, options),
    good: {},
    optional: true,
    bad: { readyWhen: [true, FUNCTION], activeWhen: [5, "crdPresent()"] },
  },
  {
    what: "applySet()",
    make: (options) => applySet(client, [], options),
    good: { owner },
    bad: {
      owner: [undefined, "an object: received nothing"],
      timeout: ["soon", 'received "soon"'],
      concurrency: [0, "from 1"],
      rules: [{}, "a Map"],
    },
  },
  {
    what: "pruneSet()",
    make: (options) => pruneSet(client, [], options),
    good: { owner },
    bad: { dryRun: ["yes", "true or false"], signal: [5, "an AbortSignal"] },
  },
  {
    what: "jittered()",
    make: (options) => jittered("1m", options),
    good: {},
    optional: true,
    bad: { percentage: ["5%", "a number"], random: [5, FUNCTION] },
  },
  {
    what: "summarized()",
    make: (definition) => summarized(kind, definition, []),
    good: { schedule: () => intervalSchedule("1m") },
    bad: {
      schedule: [5, `${FUNCTION} a number`],
      cleanup: [[1], "an array of functions"],
      gates: ["Ready", "an array of strings"],
    },
  },
  {
    what: "A SharedStatus",
    make: (options) => new SharedStatus(object, options),
    good: { access: { read: call, patch: call } },
    bad: { access: [undefined, "an object"], owned: ["A", "of strings"] },
  },
  {
    what: "A WebhookNotifier",
    make: (options) => new WebhookNotifier(options),
    good: { url: "https://example.com", controller: "web" },
    bad: {
      url: ["nope", /"url" must be a URL of http: or https:: received no URL/],
      attempts: [0, "from 1"],
      timeout: ["soon", 'received "soon"'],
    },
  },
  {
    what: "A Waiting",
    make: (options) => new Waiting("Reason", "Message", options),
    good: { after: 5 },
    optional: true,
    bad: {
      event: ["Loud", "None, Normal, Warning"],
      log: [1, "true or false"],
    },
  },
  {
    what: "A Stalled",
    make: (options) => new Stalled("Reason", "Message", options),
    good: { cause: null },
    optional: true,
    bad: { notify: [1, "true or false"] },
  },
  {
    what: "waitFor()",
    make: (options) => waitFor(client, [], options),
    good: {},
    optional: true,
    bad: { desired: ["Ready", "Current, NotFound"], onChange: [5, FUNCTION] },
  },
  {
    what: "statusOf()",
    make: (options) => statusOf({ ...object, apiVersion: "v1" }, options),
    good: {},
    optional: true,
    bad: { rules: [{}, "a Map"], now: ["today", "a number"] },
  },
  {
    what: "celRules()",
    make: (check) => celRules([check]),
    good: { group: "example.com", current: "true" },
    bad: { group: [undefined, "a string"], current: ["", "an expression"] },
  },
  {
    what: "A canary",
    make: (options) => new Canary(kind, options),
    good: { client: { patch: call }, touch: call },
    bad: { touch: [undefined, FUNCTION], every: [NaN, "received NaN"] },
  },
  {
    what: "A rule of changeMap()",
    make: (rule) => changeMap({ replicas: rule }),
    good: { change: "scale" },
    bad: { change: ["sometimes", "none, scale, upgrade, redeploy"] },
  },
  {
    what: "LifecycleMetrics",
    make: (options) => new LifecycleMetrics(noMetrics, options),
    good: { kind: "Engine" },
    bad: { kind: ["", "not empty"], clock: [5, "a clock"] },
  },
  {
    what: "newFailures()",
    make: (options) => newFailures([], options),
    good: { after: undefined },
    bad: { most: [-1, "from 0"], lines: [0, "from 1"] },
  },
  {
    what: "oneShotTask()",
    make: (definition) => oneShotTask(kind, definition),
    good: { start: call, check: call },
    bad: {
      start: [undefined, FUNCTION],
      retries: [-1, "from 0"],
      backOff: ["soon", 'received "soon"'],
    },
  },
  {
    what: "phased()",
    make: (definition) => phased(kind, definition),
    good: {
      diff: call,
      observe: call,
      stable: call,
      isDeployed: call,
      deploy: call,
    },
    bad: {
      deploy: [undefined, FUNCTION],
      poll: [-1, "received -1"],
      metrics: [{}, "a MetricsRegistry"],
    },
  },
  {
    what: "states()",
    make: (options) => states(kind, options),
    good: { initial: "On", states: { On: { run: call } } },
    bad: { states: [undefined, "an object"], poll: ["soon", "a duration"] },
  },
  {
    what: "A state of states()",
    make: (on) => states(kind, { initial: "On", states: { On: on } }),
    good: { run: call },
    bad: { run: [undefined, FUNCTION], rest: ["yes", "true or false"] },
  },
  {
    what: "chooseUpgrade()",
    make: chooseUpgrade,
    good: {
      requested: "savepoint",
      job: "running",
      stateKnown: true,
      highlyAvailable: true,
      manager: "reachable",
    },
    bad: {
      requested: [undefined, "stateless, savepoint, last-state"],
      job: ["gone", "running, unready"],
    },
  },
]);

/** What is wrong beside options, and what is said of it. */
const OTHERS: readonly (readonly [string, () => unknown, RegExp])[] = [
  [
    "a step that is no function",
    () =>
      summarized(kind, { schedule: () => intervalSchedule("1m") }, [
        1 as never,
      ]),
    /"steps" must be an array of functions: received an array/,
  ],
  [
    "a kind that is none",
    () => phased({} as never, {} as never),
    /kind of a phased reconciler: it must have a group, a version and a kind/,
  ],
  [
    "a rule of changes that is none",
    () => changeMap({ replicas: "sometimes" as never }),
    /"replicas" must be one of none, scale, upgrade, redeploy: received "someti/,
  ],
  [
    "a dependency check of nothing",
    () => requireReady(null as never, [], {} as never),
    /kind of requireReady\(\): .*: received null/,
  ],
  [
    "an access check of nothing",
    () => checkAccess({} as never),
    /"from" must be an object: received nothing/,
  ],
  [
    "objects that are no list",
    () => applySet(client, {} as never, { owner }),
    /applySet\(\): "objects" must be an array: received an object/,
  ],
];

for (const [what, make, message] of OTHERS) {
  test(`Refused by name is ${what}`, async () => {
    await assert.rejects(async () => await make(), message);
  });
}
