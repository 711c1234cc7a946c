import assert from "node:assert/strict";
import { test } from "node:test";
import { type TestCluster, VirtualClock, withTestCluster } from "@coracle/dev";
import { installCrd } from "@coracle/operator/crd";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import type { RestartOptions } from "../../dev/apiserver/faults/faults.ts";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";
import { removesDefinitions } from "../support/remove_objects.ts";
import { Greeting, greetingOperator, Greetings } from "./greeting_operator.ts";

removesDefinitions(Greeting);

async function away(
  cluster: TestCluster,
  options: RestartOptions,
): Promise<void> {
  await cluster.complete(cluster.faults.restart(options));
}

/** A test of the operator that just works, on a clock of its own. */
function greetingTest(
  title: string,
  body: (cluster: TestCluster) => Promise<void>,
  options: { readonly skip?: string | false } = {},
): void {
  test(title, options, () =>
    withTestCluster({
      kinds: [Greeting],
      operator: greetingOperator,
      clock: new VirtualClock(),
    }, body)());
}

greetingTest(
  "An operator catches up after an outage of 30 s",
  async (cluster) => {
    const greetings = new Greetings(cluster);
    await greetings.ask("a", "before");
    await greetings.says("a", "before");
    await away(cluster, { downFor: 30_000 });
    await greetings.ask("a", "after");
    await greetings.ask("b", "new");
    await greetings.says("a", "after");
    await greetings.says("b", "new");
  },
);

greetingTest(
  "An operator drops objects of a server that lost its data",
  async (cluster) => {
    const { client, namespace } = cluster;
    const greetings = new Greetings(cluster);
    await greetings.ask("a", "before");
    await greetings.ask("gone", "before");
    await greetings.says("gone", "before");
    await away(cluster, { downFor: 30_000, keepData: false });
    // Nothing is left, not even the kind: it is made again, as a cluster
    // that is restored from its manifests would be.
    await client.create(Namespace, { metadata: { name: namespace } });
    const { clock } = cluster;
    await cluster.complete(installCrd(client, Greeting, { clock }));
    await greetings.ask("a", "again");
    await greetings.says("a", "again");
    const key = { namespace, name: "gone" };
    assert.equal(await client.find(Greeting, key), undefined);
    assert.equal(await client.find(ConfigMap, key), undefined);
  },
  { skip: ON_REAL_CLUSTER && "a real cluster does not lose its data" },
);

greetingTest(
  "An operator keeps working while its watches are cut repeatedly",
  async (cluster) => {
    const greetings = new Greetings(cluster);
    for (let round = 0; round < 10; round++) {
      cluster.faults.cutWatches();
      await greetings.ask("a", `round ${round}`);
      await greetings.says("a", `round ${round}`);
    }
  },
);
