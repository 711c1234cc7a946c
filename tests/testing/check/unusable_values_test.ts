import {
  allow,
  defineKind,
  deny,
  Operator,
  type OperatorOptions,
} from "@coracle/operator";
import {
  ConfigMap,
  Deployment,
  type ResourceRequirements,
  schemaOf,
  type TopologySpreadConstraint,
} from "@coracle/operator/kinds";
import { checkOperator } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { CheckSession } from "../../../dev/testing/check/check_session.ts";
import {
  exampleObjects,
  scratchServer,
} from "../../../dev/testing/check/examples.ts";
import {
  isUnusable,
  usableObjects,
} from "../../../dev/testing/check/unusable_values.ts";
import type { CheckStep } from "../../../dev/testing/check/workload.ts";

const names = { group: "unusable.coracle.dev", version: "v1" };
const webhooks = { service: { name: "farms" } };

const Field = defineKind({
  ...names,
  kind: "Field",
  spec: z.object({ soil: z.enum(["clay", "sand"]) }),
});

/** Operator whose objects cannot change their soil. */
function fields(options: OperatorOptions): Operator {
  const operator = new Operator({ ...options, webhooks });
  operator.register(Field, {
    async reconcile({ metadata: { name }, spec }, ctx) {
      await ctx.apply(ConfigMap, { metadata: { name }, data: { ...spec } });
    },
  }, {
    owns: [ConfigMap],
    install: true,
    admission: {
      failurePolicy: "Fail",
      validate: ({ spec }, { old }) =>
        old === undefined || old.spec.soil === spec.soil
          ? allow()
          : deny("the soil cannot change"),
    },
  });
  return operator;
}

test("A change that the operator refuses is no difference of two paths", async () => {
  const { findings, coverage } = await checkOperator({
    operator: fields,
    only: ["none"],
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.equal(coverage.refused, 1);
});

test("What is applied while the operator is down is applied again after it", async () => {
  const field = (soil: string) => ({
    apiVersion: "unusable.coracle.dev/v1",
    kind: "Field",
    metadata: { name: soil },
    spec: { soil },
  });
  const { findings, plans } = await checkOperator({
    operator: fields,
    workload: [{ apply: field("clay") }, { apply: field("sand") }],
    only: ["down"],
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.ok(plans > 0);
});

const Farm = defineKind({
  ...names,
  kind: "Farm",
  spec: z.object({
    resources: z.custom<ResourceRequirements>()
      .meta(schemaOf("ResourceRequirements")).optional(),
    spread: z.array(
      z.custom<TopologySpreadConstraint>()
        .meta(schemaOf("TopologySpreadConstraint")),
    ).optional(),
  }),
});

function farms(options: OperatorOptions): Operator {
  const operator = new Operator({ ...options, webhooks });
  operator.register(Farm, {
    async reconcile({ metadata: { name }, spec }, ctx) {
      const labels = { farm: name };
      await ctx.apply(Deployment, {
        metadata: { name },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              containers: [{
                name: "farm",
                image: "farm",
                resources: spec.resources,
              }],
              topologySpreadConstraints: spec.spread,
            },
          },
        },
      });
    },
  }, {
    owns: [Deployment],
    install: true,
    admission: {
      failurePolicy: "Fail",
      validate: ({ spec }) =>
        spec.resources?.claims === undefined ? allow() : deny("no claims", {
          causes: [{ field: "spec.resources.claims", message: "not here" }],
        }),
    },
  });
  return operator;
}

/** Runs steps by the operator of farms, undisturbed. */
async function runner() {
  const session = await CheckSession.open({
    operator: farms,
    seed: 1,
    simulate: false,
  });
  const { source } = session;
  return {
    source,
    run: (steps: readonly CheckStep[]) =>
      session.reference({ name: "examples", steps, known: 0 }),
  };
}

test("A generated object has no value that the operator or its pods cannot have", async () => {
  const { source, run } = await runner();
  const server = await scratchServer(source.kinds);
  try {
    const { accepts } = server;
    const made = await exampleObjects({ given: undefined, source, server });
    const resources = {
      claims: [{ name: "a", request: "a" }],
      limits: { cpu: 1 },
      requests: { cpu: 1 },
    };
    const matchLabels = { "key-1": "a" };
    const matchExpressions = [{ key: "a", operator: "a", values: ["a"] }];
    const [spec, ...others] = made.map((one) => Object(one["spec"]));
    assert.deepEqual(others, []);
    assert.deepEqual(spec.resources, resources);
    assert.deepEqual(
      spec.spread[0].labelSelector,
      { matchExpressions, matchLabels },
    );
    const [usable] = await usableObjects(made, { accepts, run });
    const found = Object(usable?.["spec"]);
    assert.deepEqual(
      found.resources,
      { limits: { cpu: 1 }, requests: { cpu: 1 } },
    );
    assert.deepEqual(found.spread[0].labelSelector.matchLabels, matchLabels);
    assert.equal(
      Object(found.spread[0].labelSelector.matchExpressions)[0],
      undefined,
    );
    const { trace } = await run([{ apply: usable! }]);
    assert.deepEqual(
      trace.filter((entry) => entry.type === "write" && entry.code >= 300),
      [],
    );
  } finally {
    await server.close();
  }
});

test("A change whose value a part cannot have is unusable, unless it was so before", async () => {
  const { run } = await runner();
  const farm = (limits: object) => ({
    apply: {
      apiVersion: "unusable.coracle.dev/v1",
      kind: "Farm",
      metadata: { name: "a" },
      spec: { resources: { limits } },
    },
  });
  const [good, wrong] = [[farm({ cpu: 1 })], [farm({ cores: 1 })]];
  const [usual, other] = [await run(good), await run(wrong)];
  assert.equal(isUnusable({ steps: wrong }, other, usual), true);
  assert.equal(isUnusable({ steps: good }, usual, usual), false);
  assert.equal(isUnusable({ steps: wrong }, other, other), false);
  assert.equal(isUnusable({ steps: good }, other, usual), false);
});
