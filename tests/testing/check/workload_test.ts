import assert from "node:assert/strict";
import { test } from "node:test";
import type { CrdManifest } from "@coracle/operator/crd";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import {
  appliedKeys,
  generatedObjects,
  type Scenario,
  scenarios,
  stepText,
} from "../../../dev/testing/check/workload.ts";

/** Definition of a kind with these fields of its spec. */
function definition(
  properties: object,
  { required = [], scope = "Namespaced" }: {
    readonly required?: readonly string[];
    readonly scope?: string;
  } = {},
): CrdManifest {
  const version = (name: string, storage: boolean) => ({
    name,
    storage,
    schema: {
      openAPIV3Schema: {
        type: "object",
        required: ["spec"],
        properties: {
          metadata: { type: "object" },
          status: { type: "object", properties: { a: { type: "string" } } },
          spec: { type: "object", required, properties },
        },
      },
    },
  });
  return {
    spec: {
      group: "test.dev",
      scope,
      names: { kind: "Gadget" },
      versions: [version("v1alpha1", false), version("v1", true)],
    },
  } as object as CrdManifest;
}

const gadget = (name: string, spec: JsonObject = { size: 1 }): JsonObject => ({
  apiVersion: "test.dev/v1",
  kind: "Gadget",
  metadata: { namespace: "default", name },
  spec,
});
const config: JsonObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name: "given" },
  data: { a: "b" },
};
const SIZE = { size: { type: "integer" } };

/** Scenarios of examples, by their names. */
async function made(
  examples: readonly JsonObject[],
  accepts: (object: JsonObject, from?: JsonObject) => boolean = () => true,
  properties: object = SIZE,
): Promise<ReadonlyMap<string, Scenario>> {
  const found = await scenarios(examples, {
    definitions: [definition(properties)],
    accepts: (...args) => Promise.resolve(accepts(...args)),
  });
  return new Map(found.map((one) => [one.name, one]));
}

/** Steps as text, with a mark for those that do not wait. */
const stepsOf = (scenario: Scenario | undefined) =>
  scenario?.steps.map((step) =>
    `${stepText(step)}${step.settle === false ? " …" : ""}`
  );

test("generatedObjects gives all fields, none, and one of the optional ones", () => {
  const properties = {
    size: { type: "integer" },
    mode: { type: "string" },
    text: { type: "string" },
  };
  const found = generatedObjects(
    definition(properties, { required: ["size"] }),
  );
  assert.deepEqual(found.map(({ spec }) => Object.keys(spec as object)), [
    ["size", "mode", "text"],
    ["size"],
    ["size", "mode"],
    ["size", "text"],
  ]);
  const [first] = found;
  assert.deepEqual(first?.["metadata"], {
    namespace: "default",
    name: "sample",
  });
  assert.equal(first?.["apiVersion"], "test.dev/v1", "that of the storage");
  assert.equal(first?.["status"], undefined);
  const [cluster] = generatedObjects(
    definition(properties, { scope: "Cluster" }),
  );
  assert.deepEqual(cluster?.["metadata"], { name: "sample" });
});

test("scenarios create, delete and create again, after what is given", async () => {
  const found = await made([gadget("a"), config, gadget("b")]);
  const [before, a, b] = [
    "apply ConfigMap default/given …",
    "apply Gadget default/a",
    "apply Gadget default/b",
  ];
  const removal = ["delete Gadget default/b", "delete Gadget default/a"];
  const life = found.get("life");
  assert.deepEqual(stepsOf(life), [before, a, b, ...removal, a, b]);
  assert.deepEqual([life?.known, life?.backTo], [1, 2]);
  const recreate = found.get("recreate");
  assert.deepEqual(stepsOf(recreate), [
    before,
    a,
    b,
    ...removal.map((step) => `${step} …`),
    a,
    b,
    ...removal,
  ]);
  assert.equal(recreate?.known, 3);
  assert.deepEqual(stepsOf(found.get("brief")), [
    before,
    `${a} …`,
    `${b} …`,
    ...removal,
  ]);
});

test("scenarios share what is owned between two objects, one after the other", async () => {
  const found = await made([gadget("a")]);
  assert.deepEqual(stepsOf(found.get("share")), [
    "apply Gadget default/a",
    "apply Gadget default/a-2",
    "delete Gadget default/a",
    "delete Gadget default/a-2",
  ]);
  const direct = found.get("direct-share");
  assert.deepEqual(stepsOf(direct), ["apply Gadget default/a-2"]);
  assert.deepEqual(direct?.sameAs, {
    scenario: "share",
    step: 2,
    isShared: true,
  });
  const refused = await made(
    [gadget("a")],
    (object) => (object["metadata"] as JsonObject)["name"] !== "a-2",
  );
  assert.equal(refused.has("share"), false);
});

