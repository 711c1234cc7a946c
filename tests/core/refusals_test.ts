import assert from "node:assert/strict";
import { test } from "node:test";
import { createAuthority } from "../../core/admission/certificates.ts";
import {
  deleteCollectionRequest,
  getRequest,
  listRequest,
  watchRequest,
} from "../../core/client/request.ts";
import { RunWindows, tokenBucket } from "../../core/queue/limits.ts";
import { testRefusals } from "../support/refusals.ts";
import { ScriptedTransport } from "../support/scripted_transport.ts";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  Client,
  configFromText,
  defineKind,
  exponentialBackoff,
  Informer,
  InformerPool,
  loadOperatorConfig,
  noUpdate,
  Operator,
  patchResource,
  patchStatus,
  setStatus,
  untyped,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";

const client = { request() {}, resolve() {} } as never;
const transport = { send() {}, close() {} } as never;
const kind = { group: "example.com", version: "v1", kind: "Thing" };
const key = { namespace: "default", name: "web" };
const reconciler = { reconcile() {} };
const FLAG = "true or false: received";
const KUBECONFIG = JSON.stringify({
  "current-context": "a",
  contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  clusters: [{ name: "a", cluster: { server: "https://10.0.0.1" } }],
  users: [{ name: "a", user: {} }],
});

