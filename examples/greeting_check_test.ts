import { checkOperator } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";

const ann = (spec: object) => ({
  apiVersion: "sample.coracle.dev/v1",
  kind: "Greeting",
  metadata: { name: "ann" },
  spec,
});

test("The operator for greetings survives crashes and conflicts", async () => {
  const { findings } = await checkOperator({
    operator: new URL("./greeting.ts", import.meta.url),
    only: ["crash", "conflict", "lost"],
    workload: [
      { apply: ann({ name: "Ann" }) },
      { apply: ann({ name: "Ann", loud: true }) },
      { delete: ann({}) },
    ],
    invariants: {
      eventually: {
        "each Greeting has its text": ({ list }) =>
          list("Greeting").length === list("ConfigMap").length,
      },
    },
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
});
