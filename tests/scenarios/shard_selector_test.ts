import assert from "node:assert/strict";
import { type ControllerHandle, patchStatus } from "@coracle/operator/core";
import { inShard, parseShardSelector } from "../../core/api/shard_selector.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { shardSelector } from "../support/shard_selector.ts";

/** Two operators, each with half of the objects. */
async function halves(
  fixture: OperatorFixture,
): Promise<readonly ControllerHandle<Gadget>[]> {
  const controllers: ControllerHandle<Gadget>[] = [];
  for (const index of [0, 1]) {
    const operator = fixture.operator();
    controllers.push(operator.register(Gadget, {
      reconcile: ({ spec }) => patchStatus({ value: `${spec.value} ${index}` }),
    }, { shardSelector: shardSelector({ index, count: 2 }) }));
    await fixture.start(operator);
  }
  return controllers;
}

/** Creates, changes and deletes objects, which must reach their shards. */
async function play(
  fixture: OperatorFixture,
  controllers: readonly ControllerHandle<Gadget>[],
): Promise<void> {
  const names = Array.from({ length: 20 }, (_, index) => `gadget-${index}`);
  for (const name of names) await fixture.create(name);
  for (const name of names) await fixture.change(name, { value: "second" });
  const second = parseShardSelector(shardSelector({ index: 1, count: 2 }));
  await fixture.until(async () =>
    (await fixture.client.list(Gadget)).items.every(({ metadata, status }) => {
      const { uid = "", namespace = "" } = metadata;
      const half = inShard(second, { uid, namespace }) ? 1 : 0;
      return status?.value === `second ${half}`;
    })
  );
  const counts = controllers.map((controller) => controller.health().primaries);
  assert.equal(counts.reduce((sum, count) => sum + count, 0), 20);
  assert.ok(counts.every((count) => count > 0), counts.join());
  for (const name of names) await fixture.remove(name);
  await fixture.until(() =>
    controllers.every((controller) => controller.health().primaries === 0)
  );
}

scenario(
  "Operators receive their shard only from a server with shard selectors [ShardSelectorIT]",
  async (fixture) => {
    await play(fixture, await halves(fixture));
    const watches = fixture.requests.filter(({ verb, resource }) =>
      verb === "watch" && resource === "gadgets"
    );
    assert.ok(watches.length >= 2);
    for (const { target } of watches) assert.match(target, /shardSelector=/);
    const selector = shardSelector({ index: 0, count: 2 });
    const list = await fixture.client.list(Gadget, { shardSelector: selector });
    assert.deepEqual(list.metadata.shardInfo, { selector });
  },
  {
    embedded: "Shards are an alpha feature of Kubernetes 1.36",
    server: { featureGates: { ShardedListAndWatch: true } },
  },
);

scenario(
  "Operators keep their shard only of the events of an older server",
  async (fixture) => {
    await play(fixture, await halves(fixture));
    const selector = shardSelector({ index: 0, count: 2 });
    const list = await fixture.client.list(Gadget, { shardSelector: selector });
    assert.equal(list.metadata.shardInfo, undefined);
  },
);

scenario("An invalid shard selector is refused", (fixture) => {
  assert.throws(
    () =>
      fixture.operator().register(Gadget, { reconcile() {} }, {
        shardSelector: "uid < 5",
      }),
    /Cannot read a shard selector: it must be shardRange/,
  );
  return Promise.resolve();
});