testRefusals([
  {
    what: "A client",
    make: (options) => new Client({ transport }, options),
    good: {},
    optional: true,
    bad: {
      fieldManager: ["", "1 to 128 bytes"],
      responseTimeout: [0, "above 0: received 0"],
      random: [5, "a function"],
      logger: [{}, "a logger"],
    },
  },
  {
    what: "The target of a client",
    make: (target) => new Client(target),
    good: { server: "https://10.0.0.1" },
    bad: {
      server: [undefined, "a string: received nothing"],
      insecureSkipTlsVerify: ["yes", FLAG],
    },
  },
  {
    what: "The retries of a client",
    make: (retry) => new Client({ transport }, { retry }),
    good: { maxAttempts: 3 },
    optional: true,
    bad: { initial: ["100ms", "a number above 0: received a string"] },
  },
  {
    what: "A get",
    make: (options) => getRequest(ConfigMap, key, options),
    good: {},
    optional: true,
    bad: { signal: [5, "an AbortSignal"] },
  },
  {
    what: "A list",
    make: (options) => listRequest(ConfigMap, options),
    good: {},
    optional: true,
    bad: { limit: [-1, "from 0: received -1"], namespace: [5, "a string"] },
  },
  {
    what: "A watch",
    make: (options) => watchRequest(ConfigMap, options),
    good: {},
    optional: true,
    bad: { bookmarks: ["yes", FLAG] },
  },
  {
    what: "A patch",
    make: (options) =>
      new Client({ transport: new ScriptedTransport(() => ({ body: {} })) })
        .patch(ConfigMap, key, {}, options),
    good: {},
    optional: true,
    bad: { type: ["apply", "merge, json, strategic"], dryRun: ["All", FLAG] },
  },
  {
    what: "The deletion of many",
    make: (options) => deleteCollectionRequest(ConfigMap, options),
    good: { labelSelector: "app=web" },
    optional: true,
    bad: {
      labelSelector: [null, "received null"],
      propagationPolicy: ["None", "Background, Foreground, Orphan"],
    },
  },
  {
    what: "configFromText()",
    make: (options) => configFromText(KUBECONFIG, options),
    good: {},
    optional: true,
    bad: { context: [5, "a string"] },
  },
  {
    what: "An informer",
    make: (options) => new Informer(client, ConfigMap, options),
    good: {},
    optional: true,
    bad: {
      bounded: ["yes", FLAG],
      prune: ["metadata", "an array of strings: received a string"],
      namespaces: ["default", "an array of strings: received a string"],
      clock: [5, "a clock"],
    },
  },
  {
    what: "The connection of an informer",
    make: (reconnect) => new Informer(client, ConfigMap, { reconnect }),
    good: { watchList: false },
    optional: true,
    bad: { grace: ["10s", "above 0"], pageSize: [0.5, "from 1"] },
  },
  {
    what: "A pool of informers",
    make: (options) => new InformerPool(client, options),
    good: {},
    optional: true,
    bad: { budget: [5, "an object"] },
  },
  {
    what: "An operator",
    make: (options) => new Operator(options),
    good: {},
    optional: true,
    bad: {
      metrics: [{}, "a MetricsRegistry"],
      concurrency: [0, "above 0"],
      syncTimeout: ["soon", 'received "soon"'],
      startErrors: ["ignore", "fail, wait"],
    },
  },
  {
    what: "The probes of an operator",
    make: (probes) => new Operator({ probes }),
    good: { port: 0 },
    optional: true,
    bad: { port: [undefined, "0 to 65535: received nothing"] },
  },
  {
    what: "A controller",
    make: (options) => new Operator().register(ConfigMap, reconciler, options),
    good: {},
    optional: true,
    bad: {
      generationAware: ["yes", FLAG],
      requestAnnotations: ["a", "an array of strings"],
      watchedAnnotations: ["a", "an array of strings"],
      takeOver: ["a", "an array of strings"],
      sources: [{}, "an array"],
      concurrency: [0, "from 1"],
      install: ["yes", FLAG],
    },
  },
  {
    what: "loadOperatorConfig()",
    make: loadOperatorConfig,
    good: { environment: {} },
    optional: true,
    bad: { file: [5, "a string"], environment: ["x", "an object"] },
  },
  {
    what: "noUpdate()",
    make: noUpdate,
    good: {},
    optional: true,
    bad: { observed: ["yes", FLAG] },
  },
  {
    what: "patchStatus()",
    make: (options) => patchStatus({}, options),
    good: {},
    optional: true,
    bad: { method: ["put", "json, replace"] },
  },
  {
    what: "setStatus()",
    make: (options) => setStatus({}, options),
    good: {},
    optional: true,
    bad: { observed: ["yes", FLAG] },
  },
  {
    what: "untyped()",
    make: untyped,
    good: kind,
    bad: { group: [undefined, "a string"], scope: ["Global", "Namespaced"] },
  },
  {
    what: "exponentialBackoff()",
    make: exponentialBackoff,
    good: {},
    optional: true,
    bad: { jitter: ["10%", "a number"], max: ["soon", 'received "soon"'] },
  },
  {
    what: "A token bucket",
    make: (options) => tokenBucket(options),
    good: { limit: 1 },
    bad: { limit: [0, "above 0"] },
  },
  {
    what: "A limit of the runs of a queue",
    make: (options) => new RunWindows(options),
    good: { limit: 1 },
    bad: { limit: [0.5, "from 1"] },
  },
  {
    what: "defineKind()",
    make: defineKind,
    good: { ...kind, spec: z.object({}) },
    bad: {
      scope: ["Global", "Namespaced, Cluster"],
      shortNames: ["th", "an array of strings: received a string"],
      deprecated: [5, "true or false"],
    },
  },
  {
    what: "A version of a kind",
    make: (v2) => defineKind({ ...kind, spec: z.object({}), versions: [v2] }),
    good: { name: "v2", spec: z.object({}) },
    bad: { served: ["yes", FLAG] },
  },
  {
    what: "The scale of a kind",
    make: (scale) => defineKind({ ...kind, spec: z.object({}), scale }),
    good: { specReplicasPath: ".spec.a", statusReplicasPath: ".status.a" },
    optional: true,
    bad: { statusReplicasPath: [undefined, "a string: received nothing"] },
  },
  {
    what: "A rule of a kind",
    make: (rule) => defineKind({ ...kind, spec: z.object({}), rules: [rule] }),
    good: { rule: "true" },
    bad: { rule: [5, "a string"] },
  },
  {
    what: "createAuthority()",
    make: createAuthority,
    good: { commonName: "test" },
    bad: { validFor: [-1, "from 1"] },
  },
  {
    what: "ApiServer.start()",
    make: async (options) => await (await ApiServer.start(options)).stop(),
    good: { port: false },
    optional: true,
    bad: { tls: ["yes", FLAG], data: [5, "a string"], seed: ["a", "a number"] },
  },
]);

test("Whatever takes a kind refuses what is none", async () => {
  const none = {} as never;
  const client = new Client({ transport });
  const message =
    /^TypeError: Cannot read the kind of .*: it must have a group/;
  for (const wrong of [none, null as never, 5 as never]) {
    assert.throws(() => new Informer(client, wrong), message);
    assert.throws(() => new Operator().register(wrong, reconciler), message);
    await assert.rejects(client.get(wrong, key), message);
  }
});

test("patchResource() refuses a status, unless the whole object is given", () => {
  const status = { ready: true };
  for (const fields of [{ status }, { spec: {}, status }]) {
    assert.throws(() => patchResource(fields), {
      name: "TypeError",
      message:
        /its status is written by patchStatus\(\) or patchResourceAndStatus\(\): received (spec, )?status$/,
    });
  }
  patchResource({ metadata: { name: "a" }, spec: {}, status });
  patchResource({ spec: {}, status: undefined });
});
