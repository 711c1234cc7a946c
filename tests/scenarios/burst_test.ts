import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { byFunction } from "../../core/controller/watch/mappers.ts";
import { watch } from "../../core/controller/watch/watch_source.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { blockThread } from "../support/block_thread.ts";
import { PROJECT } from "../support/child_process.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

const SERVER = join(PROJECT, "tests", "scenarios", "burst_server.ts");
/** Duration of a run, in milliseconds; it lets nothing else happen. */
const BLOCKED_MS = 700;

test("Operator runs few times for a burst of events during a blocking run", async () => {
  const folder = temporaryFolder();
  const kubeconfig = join(folder, "kubeconfig");
  const written = join(folder, "written");
  const program = new Program([
    ...runtimeCommand(),
    SERVER,
    kubeconfig,
    written,
  ]);
  let client: Client | undefined;
  let operator: Operator | undefined;
  try {
    await program.says(/^ready$/m);
    client = new Client(await loadConfig({ kubeconfig }));
    operator = new Operator({
      client,
      logger: silentLogger,
      probes: undefined,
    });
    const runs: number[] = [];
    let isBurst = false;
    operator.register(ConfigMap, {
      reconcile(_policy, ctx) {
        if (!isBurst) return;
        runs.push(ctx.cause.events);
        // The events of the burst come during its first run.
        blockThread(BLOCKED_MS);
        while (!existsSync(written)) blockThread(5);
      },
    }, {
      labelSelector: "policy=yes",
      sources: [
        watch(ConfigMap, {
          labelSelector: "part=yes",
          mapper: byFunction(() => ["default/policy"]),
        }),
      ],
    });
    await operator.start();
    isBurst = true;
    process.kill(program.pid, "SIGUSR2");
    const events = () => runs.reduce((sum, count) => sum + count, 0);
    await until("the burst is reconciled", () => events() >= 1_000, {
      within: 60_000,
    });
    // A run takes what has arrived: about 130 events, the 64 KiB that a socket
    // buffers. On a busy machine the server sends smaller parts.
    assert.ok(runs.length <= 50, `events of the runs: ${runs}`);
  } finally {
    await operator?.stop();
    await client?.close();
    await program.kill();
  }
});
