import assert from "node:assert/strict";
import { patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { perResourcePollingSource, watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const DEFAULT = { namespaces: ["default"] };

/** Cuts a watch so that it misses events until it lists again. */
function cut(fixture: OperatorFixture): void {
  fixture.faults.cutWatches();
  fixture.faults.compact();
}

scenario(
  "A change missed by a watch is delivered by the watch that replaces it",
  async (fixture) => {
    const operator = fixture.operator();
    const gadgets = operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
    }, DEFAULT);
    const isReported = (value: string) => async () =>
      (await fixture.gadget("a"))?.status?.value === value;
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(isReported("first"));
    cut(fixture);
    await fixture.change("a", { value: "second" });
    await fixture.done(gadgets.changeNamespaces("all"));
    await fixture.until(isReported("second"));
  },
  { embedded: "it cuts watches" },
);

scenario(
  "A deletion missed by a watch is delivered by the watch that replaces it",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    const gadgets = operator.register(Gadget, {
      reconcile({ spec }, { deleted }) {
        seen.push(`${deleted ? "deleted" : "there"} ${spec.value}`);
      },
    }, { ...DEFAULT, allEvents: true });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    cut(fixture);
    await fixture.remove("a");
    await fixture.done(gadgets.changeNamespaces("all"));
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen, ["there first", "deleted first"]);
  },
  { embedded: "it cuts watches" },
);

scenario(
  "Sources drop the primaries of a removed namespace",
  async (fixture) => {
    let polls = 0;
    const operator = fixture.operator();
    const gadgets = operator.register(Gadget, { reconcile() {} }, {
      ...DEFAULT,
      sources: [
        perResourcePollingSource<Gadget, string>({
          name: "polls",
          fetch: () => [`poll ${++polls}`],
          interval: "1s",
        }),
      ],
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => polls > 2);
    await fixture.done(gadgets.changeNamespaces(["elsewhere"]));
    const before = polls;
    await fixture.advance(10_000);
    assert.equal(polls, before);
    await fixture.done(gadgets.changeNamespaces(["default"]));
    await fixture.until(() => polls > before + 2);
  },
);

/** A controller of gadgets that notes the ConfigMaps that each run sees. */
function withMaps(fixture: OperatorFixture) {
  const seen: string[] = [];
  const operator = fixture.operator();
  const maps = watch<Gadget, ConfigMap>(ConfigMap);
  const gadgets = operator.register(Gadget, {
    async reconcile(gadget) {
      const found = await maps.secondaries?.(gadget);
      const colors = found?.map(({ data }) => data?.["color"]);
      seen.push(`${gadget.spec.value} ${colors?.join()}`);
    },
  }, { ...DEFAULT, sources: [maps] });
  return { seen, operator, gadgets };
}

async function createWithMap(fixture: OperatorFixture): Promise<void> {
  const owner = await fixture.create("a");
  await fixture.client.create(ConfigMap, {
    metadata: {
      namespace: "default",
      name: "a",
      ownerReferences: [{
        apiVersion: "sample.coracle.dev/v1",
        kind: "Gadget",
        name: "a",
        uid: owner.metadata.uid ?? "",
        controller: true,
      }],
    },
    data: { color: "red" },
  });
}

scenario(
  "A run sees all secondaries while their source changes namespaces",
  async (fixture) => {
    const { seen, operator, gadgets } = withMaps(fixture);
    await fixture.start(operator);
    await createWithMap(fixture);
    await fixture.until(() => seen.includes("first red"));
    fixture.faults.add({
      resource: "configmaps",
      verb: ["list", "watch"],
      count: 1,
      effect: { delay: 10_000 },
    });
    const changed = gadgets.changeNamespaces("all");
    await fixture.advance(1_000);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => seen.at(-1)?.startsWith("second") === true);
    assert.equal(seen.at(-1), "second red");
    await fixture.done(changed);
    await fixture.change("a", { value: "third" });
    await fixture.until(() => seen.at(-1) === "third red");
  },
  { embedded: "it delays an answer" },
);

scenario(
  "A secondary deletion missed by a watch triggers when another watch replaces it",
  async (fixture) => {
    const { seen, operator, gadgets } = withMaps(fixture);
    await fixture.start(operator);
    await createWithMap(fixture);
    await fixture.until(() => seen.includes("first red"));
    const count = seen.length;
    await fixture.done(gadgets.changeNamespaces(["default", "elsewhere"]));
    await fixture.advance(1_000);
    assert.equal(seen.length, count, "what was told is not told again");
    cut(fixture);
    await fixture.client.delete(ConfigMap, { namespace: "default", name: "a" });
    await fixture.done(gadgets.changeNamespaces("all"));
    await fixture.until(() => seen.at(-1) === "first ");
  },
  { embedded: "it cuts watches" },
);

scenario(
  "A change during the switch to another watch is seen by its run",
  async (fixture) => {
    const operator = fixture.operator();
    const gadgets = operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
    }, { ...DEFAULT, sources: [watch(ConfigMap)] });
    const isReported = (value: string) => async () =>
      (await fixture.gadget("a"))?.status?.value === value;
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(isReported("first"));
    fixture.faults.add({
      resource: "configmaps",
      verb: ["list", "watch"],
      count: 1,
      effect: { delay: 20_000 },
    });
    const changed = gadgets.changeNamespaces("all");
    await fixture.advance(1_000);
    cut(fixture);
    await fixture.change("a", { value: "second" });
    await fixture.done(changed);
    await fixture.until(isReported("second"));
  },
  { embedded: "it cuts watches" },
);

scenario(
  "An operator that stops while its namespaces change leaves no watch",
  async (fixture) => {
    const operators = ["first", "second"].map((identity) => {
      const operator = fixture.operator({
        sharding: { name: "lock", identity },
      });
      const handle = operator.register(Gadget, { reconcile() {} }, {
        sources: [watch(ConfigMap)],
      });
      return { operator, handle };
    });
    for (const { operator } of operators) await fixture.start(operator);
    const changes = operators.map(({ handle }) =>
      handle.changeNamespaces(["default"]).catch(() => {})
    );
    // The fixture asserts that no watch is open after this.
    for (const { operator } of operators) {
      await fixture.done(operator.stop());
    }
    await Promise.all(changes);
  },
);
