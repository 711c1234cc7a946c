import {
  defineKind,
  Operator,
  type OperatorOptions,
  patchStatus,
} from "@coracle/operator";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";

const Reminder = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Reminder",
  spec: z.object({ hours: z.number().min(0) }),
  status: z.object({ rung: z.boolean() }).partial(),
});

function reminders(options: OperatorOptions): Operator {
  const operator = new Operator(options);
  operator.register(Reminder, {
    reconcile({ metadata, spec }, { clock }) {
      const made = Date.parse(metadata.creationTimestamp ?? "");
      const left = made + spec.hours * 3_600_000 - clock.wallTime();
      return left <= 0
        ? patchStatus({ rung: true })
        : patchStatus({ rung: false }).rescheduleAfter(left);
    },
  });
  return operator;
}

test(
  "A reminder is due at its time, despite an outage",
  withTestCluster(
    { kinds: [Reminder], operator: reminders, clock: new VirtualClock() },
    async (cluster) => {
      const { client, namespace, server, clock } = cluster;
      const key = { namespace, name: "tea" };
      const rung = async () => (await client.get(Reminder, key)).status?.rung;
      await client.create(Reminder, { metadata: key, spec: { hours: 8 } });
      await cluster.until(async () => await rung() === false);

      await cluster.complete(server!.faults.restart({ downFor: 30_000 }));
      await cluster.until(rung, { within: "8h" });
      assert(clock.now() >= 8 * 3_600_000);
    },
  ),
);
