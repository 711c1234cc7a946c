import assert from "node:assert/strict";
import { noUpdate, patchStatus } from "@coracle/operator/core";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "run with once runs each object and each job, and then stops",
  async (fixture) => {
    for (const name of ["a", "b"]) await fixture.create(name);
    const operator = fixture.operator({
      namespaces: ["default"],
      leaderElection: { name: "lock", identity: "once" },
    });
    const runs: string[] = [];
    operator.register(Gadget, {
      reconcile({ metadata: { name } }) {
        runs.push(name);
        return patchStatus({ value: "done" }).rescheduleAfter("1s");
      },
      cleanup: () => {},
    });
    operator.job("nightly", { cron: "0 3 * * *" }, () => void runs.push("job"));
    operator.job("startup", {}, () => {
      runs.push("startup");
      return noUpdate().rescheduleAfter("1s");
    });
    await fixture.done(operator.run({ once: true }));
    assert.deepEqual(runs.sort(), ["a", "b", "job", "startup"]);
    assert.equal((await fixture.gadget("a"))?.status?.value, "done");
    assert.equal(operator.health().started, false);
  },
);

scenario("run with once and nothing to do ends", async (fixture) => {
  const operator = fixture.operator({ namespaces: ["default"] });
  operator.register(Gadget, { reconcile() {} });
  await fixture.done(operator.run({ once: true }));
  assert.equal(operator.health().started, false);
});

scenario(
  "run with once fails if a run failed, after all have run",
  async (fixture) => {
    for (const name of ["a", "b", "c"]) await fixture.create(name);
    const operator = fixture.operator({ namespaces: ["default"] });
    let runs = 0;
    operator.register(Gadget, {
      reconcile({ metadata: { name } }) {
        runs++;
        if (name === "b") throw new Error("no room");
      },
    });
    operator.job("nightly", {}, () => Promise.reject(new Error("no light")));
    await assert.rejects(fixture.done(operator.run({ once: true })), {
      name: "AggregateError",
      message:
        "Cannot finish the single run: 2 of 4 have failed: gadget default/b (no room); nightly (no light)",
    });
    assert.equal(runs, 3);
    assert.equal(operator.health().started, false);
  },
);

scenario(
  "run with once does not wait for an object that is deleted meanwhile",
  async (fixture) => {
    for (const name of ["a", "b"]) await fixture.create(name);
    const operator = fixture.operator({ namespaces: ["default"] });
    const runs: string[] = [];
    operator.register(Gadget, {
      async reconcile({ metadata: { name } }) {
        runs.push(name);
        await fixture.remove(name === "a" ? "b" : "a");
        await fixture.settle();
      },
    }, { concurrency: 1 });
    await fixture.done(operator.run({ once: true }));
    assert.equal(runs.length, 1);
  },
);
