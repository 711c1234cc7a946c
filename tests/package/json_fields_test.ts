import assert from "node:assert/strict";
import { test } from "node:test";
import { declaredFields } from "../support/declared_fields.ts";
import { documentedFields } from "../support/documented_json.ts";

const FILES = {
  plan: ["plan/plan_report.ts", "plan/snapshot.ts"],
  replay: ["replay/replay_report.ts", "replay/compare_requests.ts"],
} as const;

async function declared(
  name: string,
  guide: keyof typeof FILES,
): Promise<readonly string[]> {
  const files = FILES[guide].map((file) => `dev/testing/${file}`);
  return (await declaredFields(name, files)).toSorted();
}

test("The guide of plans lists each field of their JSON, and no other", async () => {
  const fields = await declared("PlanReport", "plan");
  // They have the form of the changes.
  const own = fields.filter((field) => !field.startsWith("dropped[]"));
  assert(own.length < fields.length);
  assert.deepEqual(documentedFields("plan").toSorted(), own);
});

test("The guide of replays lists each field of their JSON, and no other", async () => {
  const fields = await declared("ReplayReport", "replay");
  assert.deepEqual(documentedFields("replay").toSorted(), fields);
});
