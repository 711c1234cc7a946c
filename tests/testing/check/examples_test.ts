import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind } from "@coracle/operator/crd";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import {
  exampleObjects,
  requireAccepted,
  scratchServer,
} from "../../../dev/testing/check/examples.ts";
import type { OperatorSource } from "../../../dev/testing/check/operator_source.ts";

const names = { group: "a.io", version: "v1" };
const spec = z.object({ size: z.int().optional() });
const Boat = defineKind({ ...names, kind: "Boat", spec });
const Sea = defineKind({ ...names, kind: "Sea", spec, scope: "Cluster" });
const source = {
  kinds: [Boat, Sea],
  primaries: [Boat],
} as object as OperatorSource;

/** Examples of a check, by the objects that its server accepts. */
async function examples(
  given: readonly JsonObject[] | undefined,
  accepts: (object: JsonObject) => boolean = () => true,
): Promise<readonly JsonObject[]> {
  return await exampleObjects({
    given,
    source,
    server: {
      accepts: (object) => Promise.resolve(accepts(object)),
      apply: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
  });
}

test("Examples without a namespace are in default, if they are in any", async () => {
  const placed = async (kind: string, namespace?: string) => {
    const metadata = { name: "a", ...namespace !== undefined && { namespace } };
    const [found] = await examples([{ apiVersion: "v1", kind, metadata }]);
    return Object(found?.["metadata"])["namespace"];
  };
  assert.equal(await placed("Boat"), "default");
  assert.equal(await placed("Boat", "docks"), "docks");
  assert.equal(await placed("ConfigMap"), "default");
  assert.equal(await placed("Sea"), undefined);
  assert.equal(await placed("ClusterRole"), undefined);
});

test("An example is made of each primary kind, the first that is accepted", async () => {
  const tried: JsonObject[] = [];
  for (const given of [undefined, []]) {
    const found = await examples(given);
    assert.deepEqual(found.map(({ kind }) => kind), ["Boat"]);
  }
  const [second] = await examples(undefined, (object) => {
    tried.push(object);
    return tried.length === 2;
  });
  assert.equal(second, tried[1]);
  assert.deepEqual(await examples(undefined, () => false), []);
});

test("A scratch server accepts changes by the rules of a kind, and keeps nothing", async () => {
  const rule = "self >= oldSelf";
  const size = z.int().meta({ "x-kubernetes-validations": [{ rule }] });
  const Raft = defineKind({
    ...names,
    kind: "Raft",
    spec: z.object({ size }),
  });
  const raft = (size: number) => ({
    apiVersion: "a.io/v1",
    kind: "Raft",
    metadata: { namespace: "default", name: "a" },
    spec: { size },
  });
  const { accepts, close } = await scratchServer([Raft]);
  assert.equal(await accepts(raft(2), raft(1)), true);
  assert.equal(await accepts(raft(1), raft(2)), false);
  assert.equal(await accepts(raft(1)), true);
  await close();
});

test("Examples that the server refuses end a check, and one may need another", async () => {
  const home = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "docks" },
  };
  const boat = (spec: object) => ({
    apiVersion: "a.io/v1",
    kind: "Boat",
    metadata: { namespace: "docks", name: "a" },
    spec,
  });
  await requireAccepted([home, boat({ size: 1 })], source.kinds);
  for (
    const [given, why] of [
      [[boat({})], /namespaces? "docks" not found/],
      [[home, boat({ size: "big" })], /\.spec\.size: expected numeric/],
      [[home, boat({ sise: 1 })], /\.spec\.sise: field not declared in schema/],
      [[{ ...home, kind: "Nmespace" }], /Nmespace/],
    ] as const
  ) {
    await assert.rejects(
      requireAccepted(given, source.kinds),
      (error: Error) => {
        assert.match(
          error.message,
          /^Cannot check the operator: the API server/,
        );
        assert.match(error.message, why);
        return true;
      },
    );
  }
});
