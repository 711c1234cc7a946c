import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { coracle, Program, runtimeCommand } from "../support/program.ts";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

const Greeting = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Greeting",
  plural: "greetings",
  scope: "Namespaced",
});

/** A server process with its data in a folder, on a port that it keeps. */
class ServerProcess {
  readonly kubeconfig: string;
  readonly #folder: string;
  #port = 0;
  #program: Program | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    this.kubeconfig = join(folder, "kubeconfig");
  }

  async start(): Promise<void> {
    this.#program = new Program(coracle(
      "apiserver",
      `--port=${this.#port}`,
      `--kubeconfig=${this.kubeconfig}`,
      `--data=${join(this.#folder, "data")}`,
    ));
    const [, port] = await this.#program.says(/Serving on https:\S+:(\d+)/);
    this.#port = Number(port);
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    await this.#program?.end(signal);
  }

  async kill(): Promise<void> {
    await this.#program?.kill();
  }
}

test("An operator survives a killed API server that loses nothing", async () => {
  const folder = temporaryFolder();
  const server = new ServerProcess(folder);
  await server.start();
  assert.equal(statSync(server.kubeconfig).mode & 0o777, 0o600);
  const { kubeconfig } = server;
  const operator = new Program([...runtimeCommand(), "examples/greeting.ts"], {
    env: { KUBECONFIG: kubeconfig },
  });
  const client = new Client(await loadConfig({ kubeconfig }));
  const ask = (name: string, to: string) =>
    client.apply(Greeting, {
      metadata: { namespace: "default", name },
      spec: { name: to },
    });
  const says = (name: string, text: string) =>
    until(`${name} says ${text}`, async () => {
      const found = await client.find(ConfigMap, {
        namespace: "default",
        name,
      });
      return found?.data?.["text"] === text;
    }, { within: 30_000 });
  try {
    await operator.says(/Operator started/);
    await ask("a", "Ann");
    await says("a", "Hello, Ann.");
    for (let round = 1; round <= partOfRounds(2); round++) {
      await server.end("SIGKILL");
      await operator.says(/ECONNREFUSED|ECONNRESET|refused|closed|reset/i);
      await server.start();
      await says("a", round === 1 ? "Hello, Ann." : "Hello, Bob.");
      await ask("a", "Bob");
      await ask(`new-${round}`, "Eve");
      await says("a", "Hello, Bob.");
      await says(`new-${round}`, "Hello, Eve.");
    }
    assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
  } finally {
    await client.close();
    await operator.kill();
    await server.kill();
  }
});
