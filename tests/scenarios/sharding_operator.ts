/**
 * An operator that shares its gadgets, and notes when its runs begin and end. They
 * do not care whether they are aborted: others must wait for their end.
 */
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
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
    leaseDuration: "3s",
    renewDeadline: "2s",
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
      await setTimeout(500);
      await write("ends");
    } finally {
      journal.note("ends", run, name);
    }
  },
}, {
  maxInterval: "500ms",
  concurrency: 100,
  retry: { initial: "100ms", maxAttempts: Infinity },
});

await operator.run();
