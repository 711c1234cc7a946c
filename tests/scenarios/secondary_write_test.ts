import assert from "node:assert/strict";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { KEY, startGadgets } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "Every way to write a secondary is seen by the next read and causes no run [SecondaryResourceOperationsIT]",
  async (fixture) => {
    const values: (string | undefined)[] = [];
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      const { name } = gadget.metadata;
      const read = async () =>
        values.push((await ctx.get(ConfigMap, name))?.data?.["value"]);
      const metadata = { name };
      await ctx.create(ConfigMap, { metadata, data: { value: "create" } });
      await read();
      await ctx.apply(ConfigMap, { metadata, data: { value: "apply" } });
      await read();
      await ctx.patch(ConfigMap, name, { data: { value: "merge" } });
      await read();
      await ctx.patch(ConfigMap, name, [{
        op: "replace",
        path: "/data/value",
        value: "json",
      }], { type: "json" });
      await read();
    }, { sources: [watch(ConfigMap)] });
    await fixture.create("a");
    await fixture.until(() => values.length === 4);
    await fixture.advance(10_000);
    assert.deepEqual(values, ["create", "apply", "merge", "json"]);
    assert.equal(runs.length, 1);
  },
);

scenario(
  "Part of a secondary may keep its first value though the spec changes [UnmodifiableDependentPartIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const present = await ctx.secondary(ConfigMap);
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: {
            fixed: present?.data?.["fixed"] ?? gadget.spec.value,
            changing: gadget.spec.value,
          },
        });
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, KEY) !== undefined
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.client.get(ConfigMap, KEY)).data?.["changing"] === "second"
    );
    assert.equal(
      (await fixture.client.get(ConfigMap, KEY)).data?.["fixed"],
      "first",
    );
  },
);

scenario(
  "A write that does not last is reported with its field and slowed down [#2290]",
  async (fixture) => {
    const { operator, runs } = await startGadgets(
      fixture,
      async (gadget, ctx) => {
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { mode: "ours" },
        });
      },
      { sources: [watch(ConfigMap)] },
    );
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    // Somebody else sets the field back again and again.
    let fights = 0;
    let seen = 0;
    const fight = async () => {
      // Only a run can have set it.
      if (runs.length === seen) return;
      seen = runs.length;
      const map = await fixture.client.get(ConfigMap, KEY);
      if (map.data?.["mode"] === "ours") {
        fights++;
        await fixture.client.patch(ConfigMap, KEY, {
          data: { mode: "theirs" },
        });
      }
    };
    for (let step = 0; step < 600; step++) {
      await fight();
      await fixture.advance(100);
    }
    assert.ok(runs.length < 20, `${runs.length} runs in a minute`);
    assert.ok(fights > 5);
    const loop = fixture.log.find(({ message }) =>
      message.startsWith("Runs repeat the same write")
    );
    assert.deepEqual(loop?.fields["fields"], ["data.mode"]);
    assert.equal(loop?.fields["target"], "v1 ConfigMap default/a");
    assert.match(
      operator.metrics(),
      /coracle_write_loops_total\{controller="gadget"\} \d/,
    );
  },
);

for (const others of [0, 20]) {
  scenario(
    `Two contents of one object after ${others} writes slow the runs down`,
    async (fixture) => {
      let runs = 0;
      await startGadgets(fixture, async (gadget, ctx) => {
        for (let other = 0; other < others; other++) {
          await ctx.apply(ConfigMap, { metadata: { name: "other" } }, {
            match: false,
          });
        }
        for (const mode of ["first", "second"]) {
          await ctx.apply(ConfigMap, {
            metadata: { name: gadget.metadata.name },
            data: { mode },
          });
        }
        runs++;
      }, { sources: [watch(ConfigMap)] });
      await fixture.create("a");
      // Another controller notes what it has seen.
      let seen = 0;
      for (let step = 0; step < 600; step++) {
        if (runs > seen) {
          seen = runs;
          await fixture.client.patch(ConfigMap, KEY, {
            metadata: { annotations: { seen: String(seen) } },
          });
        }
        await fixture.advance(100);
      }
      assert.ok(runs < 20, `${runs} runs in a minute`);
      const loop = fixture.log.find(({ message }) =>
        message.startsWith("Runs repeat the same write")
      );
      assert.deepEqual(loop?.fields["fields"], ["data.mode"]);
      assert.equal(loop?.fields["target"], "v1 ConfigMap default/a");
    },
  );
}

