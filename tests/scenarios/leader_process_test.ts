import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { compareResourceVersions } from "../../core/api/resource_version.ts";
import { ApiServer } from "../../core/apiserver/server.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import { Lease } from "../../core/kinds/mod.ts";
import { Gadget } from "../support/operator_case.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

/** Who held the lease, and who wrote, in the order of the server. */
class Chronicle {
  readonly holders: { version: string; who: string }[] = [];
  readonly writers: { version: string; who: string }[] = [];
  readonly #ending = new AbortController();
  readonly #watching: Promise<unknown>;

  constructor(server: ApiServer) {
    const { client } = server;
    const { signal } = this.#ending;
    const leases = async () => {
      for await (const { object } of client.watch(Lease, { signal })) {
        const who = (object as Lease).spec?.holderIdentity ?? "";
        const version = object.metadata.resourceVersion ?? "";
        if (this.holders.at(-1)?.who !== who) {
          this.holders.push({ version, who });
        }
      }
    };
    const gadgets = async () => {
      for await (const { object } of client.watch(Gadget, { signal })) {
        const who = (object as Gadget).status?.value;
        const version = object.metadata.resourceVersion ?? "";
        if (who !== undefined) this.writers.push({ version, who });
      }
    };
    this.#watching = Promise.allSettled([leases(), gadgets()]);
  }

  /** How often somebody has written. */
  writesOf(who: string): number {
    return this.writers.filter((writer) => writer.who === who).length;
  }

  /** The writes of those who did not hold the lease at that moment. */
  get fouls(): string[] {
    return this.writers.filter(({ version, who }) => {
      const holder = this.holders.findLast((holder) =>
        compareResourceVersions(holder.version, version) < 0
      );
      return holder?.who !== who;
    }).map(({ version, who }) => `${who} at ${version}`);
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
  }
}

test(
  "Of two processes only the leader writes, through stops and ends [LeaderElectionE2E]",
  { timeout: 120_000 },
  async () => {
    const server = await ApiServer.start();
    const kubeconfig = join(temporaryFolder(), "kubeconfig");
    await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
    await installCrd(server.client, Gadget);
    await server.client.create(Gadget, {
      metadata: { namespace: "default", name: "a" },
      spec: { value: "first" },
    });
    const chronicle = new Chronicle(server);
    const start = (identity: string) =>
      new Program([...runtimeCommand(), "tests/scenarios/leader_operator.ts"], {
        env: { KUBECONFIG: kubeconfig, IDENTITY: identity },
      });
    const writesAgain = (who: string) => {
      const before = chronicle.writesOf(who);
      return until(
        `${who} writes`,
        () => chronicle.writesOf(who) > before + 3,
        { within: 30_000 },
      );
    };
    const a = start("a");
    let b: Program | undefined;
    try {
      await writesAgain("a");
      b = start("b");

      // The leader stands still for longer than its lease, and wakes up again.
      a.signal("SIGSTOP");
      await writesAgain("b");
      a.signal("SIGCONT");
      await writesAgain("b");

      // The leader ends in order, and is followed at once.
      assert.equal(await b.end("SIGTERM"), 0);
      await writesAgain("a");
      assert.deepEqual(chronicle.fouls, []);
      assert.equal(await a.end("SIGTERM"), 0);
    } finally {
      await a.kill();
      await b?.kill();
      await chronicle.end();
      await server.stop();
    }
  },
);
