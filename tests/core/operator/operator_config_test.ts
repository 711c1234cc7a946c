import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  checkControllerNames,
  configuredController,
  configuredOperator,
  loadOperatorConfig,
  type OperatorConfig,
} from "../../../core/operator/operator_config.ts";

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

test("loadOperatorConfig reads file and environment, which counts more [ConfigLoaderTest]", async () => {
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
  const options = { retry: { jitter: 0, maxAttempts: 1 }, timeout: "1s" };
  assert.deepEqual(configuredController("web-page", options, config), {
    timeout: "1s",
    retry: { jitter: 0, maxAttempts: 7, initial: 1_000 },
    maxInterval: false,
    namespaces: ["x", "y"],
    generationAware: false,
  });
  assert.deepEqual(configuredController("other", options, config), options);
  checkControllerNames(["web-page", "other"], config);
});

test("loadOperatorConfig without file and variables changes nothing", async () => {
  const config = await load(undefined);
  assert.deepEqual(configuredOperator({ config }), { config });
  checkControllerNames([], config);
  assert.deepEqual(configuredController("a", {}, undefined), {});
});

test("loadOperatorConfig refuses what it does not know, with what was meant", async () => {
  const files: [string, RegExp][] = [
    ["shutdownGrase: 1s", /did you mean "shutdownGrace"/],
    ["shutdownGrace: soon", /operator\.yaml: shutdownGrace.*"soon"/s],
    ["probes: { port: x }", /probes\.port.*a number/],
    [
      "controllers: { a: { retry: { attempts: 1 } } }",
      /did you mean "retry.maxAttempts"|no option "retry.attempts"/,
    ],
    ["controllers: { a: 1 }", /must have named options/],
    ["[1]", /must have named options/],
    ["a: [", /must be YAML or JSON/],
    ["namespaces: { a: 1 }", /"all", "current" or a list/],
  ];
  for (const [content, message] of files) {
    await assert.rejects(load(content), message);
  }
  await assert.rejects(
    load(undefined, { CORACLE_OPERATOR_SHUTDOWN_GRASE: "1s" }),
    /did you mean CORACLE_OPERATOR_SHUTDOWN_GRACE/,
  );
  await assert.rejects(
    loadOperatorConfig({ file: "/nowhere/x.yaml", environment: {} }),
    /Cannot read the configuration.*nowhere/,
  );
});

test("checkControllerNames refuses what concerns no controller", async () => {
  const file = await load("controllers: { webpge: {} }");
  assert.throws(() => checkControllerNames(["webpage"], file), /mean webpage/);
  const variable = await load(undefined, {
    CORACLE_CONTROLLER_WEBPAGE_RETRYS: "1",
  });
  assert.throws(
    () => checkControllerNames(["webpage"], variable),
    /CORACLE_CONTROLLER_WEBPAGE_RETRYS/,
  );
});
