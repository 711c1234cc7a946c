import assert from "node:assert/strict";
import { patchStatus } from "../../core/controller/result.ts";
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