scenario(
  "An object that a run deletes and creates again causes one more run",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async ({ spec }, ctx) => {
      const map = { metadata: { name: "a" }, data: { value: spec.value } };
      const found = await ctx.get(ConfigMap, "a");
      if (found !== undefined && found.data?.["value"] !== spec.value) {
        await ctx.delete(ConfigMap, "a");
      }
      await ctx.apply(ConfigMap, map);
    }, { owns: [ConfigMap] });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    const before = await fixture.client.get(ConfigMap, KEY);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => runs.length === 3);
    await fixture.advance(600_000);
    const after = await fixture.client.get(ConfigMap, KEY);
    assert.equal(after.data?.["value"], "second");
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    assert.equal(runs.length, 3);
  },
);

scenario(
  "A run that creates, deletes and changes one object each time is slowed down",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      const map = { metadata: { name: "a" }, data: { step: "made" } };
      await ctx.apply(ConfigMap, map);
      await ctx.delete(ConfigMap, "a");
      await ctx.apply(ConfigMap, map);
      await ctx.modify(ConfigMap, "a", (made) => {
        made.data = { step: "changed" };
      });
    }, { owns: [ConfigMap] });
    await fixture.create("a");
    await fixture.advance(60_000);
    assert.ok(runs.length < 20, `${runs.length} runs in a minute`);
    assert.ok(
      fixture.log.some(({ message }) =>
        message.startsWith("Runs create the same object repeatedly")
      ),
    );
  },
);

scenario(
  "An object that is deleted after each creation is created with longer pauses",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ConfigMap, { metadata: { name: "a" }, data: {} });
    }, { owns: [ConfigMap] });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    let deletions = 0;
    for (let step = 0; step < 600; step++) {
      if (await fixture.client.find(ConfigMap, KEY)) {
        deletions++;
        await fixture.client.delete(ConfigMap, KEY);
      }
      await fixture.advance(100);
    }
    assert.ok(deletions > 5 && deletions < 20, `${deletions} deletions`);
    const loop = fixture.log.find(({ message }) =>
      message.startsWith("Runs create the same object repeatedly")
    );
    assert.equal(loop?.fields["target"], "v1 ConfigMap default/a");
  },
);

scenario(
  "The longest pause counts if a run repeats several writes that do not last",
  async (fixture) => {
    let count = 0;
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      count++;
      for (const suffix of count < 5 ? ["-1"] : ["-1", "-2"]) {
        const name = `${gadget.metadata.name}${suffix}`;
        const found = await fixture.client.find(ConfigMap, {
          namespace: "default",
          name,
        });
        if (found !== undefined) {
          // Somebody else sets the field back before each run.
          await fixture.client.patch(ConfigMap, found.metadata as typeof KEY, {
            data: { mode: "theirs" },
          });
        }
        await ctx.apply(ConfigMap, {
          metadata: { name },
          data: { mode: "ours" },
        });
      }
      await ctx.client.patch(Gadget, KEY, {
        metadata: { annotations: { run: String(count) } },
      });
    }, { sources: [watch(ConfigMap)], generationAware: false });
    await fixture.create("a");
    await fixture.until(() => runs.length === 12, 600_000);
    const pauses = runs.slice(1).map(({ at }, index) => at - runs[index]!.at);
    assert.deepEqual(pauses, pauses.toSorted((a, b) => a - b));
    assert.ok(pauses.at(-1)! >= 16_000, pauses.join());
  },
  // The events of a real cluster take time that the virtual clock does not count.
  { embedded: "it measures pauses between runs" },
);
