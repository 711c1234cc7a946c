/**
 * Invalid options and invalid parts of users are rejected on construction, not
 * on start.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Client,
  Informer,
  InformerPool,
  type Kind,
  MemoryBudget,
  Operator,
} from "@coracle/operator/core";
import { validatingPolicy } from "@coracle/operator/crd";
import { ConfigMap } from "@coracle/operator/kinds";
import { byLabel, watch } from "@coracle/operator/sources";

const client = new Client({
  transport: {
    send: () => Promise.reject(new Error("Nothing is sent")),
    close: () => Promise.resolve(),
  },
});

/** Functions with options: invalid options with the expected errors. */
type Case = readonly [
  make: (options: never) => unknown,
  wrong: readonly (readonly [options: unknown, said: RegExp])[],
];

const SELECTORS: Case[1] = [
  [{ labelSelector: "a in (" }, /Cannot read label selector "a in \("/],
  [{ labelSelector: { app: "web" } }, /there is no option "app"/],
  [{ labelSelector: { matchLabels: { app: 1 } } }, /label "app": .*received 1/],
  [{ labelSelector: { matchExpressions: [null] } }, /Cannot select by label/],
  [{ labelSelector: [{ key: "a", operator: "Is" }] }, /operator is unknown/],
  [{ labelSelector: [{ key: "a", operator: "In", values: "b" }] }, /an array/],
  [{ fieldSelector: "web" }, /Cannot read field selector "web"/],
  [{ fieldSelector: { "metadata.name": 1 } }, /Cannot select by a field/],
  [{ fieldSelector: [5] }, /Cannot select by a field: .*received 5/],
  [{ shardSelector: "0" }, /Cannot read a shard selector/],
];

