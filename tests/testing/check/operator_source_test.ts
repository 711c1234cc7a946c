import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { defineKind, Operator, untyped } from "@coracle/operator/core";
import { watch } from "@coracle/operator/sources";
import { host } from "../../../core/client/host.ts";
import {
  isDefinitionOf,
  operatorSource,
  shownPath,
} from "../../../dev/testing/check/operator_source.ts";

test("shownPath gives a path that a shell reads as one word", () => {
  const here = process.cwd();
  const cases = [
    ["a.ts", "a.ts"],
    ["./b/a.ts", "b/a.ts"],
    [pathToFileURL(join(here, "my operators", "a.ts")), "'my operators/a.ts'"],
    [pathToFileURL(join(here, "a.ts")).href, "a.ts"],
    ["/other/it's.ts", "'/other/it'\\''s.ts'"],
  ] as const;
  for (const [given, shown] of cases) assert.equal(shownPath(given), shown);
});

const names = { version: "v1", spec: z.object({}) };
const Boat = defineKind({ ...names, group: "a.io", kind: "Boat" });
const Seen = defineKind({ ...names, group: "a.io", kind: "Seen" });
const Given = defineKind({ ...names, group: "a.io", kind: "Given" });

test("operatorSource has the kinds that an operator defines, or is given", async () => {
  const other = untyped({ group: "b.io", version: "v1", kind: "Pod" });
  const source = await operatorSource((options) => {
    const operator = new Operator(options);
    operator.register(Boat, { reconcile() {} }, {
      sources: [watch(Seen, { readOnly: true, references: () => [] })],
    });
    operator.register(other, { reconcile() {} });
    return operator;
  }, { kinds: [Given] });
  assert.deepEqual(source.kinds.map(({ kind }) => kind).toSorted(), [
    "Boat",
    "Given",
    "Seen",
  ]);
  // The built-in Pod is of another group.
  assert.deepEqual(source.unserved.map(({ group }) => group), ["b.io"]);
  assert.equal(source.kindOf("a.io", "boats"), "Boat");
  assert.equal(source.kindOf("", "pods"), "Pod");
  assert.equal(source.kindOf("b.io", "others"), "others");
});

test("operatorSource leaves fetch and the host as they were", async () => {
  const { fetch } = globalThis;
  const file = new URL("fixtures/copier.ts", import.meta.url);
  await operatorSource(file);
  assert.equal(globalThis.fetch, fetch);
  assert.equal(host().operators, undefined);
});

test("isDefinitionOf compares the kind of an object, the group and the name", () => {
  const definition = (group: string, kind: string) => ({
    kind: "CustomResourceDefinition",
    spec: { group, names: { kind } },
  });
  assert.equal(isDefinitionOf(definition("a.io", "Boat"), Boat), true);
  assert.equal(isDefinitionOf(definition("b.io", "Boat"), Boat), false);
  assert.equal(isDefinitionOf(definition("a.io", "Ship"), Boat), false);
  const other = { ...definition("a.io", "Boat"), kind: "Pod" };
  assert.equal(isDefinitionOf(other, Boat), false);
});
