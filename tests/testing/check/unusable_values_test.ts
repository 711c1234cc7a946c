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
  StorageClass,
  type TopologySpreadConstraint,
} from "@coracle/operator/kinds";
import { checkOperator } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { fieldError } from "../../../dev/apiserver/status.ts";
import { CheckSession } from "../../../dev/testing/check/check_session.ts";
import {
  exampleObjects,
  scratchServer,
} from "../../../dev/testing/check/examples.ts";
import { judgePaths } from "../../../dev/testing/check/oracles.ts";
import {
  unusableScenarios,
  usableObjects,
} from "../../../dev/testing/check/unusable_values.ts";
import type {
  CheckStep,
  Scenario,
} from "../../../dev/testing/check/workload.ts";
import { run as record, write } from "./check_case.ts";

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

/** Session that runs an operator, undisturbed. */
function sessionOf(operator: (options: OperatorOptions) => Operator) {
  return CheckSession.open({ operator, seed: 1, simulate: false });
}

/** Scenario that changes an object, and the one that creates it as changed. */
function changeOf(before: object, after: object): [Scenario, Scenario] {
  const [first, second] = [before, after].map((one) => ({ apply: { ...one } }));
  const sameAs = { scenario: "change", step: 1 };
  return [
    { name: "change", known: 0, steps: [first!, second!] },
    { name: "direct", known: 0, steps: [second!], sameAs },
  ];
}

const field = (name: string, soil: string) => ({
  apiVersion: "unusable.coracle.dev/v1",
  kind: "Field",
  metadata: { name },
  spec: { soil },
});

test("What is applied while the operator is down comes after it, and a refusal counts", async () => {
  const [clay, sand] = [field("clay", "clay"), field("sand", "sand")];
  const { findings, plans, coverage } = await checkOperator({
    operator: fields,
    workload: [
      { apply: clay },
      { apply: sand },
      { apply: field("clay", "sand") },
    ],
    only: ["down"],
    plans: 1,
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.equal(plans, 1);
  assert.equal(coverage.refused, 1);
});

const Disk = defineKind({
  ...names,
  kind: "Disk",
  scope: "Cluster",
  spec: z.object({ provisioner: z.string() }),
});

/** Operator of a part that cannot change, whose values are all right. */
function disks(options: OperatorOptions): Operator {
  const operator = new Operator(options);
  operator.register(Disk, {
    async reconcile({ metadata: { name }, spec }, ctx) {
      await ctx.apply(StorageClass, { metadata: { name }, ...spec });
    },
  }, { owns: [StorageClass], install: true });
  return operator;
}

test("A value that a part can have, but not get by a change, is judged", async () => {
  const session = await sessionOf(disks);
  const disk = (provisioner: string) => ({
    apiVersion: "unusable.coracle.dev/v1",
    kind: "Disk",
    metadata: { name: "a" },
    spec: { provisioner },
  });
  const [change, direct] = changeOf(disk("one"), disk("two"));
  const [changed, made] = [
    await session.reference(change),
    await session.reference(direct),
  ];
  const alone = unusableScenarios(new Map([[change, changed]]), undefined);
  assert.deepEqual([...alone], ["change"]);
  const references = new Map([[change, changed], [direct, made]]);
  assert.deepEqual([...unusableScenarios(references, undefined)], []);
  const options = { scenario: direct, masked: new Set<string>() };
  assert.match(
    judgePaths(made, changed, options)[0]?.text ?? "",
    /^StorageClass a differs after "change" from a direct creation/,
  );
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

test("A generated object has no value that the operator or its pods cannot have", async () => {
  const session = await sessionOf(farms);
  const { source } = session;
  const run = (steps: readonly CheckStep[]) =>
    session.reference({ name: "examples", steps, known: 0 });
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

const LIMITS = "spec.resources.limits";

/** Run in which a part cannot have these values. */
function refusing(...values: readonly string[]) {
  const causes = values.map((one) =>
    fieldError.invalid(LIMITS, one, "must be a standard resource type")
  );
  return record([write("apply Deployment a", { code: 422, causes })], []);
}

test("A change whose value a part cannot have is unusable, unless it was so before", () => {
  const farm = (name: string) => ({ spec: { limits: { [name]: 1 } } });
  const [change, direct] = changeOf(farm("cpu"), farm("cores"));
  const unusable = (
    changed: ReturnType<typeof refusing>,
    made: typeof changed,
    usual?: typeof changed,
  ) => [
    ...unusableScenarios(new Map([[change, changed], [direct, made]]), usual),
  ];
  const wrong = refusing("cores");
  assert.deepEqual(unusable(wrong, wrong, refusing()), ["change", "direct"]);
  assert.deepEqual(unusable(wrong, wrong, wrong), []);
  assert.deepEqual(unusable(refusing("disk"), wrong), ["direct"]);
  assert.deepEqual(unusable(refusing(), refusing(), wrong), []);
});

test("All unusable values of a list are taken out, and no others", async () => {
  const wrong = ["tab\t", "bell\u0007", "start\u0001", 'quote"'];
  const spec = { words: ["a", ...wrong, "b"], ...{ [wrong[1]!]: 1 } };
  const [usable] = await usableObjects([{ spec }], {
    accepts: () => Promise.resolve(true),
    run: ([step]) =>
      Promise.resolve(
        refusing(
          ...wrong.filter((one) =>
            JSON.stringify(step).includes(JSON.stringify(one))
          ),
        ),
      ),
  });
  assert.deepEqual(usable, { spec: { words: ["a", "b"] } });
});
