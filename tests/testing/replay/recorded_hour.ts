import type { Operator, OperatorOptions } from "@coracle/operator";
import { ConfigMap, Secret, Service } from "@coracle/operator/kinds";
import { TestCluster } from "../../../dev/testing/test_cluster.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import { Kiosk, Shop } from "./shop.ts";

/** Secret text that no recording may have. */
export const SECRET = "open-sesame-please";

/** What happens in a recorded time. */
export interface RecordedTime {
  readonly operator: (options: OperatorOptions) => Operator;
  readonly shops: number;
  readonly kiosks: number;
  readonly minutes: number;
  /** Options of a recording. */
  readonly record: (replica: string) => OperatorOptions["record"];
}

/**
 * Records an operator while objects change, the server fails and, in the middle,
 * another replica takes over.
 */
export async function recordTime(
  { operator, shops, kiosks, minutes, record }: RecordedTime,
): Promise<void> {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    kinds: [Shop, Kiosk],
    namespace: "default",
    server: { seed: 7 },
  });
  const { client, namespace, complete, faults } = cluster;
  const start = async (identity: string) => {
    const replica = operator({
      client: cluster.operatorClient,
      clock,
      logger: cluster.logger,
      leaderElection: {
        ...{ name: "shops", namespace, identity },
        // Renewals would take most of the time.
        ...{ leaseDuration: "6m", renewDeadline: "4m", retryPeriod: "1m" },
      },
      record: record(identity),
      reconnect: { minWatchTimeout: 86_400_000 },
    });
    await complete(replica.start());
    return replica;
  };
  try {
    await client.create(ConfigMap, {
      metadata: { namespace, name: "palette" },
      data: { base: "white" },
    });
    await client.create(Secret, {
      metadata: { namespace, name: "key" },
      stringData: { key: SECRET },
    });
    for (let i = 0; i < shops; i++) {
      await client.create(Shop, {
        metadata: { namespace, name: `shop-${i}` },
        spec: { color: "blue", fails: i % 10 === 0 ? 2 : 0 },
      });
    }
    for (let i = 0; i < kiosks; i++) {
      await client.create(Kiosk, {
        metadata: { namespace, name: `kiosk-${i}` },
        spec: { goods: "tea" },
      });
    }
    const rules = [
      { status: 500 },
      { conflict: true },
      { reset: "request" },
      { reset: "answer" },
    ] as const;
    for (const effect of rules) {
      const verb = ["create", "update", "patch", "delete"];
      faults.add({ effect, verb, namespace, probability: 0.01 });
    }
    let leader = await start("a");
    for (let minute = 0; minute < minutes; minute++) {
      await clock.advance("1m");
      const name = `shop-${minute % shops}`;
      const spec = { color: `color-${minute}` };
      const isDeletion = minute % 7 === 6;
      await (isDeletion
        ? client.delete(Shop, { namespace, name })
        : client.patch(Shop, { namespace, name }, { spec })).catch(() => {});
      const service = { namespace, name: `shop-${(minute + 3) % shops}` };
      if (minute % 5 === 4) {
        await client.delete(Service, service).catch(() => {});
      }
      if (minute === Math.floor(minutes / 2)) {
        const next = await start("b");
        await complete(leader.stop());
        leader = next;
      }
    }
    await complete(leader.stop());
  } finally {
    await cluster.stop();
  }
}
