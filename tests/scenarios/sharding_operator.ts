/**
 * Operator that shares its gadgets with other replicas and records when its runs
 * begin and end. The runs ignore their abort signal: others must wait for them.
 *
 * Half of the time of a gadget is a run, so that a takeover meets many runs; few
 * requests per second, so that leases are renewed in time on a busy machine.
 */
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { Operator, silentLogger } from "@coracle/operator/core";
import { Gadget } from "../support/operator_fixture.ts";
import { RunJournal } from "../support/run_journal.ts";

const { IDENTITY = "", JOURNAL = "" } = process.env;
const journal = new RunJournal(JOURNAL);
let runs = 0;

const operator = new Operator({
  logger: silentLogger,
  sharding: {
    name: "shards",
    namespace: "default",
    identity: IDENTITY,
    leaseDuration: "4s",
    renewDeadline: "3s",
    retryPeriod: "400ms",
  },
});

operator.register(Gadget, {
  async reconcile({ metadata: { namespace, name } }, { client }) {
    const run = `${IDENTITY}:${process.pid}-${++runs}`;
    const write = (what: string) =>
      client.status.patch(Gadget, { namespace, name }, {
        status: { value: `${run}:${what}` },
      });
    journal.note("begins", run, name);
    try {
      await write("begins");
      await setTimeout(1_000);
      await write("ends");
    } finally {
      journal.note("ends", run, name);
    }
  },
}, {
  maxInterval: "1s",
  concurrency: 100,
  retry: { initial: "100ms", maxAttempts: Infinity },
});

await operator.run();