test("scenarios have an object of the same name in another namespace", async () => {
  const found = await made([gadget("a")]);
  assert.deepEqual(stepsOf(found.get("elsewhere")), [
    "apply Namespace elsewhere …",
    "apply Gadget default/a",
    "apply Gadget elsewhere/a",
    "delete Gadget default/a",
  ]);
  const direct = found.get("direct-elsewhere");
  assert.deepEqual(stepsOf(direct), [
    "apply Namespace elsewhere …",
    "apply Gadget elsewhere/a",
  ]);
  assert.deepEqual(direct?.sameAs, {
    scenario: "elsewhere",
    step: 3,
    isShared: true,
  });
  const cluster = await made([{ ...gadget("a"), metadata: { name: "a" } }]);
  assert.equal(cluster.has("elsewhere"), false);
});

test("scenarios change each field and back, if the server accepts both", async () => {
  const sizes = (object: JsonObject) => (object["spec"] as JsonObject)["size"];
  const both = await made([gadget("a")]);
  const change = both.get("change-spec.size");
  assert.deepEqual(stepsOf(change), Array(3).fill("apply Gadget default/a"));
  assert.deepEqual([change?.known, change?.backTo], [1, 0]);
  const steps = change?.steps.map((step) =>
    "apply" in step && sizes(step.apply)
  );
  assert.deepEqual([steps?.[0], steps?.[2]], [1, 1]);
  assert.notEqual(steps?.[1], 1);
  assert.deepEqual(both.get("direct-change-spec.size")?.sameAs, {
    scenario: "change-spec.size",
    step: 1,
  });
  assert.ok(both.has("change-spec.size-removed"));

  // A field that may grow alone has no way back.
  const grows = await made(
    [gadget("a")],
    (object, from) =>
      from === undefined || Number(sizes(object)) > Number(sizes(from)),
  );
  const only = grows.get("change-spec.size");
  assert.equal(only?.steps.length, 2);
  assert.equal(only?.backTo, undefined);
  assert.equal(grows.has("change-spec.size-removed"), false);

  // What can only be reached by a change has no direct creation.
  const indirect = await made(
    [gadget("a")],
    (_object, from) => from !== undefined,
  );
  assert.ok(indirect.has("change-spec.size"));
  assert.equal(indirect.has("direct-change-spec.size"), false);
});

test("scenarios change at most 24 fields of an object, with names of their own", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`f${at}`, { type: "integer" }]),
  );
  const spec = Object.fromEntries(
    Object.keys(properties).map((key) => [key, 1]),
  );
  const found = await made([gadget("a", spec)], () => true, properties);
  const names = [...found.keys()].filter((name) => name.startsWith("change-"));
  assert.equal(names.length, 24);
  const twice = await made([gadget("a"), gadget("b")]);
  assert.ok(twice.has("change-spec.size") && twice.has("change-spec.size-2"));
  assert.equal(twice.has("change-spec.size-1"), false);
});

test("scenarios change what is given, in the form of its kind", async () => {
  const secret: JsonObject = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "login" },
    data: { a: btoa("b") },
  };
  const found = await made([config, secret, gadget("a")]);
  const last = (name: string) => {
    const step = found.get(name)?.steps.at(-1);
    return step !== undefined && "apply" in step && step.apply["data"];
  };
  assert.deepEqual(last("given-given"), { a: "b-changed" });
  assert.deepEqual(last("given-login"), { a: btoa("changed") });
  const direct = found.get("direct-given-given");
  assert.deepEqual(stepsOf(direct), [
    "apply ConfigMap default/given …",
    "apply Secret default/login …",
    "apply Gadget default/a",
  ]);
  assert.deepEqual(direct?.sameAs, { scenario: "given-given", step: 3 });
});

test("scenarios of built-in kinds alone have these as their subjects", async () => {
  const found = await made([config]);
  assert.deepEqual(stepsOf(found.get("life")), [
    "apply ConfigMap default/given",
    "delete ConfigMap default/given",
    "apply ConfigMap default/given",
  ]);
  assert.equal(
    [...found.keys()].some((name) => name.startsWith("given")),
    false,
  );
  assert.equal((await made([])).size, 0);
});

test("appliedKeys and stepText name the objects of steps", async () => {
  const life = (await made([gadget("a")])).get("life");
  assert.deepEqual(appliedKeys(life!), [
    "Gadget default/a",
    "Gadget default/a",
  ]);
  assert.equal(stepText({ wait: "5m" }), "wait 5m");
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n" } };
  assert.equal(stepText({ patch: node }), "patch Node n");
});
