import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  type ControllerOptions,
  loadOperatorConfig,
  Operator,
  type OperatorConfig,
  untyped,
} from "@coracle/operator/core";
import {
  checkControllerNames,
  configuredController,
  configuredOperator,
} from "../../../core/operator/operator_config.ts";

const KIND = untyped({ group: "", version: "v1", kind: "ConfigMap" });

/** Loads a configuration from the text of a file and an environment. */
async function load(
  content: string | undefined,
  environment: Record<string, string> = {},
): Promise<OperatorConfig> {
  if (content === undefined) return await loadOperatorConfig({ environment });
  const folder = await mkdtemp(join(tmpdir(), "coracle-config-"));
  try {
    const file = join(folder, "operator.yaml");
    await writeFile(file, content);
    return await loadOperatorConfig({
      environment: { ...environment, CORACLE_CONFIG: file },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Options of a controller of this name with the configuration. */
function configured(
  controller: string,
  options: ControllerOptions,
  config: OperatorConfig | undefined,
): ControllerOptions {
  const { name: _, ...rest } = configuredController(
    KIND,
    { ...options, name: controller },
    config,
  );
  return rest;
}

test("loadOperatorConfig reads a file, overridden by the environment [ConfigLoaderTest]", async () => {
  const config = await load(
    `
shutdownGrace: 30s
namespaces: [a, b]
leaderElection: { name: lock, leaseDuration: 20s }
controllers:
  web-page:
    retry: { maxAttempts: 3, initial: 1s }
    maxInterval: false
`,
    {
      CORACLE_OPERATOR_SHUTDOWN_GRACE: "5000",
      CORACLE_OPERATOR_LEADER_ELECTION_LEASE_DURATION: "1m",
      CORACLE_OPERATOR_PROBES_PORT: "8080",
      CORACLE_CONTROLLER_WEB_PAGE_RETRY_MAX_ATTEMPTS: "7",
      CORACLE_CONTROLLER_WEB_PAGE_NAMESPACES: "x,y",
      CORACLE_CONTROLLER_WEB_PAGE_GENERATION_AWARE: "false",
      PATH: "/bin",
    },
  );
  assert.deepEqual(configuredOperator({ concurrency: 5, config }), {
    concurrency: 5,
    config,
    shutdownGrace: 5_000,
    namespaces: ["a", "b"],
    leaderElection: { name: "lock", leaseDuration: 60_000 },
    probes: { port: 8080 },
  });
  const options = {
    retry: { jitter: 0, maxAttempts: 1 },
    timeout: "1s",
  } as const;
  assert.deepEqual(configured("web-page", options, config), {
    timeout: "1s",
    retry: { jitter: 0, maxAttempts: 7, initial: 1_000 },
    maxInterval: false,
    namespaces: ["x", "y"],
    generationAware: false,
  });
  assert.deepEqual(configured("other", options, config), options);
  checkControllerNames(["web-page", "other"], config);
});

test("loadOperatorConfig reads every option that a deployment may set [J49]", async () => {
  const config = await load(
    `
concurrency: 20
startErrors: wait
syncTimeout: 30s
cache: { budget: 96MiB }
sharding: { name: shards, retryPeriod: 1s }
probes: { port: 8080, host: 127.0.0.1, debug: true }
controllers:
  a:
    labelSelector: app=a
    fieldSelector: metadata.name=a
    shard: { index: 0, count: 2 }
    finalizer: example.com/a
    requestAnnotations: [example.com/request]
    defaultFilters: false
    pauseAnnotation: false
    concurrency: 3
    timeout: 1m
    allEvents: true
    fieldManager: manager
    serverSideApply: false
    install: true
    cache: { metadataOnly: true, bounded: true }
    retry: { initial: 1s, multiplier: 2, max: 1m, maxAttempts: 9, jitter: 0 }
    rateLimit: { limit: 5, period: 1s }
    throughput: { limit: 0.5, period: 1s, burst: 2 }
`,
  );
  assert.deepEqual(configuredOperator({ config }), {
    config,
    concurrency: 20,
    startErrors: "wait",
    syncTimeout: 30_000,
    cache: { budget: "96MiB" },
    sharding: { name: "shards", retryPeriod: 1_000 },
    probes: { port: 8080, host: "127.0.0.1", debug: true },
  });
  assert.deepEqual(configured("a", {}, config), {
    labelSelector: "app=a",
    fieldSelector: "metadata.name=a",
    shard: { index: 0, count: 2 },
    finalizer: "example.com/a",
    requestAnnotations: ["example.com/request"],
    defaultFilters: false,
    pauseAnnotation: false,
    concurrency: 3,
    timeout: 60_000,
    allEvents: true,
    fieldManager: "manager",
    serverSideApply: false,
    install: true,
    cache: { metadataOnly: true, bounded: true },
    retry: {
      initial: 1_000,
      multiplier: 2,
      max: 60_000,
      maxAttempts: 9,
      jitter: 0,
    },
    rateLimit: { limit: 5, period: 1_000 },
    throughput: { limit: 0.5, period: 1_000, burst: 2 },
  });
});

test("loadOperatorConfig switches off what the program has switched on [J37]", async () => {
  const config = await load("leaderElection: false", {
    CORACLE_OPERATOR_PROBES: "false",
    CORACLE_CONTROLLER_A_RETRY: "false",
    CORACLE_CONTROLLER_A_RATE_LIMIT: "false",
  });
  const program = {
    leaderElection: { name: "lock" },
    probes: { port: 1 },
    config,
  };
  assert.deepEqual(configuredOperator(program), {
    config,
    leaderElection: undefined,
    probes: undefined,
  });
  const options = { retry: { jitter: 0 }, rateLimit: { limit: 1 } };
  assert.deepEqual(configured("a", options, config), {
    retry: false,
    rateLimit: undefined,
  });
  await assert.rejects(
    load("leaderElection: true"),
    /"leaderElection" must be false, or have options of its own/,
  );
});

test("loadOperatorConfig rejects leader election without a Lease name [J51]", async () => {
  const config = await load("leaderElection: { namespace: here }");
  assert.throws(
    () => new Operator({ config }),
    /an operator, leaderElection: "name" must be .* not empty: received noth/,
  );
});

test("configuredController distinguishes controllers with a common name prefix [J50]", async () => {
  const config = await load(undefined, {
    CORACLE_CONTROLLER_WEB_PAGE_CONCURRENCY: "2",
    CORACLE_CONTROLLER_WEB_TIMEOUT: "1s",
  });
  checkControllerNames(["web", "web-page"], config);
  assert.deepEqual(configured("web", {}, config), { timeout: 1_000 });
  assert.deepEqual(configured("web-page", {}, config), {
    concurrency: 2,
  });
});

test("loadOperatorConfig without file and variables changes nothing [J48]", async () => {
  const config = await load(undefined);
  assert.deepEqual(configuredOperator({ config }), { config });
  checkControllerNames(["web"], config);
  assert.deepEqual(configured("a", {}, undefined), {});
});

test("loadOperatorConfig rejects unknown settings and suggests the nearest", async () => {
  const files: [string, RegExp][] = [
    ["shutdownGrase: 1s", /did you mean "shutdownGrace"/],
    ["controller: {}", /did you mean "controllers"/],
    [
      "shutdownGrace: soon",
      /operator\.yaml: "shutdownGrace" must be a duration.*"soon"/s,
    ],
    [
      "probes: { port: x }",
      /probes\.port" must be a number: received "x"/,
    ],
    [
      "controllers: { a: { retry: { attempts: 1 } } }",
      /did you mean "retry.maxAttempts"|no option "retry.attempts"/,
    ],
    ["probes: { debug: yeah }", /probes\.debug" must be true or false/],
    ["controllers: { a: 1 }", /must have named options/],
    ["[1]", /must have named options/],
    ["a: [", /must be YAML or JSON/],
    ["retry: {{ .Values.retry }}", /must be YAML or JSON: .*keys must be str/],
    [
      "concurrency: -1",
      /operator\.yaml: "concurrency" must be a number above 0/,
    ],
    ["namespaces: { a: 1 }", /"all", "current" or a list/],
  ];
  for (const [content, message] of files) {
    await assert.rejects(load(content), message);
  }
  for (const text of ["", " ", "x", "1x", "NaN"]) {
    await assert.rejects(
      load(undefined, { CORACLE_OPERATOR_PROBES_PORT: text }),
      /CORACLE_OPERATOR_PROBES_PORT.* must be a number/,
    );
  }
  await assert.rejects(
    load(undefined, { CORACLE_OPERATOR_SHUTDOWN_GRACE: "soon" }),
    /of the environment: "CORACLE_OPERATOR_SHUTDOWN_GRACE" must be a duration/,
  );
  await assert.rejects(
    load(undefined, { CORACLE_OPERATOR_CACHE_BUDGET: "much" }),
    /of the environment: "CORACLE_OPERATOR_CACHE_BUDGET" must be .*: received "much"/,
  );
  await assert.rejects(
    loadOperatorConfig({ file: "/", environment: {} }),
    /^Error: Cannot read the configuration \/: /,
  );
  await assert.rejects(
    load(undefined, { CORACLE_OPERATOR_SHUTDOWN_GRASE: "1s" }),
    /did you mean CORACLE_OPERATOR_SHUTDOWN_GRACE/,
  );
  await assert.rejects(
    loadOperatorConfig({ file: "/nowhere/x.yaml", environment: {} }),
    /Cannot read the configuration.*nowhere/,
  );
});

test("loadOperatorConfig refuses files that are too large or never end", async () => {
  await assert.rejects(
    load(`# ${"x".repeat(1 << 20)}`),
    /operator\.yaml: it must have at most 1048576 bytes: received more$/,
  );
  await assert.rejects(
    load(`namespaces: [${"a,".repeat(200_001)}a]`),
    /at most 200000 line breaks and commas: received 200001$/,
  );
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (const [name, of] of ["ba", "cb", "dc", "ed"]) {
    bomb.push(`${name}: &${name} [${Array(10).fill(`*${of}`).join(", ")}]`);
  }
  await assert.rejects(
    load(bomb.join("\n")),
    /must be YAML or JSON: received /,
  );
  await assert.rejects(
    load("shutdownGrace: 1s\nshutdownGrace: 2s"),
    /must be YAML or JSON: received Map keys must be unique at line 2, column 1$/,
  );
});

test("loadOperatorConfig names the part of a file that has no named options", async () => {
  const parts: readonly (readonly [string, RegExp])[] = [
    ["[1]", /: the document must have named options: received an array$/],
    ["controllers: 5", /: "controllers" must have named options: received 5$/],
    [
      "controllers: { web: x }",
      /: "controllers\.web" must have named options: received "x"$/,
    ],
  ];
  for (const [content, message] of parts) {
    await assert.rejects(load(content), (error: Error) => {
      assert.match(error.message, /^Cannot read the configuration .*\.yaml: /);
      assert.match(error.message, message);
      return error instanceof TypeError;
    });
  }
});

test("checkControllerNames rejects settings for unknown controllers", async () => {
  const file = await load("controllers: { webpge: {} }");
  assert.throws(() => checkControllerNames(["webpage"], file), /mean webpage/);
  const kind = await load("controllers: { WebPage: {} }");
  assert.throws(() => checkControllerNames(["webpage"], kind), /mean webpage/);
  await assert.rejects(load("controllers: []"), /must have named options/);
  const misspelt = await load(undefined, {
    CORACLE_CONTROLLER_ORDRE_CONCURRENCY: "1",
  });
  assert.throws(
    () => checkControllerNames(["shop", "order"], misspelt),
    /did you mean CORACLE_CONTROLLER_ORDER_CONCURRENCY/,
  );
  const variable = await load(undefined, {
    CORACLE_CONTROLLER_WEBPAGE_RETRYS: "1",
  });
  assert.throws(
    () => checkControllerNames(["webpage"], variable),
    /CORACLE_CONTROLLER_WEBPAGE_RETRYS/,
  );
});

test("checkControllerNames needs a controller, and ignores settings of the operator", async () => {
  const config = await load(undefined, { CORACLE_OPERATOR_CONCURRENCY: "1" });
  assert.throws(() => checkControllerNames([], config), /it has no controller/);
  assert.throws(() => checkControllerNames([], undefined), /has no controller/);
  checkControllerNames(["web"], config);
});

test("configuredController takes the name of the kind in lower case", async () => {
  const config = await load("controllers: { configmap: { timeout: 2s } }", {
    CORACLE_CONTROLLER_CONFIGMAP_CONCURRENCY: "2",
  });
  checkControllerNames(["configmap"], config);
  assert.deepEqual(configuredController(KIND, {}, config), {
    timeout: 2_000,
    concurrency: 2,
  });
});

test("loadOperatorConfig reads words, and an empty file", async () => {
  assert.deepEqual((await load("")).operator, {});
  for (const namespaces of ["all", "current"]) {
    const { operator } = await load(`namespaces: ${namespaces}`);
    assert.deepEqual(operator, { namespaces });
    const environment = { CORACLE_OPERATOR_NAMESPACES: namespaces };
    assert.deepEqual((await load(undefined, environment)).operator, {
      namespaces,
    });
  }
});

test("loadOperatorConfig leaves the names of controllers to the program", async () => {
  await assert.rejects(
    load("controllers: { web: { name: other } }"),
    /there is no option "name"/,
  );
});

test("loadOperatorConfig refuses names that every object has", async () => {
  for (
    const text of [
      "constructor: 5",
      "toString: { valueOf: 1 }",
      "controllers: { web: { hasOwnProperty: 1 } }",
    ]
  ) {
    await assert.rejects(load(text), /^TypeError: Cannot use .*no option "/);
  }
});

test("loadOperatorConfig ignores the variables that a pod has of Services", async () => {
  const ofService = (service: string) => ({
    [`${service}_SERVICE_HOST`]: "10.0.0.1",
    [`${service}_SERVICE_PORT`]: "443",
    [`${service}_SERVICE_PORT_WEB_HOOK`]: "443",
    [`${service}_PORT`]: "tcp://10.0.0.1:443",
    [`${service}_PORT_443_TCP`]: "tcp://10.0.0.1:443",
    [`${service}_PORT_443_TCP_PROTO`]: "tcp",
    [`${service}_PORT_443_TCP_PORT`]: "443",
    [`${service}_PORT_443_TCP_ADDR`]: "10.0.0.1",
  });
  const environment = {
    ...ofService("CORACLE_OPERATOR"),
    ...ofService("CORACLE_OPERATOR_PROBES"),
    ...ofService("CORACLE_CONTROLLER_WEB"),
  };
  const config = await loadOperatorConfig({ environment });
  assert.deepEqual(config.operator, {});
  checkControllerNames(["web"], config);
  const own = { ...environment, CORACLE_OPERATOR_PROBES_PORT: "8081" };
  assert.deepEqual((await loadOperatorConfig({ environment: own })).operator, {
    probes: { port: 8081 },
  });
  await assert.rejects(
    loadOperatorConfig({
      environment: { CORACLE_OPERATOR_PORT: "tcp://10.0.0.1:443" },
    }),
    /no option has this variable/,
  );
});

test("loadOperatorConfig ignores variables without a value", async () => {
  const environment = {
    CORACLE_OPERATOR_SHUTDOWN_GRACE: undefined,
    CORACLE_OPERATOR_OTHER: undefined,
  };
  assert.deepEqual((await loadOperatorConfig({ environment })).operator, {});
});

test("a configuration reaches options at any depth, and keeps those beside them", async () => {
  const config = await load("probes: { metrics: { port: 9443 } }", {
    CORACLE_OPERATOR_PROBES_METRICS_SECURE: "true",
    CORACLE_OPERATOR_CACHE_SNAPSHOT_PATH: "/var/cache",
    CORACLE_OPERATOR_LOG_SAMPLING: "false",
    CORACLE_OPERATOR_LOG_LEVEL: "debug",
  });
  const { probes, cache, log } = configuredOperator({
    config,
    probes: { port: 8080, metrics: { secure: false, host: "127.0.0.1" } },
  });
  assert.deepEqual(probes, {
    port: 8080,
    metrics: { secure: true, port: 9443, host: "127.0.0.1" },
  });
  assert.deepEqual(cache, { snapshot: { path: "/var/cache" } });
  assert.deepEqual(log, { level: "debug", sampling: false });
});
