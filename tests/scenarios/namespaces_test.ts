import assert from "node:assert/strict";
import { patchStatus } from "../../core/controller/result.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { perResourcePollingSource } from "../../sources/per_resource_polling_source.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

const DEFAULT = { namespaces: ["default"] };

/** Lets a watch miss what comes next, until it has listed again. */
function cut(one: OperatorCase): void {
  one.faults.cutWatches();
  one.faults.compact();
}

scenario(
  "A change that a watch has not told yet is told by the one that takes its place",
  async (one) => {
    const operator = one.operator();
    const gadgets = operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
    }, DEFAULT);
    const isReported = (value: string) => async () =>
      (await one.gadget("a"))?.status?.value === value;
    await one.start(operator);
    await one.create("a");
    await one.until(isReported("first"));
    cut(one);
    await one.change("a", { value: "second" });
    await one.done(gadgets.changeNamespaces("all"));
    await one.until(isReported("second"));
  },
  { embedded: "it cuts watches" },
);

scenario(
  "A deletion that a watch has not told yet is told by the one that takes its place",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
    const gadgets = operator.register(Gadget, {
      reconcile({ spec }, { deleted }) {
        seen.push(`${deleted ? "deleted" : "there"} ${spec.value}`);
      },
    }, { ...DEFAULT, allEvents: true });
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    cut(one);
    await one.remove("a");
    await one.done(gadgets.changeNamespaces("all"));
    await one.until(() => seen.length === 2);
    assert.deepEqual(seen, ["there first", "deleted first"]);
  },
  { embedded: "it cuts watches" },
);

scenario(
  "Sources that follow primaries leave those of a namespace that is left",
  async (one) => {
    let polls = 0;
    const operator = one.operator();
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
    await one.start(operator);
    await one.create("a");
    await one.until(() => polls > 2);
    await one.done(gadgets.changeNamespaces(["elsewhere"]));
    const before = polls;
    await one.advance(10_000);
    assert.equal(polls, before);
    await one.done(gadgets.changeNamespaces(["default"]));
    await one.until(() => polls > before + 2);
  },
);

/** A controller of gadgets that notes the ConfigMaps that each run sees. */
function withMaps(one: OperatorCase) {
  const seen: string[] = [];
  const operator = one.operator();
  const maps = informerSource<Gadget, ConfigMap>(ConfigMap);
  const gadgets = operator.register(Gadget, {
    async reconcile(gadget) {
      const found = await maps.secondaries?.(gadget);
      const colors = found?.map(({ data }) => data?.["color"]);
      seen.push(`${gadget.spec.value} ${colors?.join()}`);
    },
  }, { ...DEFAULT, sources: [maps] });
  return { seen, operator, gadgets };
}

async function createWithMap(one: OperatorCase): Promise<void> {
  const owner = await one.create("a");
  await one.client.create(ConfigMap, {
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
  "A run sees all secondaries while their source follows a change of namespaces",
  async (one) => {
    const { seen, operator, gadgets } = withMaps(one);
    await one.start(operator);
    await createWithMap(one);
    await one.until(() => seen.includes("first red"));
    one.faults.add({
      resource: "configmaps",
      verb: ["list", "watch"],
      count: 1,
      effect: { delay: 10_000 },
    });
    const changed = gadgets.changeNamespaces("all");
    await one.advance(1_000);
    await one.change("a", { value: "second" });
    await one.until(() => seen.at(-1)?.startsWith("second") === true);
    assert.equal(seen.at(-1), "second red");
    await one.done(changed);
    await one.change("a", { value: "third" });
    await one.until(() => seen.at(-1) === "third red");
  },
  { embedded: "it delays an answer" },
);

scenario(
  "A secondary whose deletion its watch has not told yet triggers when another takes its place",
  async (one) => {
    const { seen, operator, gadgets } = withMaps(one);
    await one.start(operator);
    await createWithMap(one);
    await one.until(() => seen.includes("first red"));
    const count = seen.length;
    await one.done(gadgets.changeNamespaces(["default", "elsewhere"]));
    await one.advance(1_000);
    assert.equal(seen.length, count, "what was told is not told again");
    cut(one);
    await one.client.delete(ConfigMap, { namespace: "default", name: "a" });
    await one.done(gadgets.changeNamespaces("all"));
    await one.until(() => seen.at(-1) === "first ");
  },
  { embedded: "it cuts watches" },
);

scenario(
  "A change that comes while a watch waits to take its place is seen by its run",
  async (one) => {
    const operator = one.operator();
    const gadgets = operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
    }, { ...DEFAULT, sources: [informerSource(ConfigMap)] });
    const isReported = (value: string) => async () =>
      (await one.gadget("a"))?.status?.value === value;
    await one.start(operator);
    await one.create("a");
    await one.until(isReported("first"));
    one.faults.add({
      resource: "configmaps",
      verb: ["list", "watch"],
      count: 1,
      effect: { delay: 20_000 },
    });
    const changed = gadgets.changeNamespaces("all");
    await one.advance(1_000);
    cut(one);
    await one.change("a", { value: "second" });
    await one.done(changed);
    await one.until(isReported("second"));
  },
  { embedded: "it cuts watches" },
);
