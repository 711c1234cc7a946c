import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Client, configFromText } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import { Gadget } from "../support/operator_fixture.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import {
  type ScenarioCluster,
  startScenarioCluster,
} from "../support/scenario_cluster.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

/** Milliseconds that one step may take on a busy machine. */
const STEP_LIMIT_MS = 40_000;

test("A killed operator starts warm: it lists nothing and runs what changed", async () => {
  const cluster = await startScenarioCluster() as ScenarioCluster;
  const folder = join(temporaryFolder(), "snapshots");
  const client = new Client(
    await configFromText(await readFile(cluster.kubeconfig, "utf8")),
  );
  const key = (name: string) => ({ namespace: "default", name });
  const create = (name: string) =>
    client.create(Gadget, { metadata: key(name), spec: { value: "1" } });
  const change = (value: string) =>
    client.patch(Gadget, key("changed"), { spec: { value } });
  const start = () =>
    new Program([...runtimeCommand(), "tests/scenarios/warm_operator.ts"], {
      env: { KUBECONFIG: cluster.kubeconfig, SNAPSHOTS: folder },
    });
  const written = () => {
    const [name] = readdirSync(folder).filter((name) =>
      /^gadget_.*\.snapshot$/.test(name)
    );
    return name === undefined ? 0 : statSync(join(folder, name)).mtimeMs;
  };
  /** Waits until a snapshot is written that was not there before. */
  const writes = async (before: number) => {
    await until("a snapshot is written", () => written() > before, {
      within: STEP_LIMIT_MS,
    });
  };
  let program: Program | undefined;
  try {
    await installCrd(client, Gadget);
    for (const name of ["idle", "changed", "deleted"]) await create(name);
    program = start();
    for (const name of ["idle", "changed", "deleted"]) {
      await program.says(new RegExp(`runs ${name} 1`), STEP_LIMIT_MS);
    }
    await writes(0);
    const before = written();
    await change("2");
    await program.says(/runs changed 2/, STEP_LIMIT_MS);
    await writes(before);
    await program.end("SIGKILL");
    assert.match(program.output, /^lists$/m);

    await change("3");
    await client.delete(Gadget, key("deleted"));
    await create("new");
    program = start();
    await program.says(/runs changed 3/, STEP_LIMIT_MS);
    await program.says(/runs new 1/, STEP_LIMIT_MS);
    // Whatever else was to run has run before this.
    await create("last");
    await program.says(/runs last 1/, STEP_LIMIT_MS);
    assert.doesNotMatch(program.output, /^lists$|runs (idle|deleted)/m);
    assert.equal(await program.end("SIGTERM"), 0);
  } finally {
    await program?.kill();
    for (const name of ["idle", "changed", "deleted", "new", "last"]) {
      await client.delete(Gadget, key(name)).catch(() => {});
    }
    await client.close();
    await cluster.stop();
  }
});
