import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPatterns } from "../../../../dev/apiserver/cel/pattern.ts";
import { compileRules } from "../../../../dev/apiserver/crd/cel/rule_validator.ts";

/** Messages of the violations of a rule on a list of numbers. */
async function messages(rule: string): Promise<readonly unknown[]> {
  await loadPatterns();
  const validator = compileRules({
    type: "object",
    properties: { list: { type: "array", items: { type: "integer" } } },
    "x-kubernetes-validations": [{ rule, message: "differs" }],
  }, true);
  const causes = validator?.validate({ list: [3, 1, 2, 3] }, undefined) ?? [];
  return causes.map(({ message }) => message);
}

for (
  const rule of [
    "self.list.reverse() == [3, 2, 1, 3]",
    "self.list.distinct() == [3, 1, 2]",
    "self.list.sort() == [1, 2, 3, 3]",
    "self.list.slice(1, 3) == [1, 2]",
    "self.list.slice(4, 4) == []",
  ]
) {
  test(`The list functions of CEL return new lists: ${rule}`, async () => {
    assert.deepEqual(await messages(rule), []);
    assert.equal((await messages(`!(${rule})`)).length, 1);
  });
}

test("slice() of CEL refuses indexes outside of the list", async () => {
  const refused = async (call: string) =>
    /cannot slice\((.*?) evaluating/.exec(
      String(await messages(`self.list.${call} == []`)),
    )?.[1];
  assert.deepEqual([
    await refused("slice(-1, 2)"),
    await refused("slice(2, 1)"),
    await refused("slice(0, 5)"),
  ], [
    "-1, 2), negative indexes not supported",
    "2, 1), start index must be less than or equal to end index",
    "0, 5), list is length 4",
  ]);
});