const CASES: Readonly<Record<string, Case>> = {
  "new Operator()": [(options) => new Operator(options), [
    [{ namespaces: 5 }, /for an operator: .*"all", "current".*received 5/],
    [{ namespaces: "default" }, /or a list of names: received "default"/],
    [{ namespaces: [] }, /or a list of names: received \[\]/],
    [{ namespaces: ["Web"] }, /63 lower-case .*: received "Web"/],
    [{ client: {} }, /an operator, client: "request" must be a function/],
    [{ cache: { budget: true } }, /must be a number of bytes.*boolean/],
    [[], /an operator: they must be an object: received an array/],
  ]],
  "new Operator({ webhooks })": [
    (webhooks) => new Operator({ webhooks }),
    [
      [{ service: { name: "Shop" } }, /"name" must .*63 .*: received "Shop"/],
      [{ service: { name: "a.b" } }, /service: "name" .*: received "a\.b"/],
      [
        { service: { name: "a", namespace: "A_b" } },
        /service: "namespace" must have .*: received "A_b"/,
      ],
      [{ service: { name: "a", port: 0 } }, /"port" .* from 1 on: received 0/],
      [
        { service: { name: "a" }, name: "a..b" },
        /"name" must be a DNS subdomain.*: received "a\.\.b"/,
      ],
      [
        { service: { name: "a" }, callers: { caFile: "a", names: [] } },
        /callers: "names" must have the name of a user.*: received none/,
      ],
      [
        { service: { name: "a" }, callers: { caFile: "a", names: [""] } },
        /callers: "names" .*: received an empty name/,
      ],
      [{}, /must have either "service".* or "url".*: received neither/],
    ],
  ],
  "validatingPolicy()": [
    (options) => validatingPolicy(ConfigMap, options),
    [
      [
        { name: "A b", validations: [{ expression: "true" }] },
        /'name' must be a DNS subdomain.*: received "A b"/,
      ],
    ],
  ],
  "Operator.register()": [
    (options) =>
      new Operator().register(ConfigMap, { reconcile() {} }, options),
    [
      ...SELECTORS,
      [{ namespaces: true }, /for controller "configmap": .*received true/],
      [{ cache: { prune: ["metadata..labels"] } }, /metadata\.\.labels/],
      [{ indexes: { app: {} } }, /index "app": it must have one of byLabel/],
      [{ indexes: { app: { byLabels: "app" } } }, /mean "byLabel"\?/],
      [{ indexes: { app: "app" } }, /index "app": they must be an object/],
      [{ retry: { delay: 5, maxAttempts: 1 } }, /retry: "delay" must be a fun/],
      [{ retry: { delay() {} } }, /retry: "maxAttempts" must be a number/],
      [{ rateLimit: { admit: 5 } }, /rateLimit: "admit" must be a function/],
      [
        { workflow: { read() {}, reconcile() {}, sources: [] } },
        /"workflow" must be a Workflow, so write new Workflow\(\)\.add/,
      ],
      [{ workflow: {} }, /workflow: "needsFinalizer" must be true or false/],
      [
        { workflow: { needsFinalizer: false, sources: {} } },
        /workflow: "sources" must be an array: received an object/,
      ],
    ],
  ],
  "Operator.register() of a kind": [
    (names: object) =>
      new Operator().register(
        { ...ConfigMap, ...names } as Kind,
        { reconcile() {} },
      ),
    [
      [{ kind: 5 }, /the kind of a controller: it must have a group/],
      [{ version: true }, /it must have a group, a version and a kind/],
      [
        { plural: 5 },
        /kind ConfigMap of a controller: "plural" must be .*number/,
      ],
      [{ scope: "namespaced" }, /one of Namespaced, Cluster: .*"namespaced"/],
    ],
  ],
  "new Informer()": [
    (options) => new Informer(client, ConfigMap, options),
    [
      ...SELECTORS,
      [{ budget: {} }, /an informer, budget: "charge" must be a function/],
    ],
  ],
  "new Informer() of a client": [
    (it) => new Informer(it, ConfigMap),
    [
      [undefined, /an informer, client: .*received nothing/],
      [{}, /an informer, client: "request" must be a function/],
    ],
  ],
  "new InformerPool()": [(options) => new InformerPool(client, options), [
    [{ reconnect: { pages: 1 } }, /reconnect: there is no option "pages"/],
    [{ budget: {} }, /a pool of informers, budget: "charge" must be/],
  ]],
  "new MemoryBudget()": [(size) => new MemoryBudget(size), [
    [true, /such as 96MiB: received boolean/],
    [[5], /such as 96MiB: received object/],
  ]],
  "watch()": [(options) => watch(ConfigMap, options), [
    ...SELECTORS,
    [{ namespaces: 5 }, /watch\(\) of .*"inherited", "all" .*: rec/],
    [{ namespaces: "current" }, /or a list of names: received "current"/],
    [{ prune: ["status..x"] }, /status\.\.x/],
    [{ client: {} }, /client: "request" must be a function/],
    [{ mapper: {} }, /mapper: "primariesOf" must be a function/],
    [{ mapper: { ...byLabel("a"), index: {} } }, /must have one of byLabel/],
  ]],
};

for (const [what, [make, wrong]] of Object.entries(CASES)) {
  test(`${what} rejects invalid options immediately`, () => {
    for (const [options, said] of wrong) {
      assert.throws(
        () => make(options as never),
        ({ message }: Error) => {
          assert.match(message, /^Cannot .+: .+: received /s);
          assert.match(message, said);
          return true;
        },
      );
    }
  });
}

test("Parsed options accept every valid form", () => {
  const selectors = {
    labelSelector: { matchExpressions: [{ key: "a", operator: "Exists" }] },
    fieldSelector: [{ field: "metadata.name", operator: "!=", value: "" }],
    shardSelector:
      "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')",
  } as const;
  new Operator({ client, namespaces: ["a", "b"] }).register(ConfigMap, {
    reconcile() {},
  }, {
    ...selectors,
    namespaces: "current",
    indexes: { app: { byLabel: "app", byOwner: undefined } as never },
    retry: { maxAttempts: Infinity, delay: () => 1 },
    rateLimit: { admit: () => 0 },
    cache: { prune: ["data.*"] },
  });
  new Informer(client, ConfigMap, {
    ...selectors,
    budget: new MemoryBudget(1),
  });
  watch(ConfigMap, { ...selectors, namespaces: "all" });
});
