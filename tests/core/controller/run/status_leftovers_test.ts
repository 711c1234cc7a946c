import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { statusLeftovers } from "../../../../core/controller/run/status_leftovers.ts";

/** Status with the fields that our patches and another manager own. */
function gadget(status: object, own: object, other: object): KubernetesObject {
  const entry = (
    manager: string,
    operation: "Apply" | "Update",
    of: object,
  ) => ({
    manager,
    operation,
    apiVersion: "example.com/v1",
    subresource: "status",
    fieldsType: "FieldsV1" as const,
    fieldsV1: { "f:status": of },
  });
  const managedFields = [
    entry("ours", "Update", own),
    entry("theirs", "Apply", other),
  ];
  return { metadata: { name: "a", managedFields }, status } as KubernetesObject;
}

test("statusLeftovers removes what nobody else owns, and what is empty without it", () => {
  const object = gadget(
    { limits: { a: "1", b: "2" }, phase: "Ready", used: { c: "3" } },
    {
      "f:limits": { "f:a": {}, "f:b": {} },
      "f:phase": {},
      "f:used": { "f:c": {} },
    },
    { "f:limits": { "f:b": {} }, "f:phase": {} },
  );
  assert.deepEqual(statusLeftovers(object, "ours"), {
    limits: { a: null },
    used: null,
  });
});

test("statusLeftovers empties an object that another manager has set empty", () => {
  const own = { "f:limits": { "f:a": {} } };
  const object = gadget({ limits: { a: "1" } }, own, { "f:limits": {} });
  assert.deepEqual(statusLeftovers(object, "ours"), { limits: { a: null } });
});

test("statusLeftovers keeps a whole list that another manager owns, too", () => {
  const own = { "f:names": {} };
  const object = gadget({ names: ["a"] }, own, { "f:names": {} });
  assert.equal(statusLeftovers(object, "ours"), undefined);
});

test("statusLeftovers removes an entry of a keyed list that nobody else owns", () => {
  const condition = (type: string) => ({ type, status: "True" });
  const key = (type: string) => `k:{"type":"${type}"}`;
  const fields = { ".": {}, "f:type": {}, "f:status": {} };
  const object = gadget(
    { conditions: [condition("Ready"), condition("Theirs")] },
    { "f:conditions": { [key("Ready")]: fields } },
    { "f:conditions": { [key("Theirs")]: fields } },
  );
  assert.deepEqual(statusLeftovers(object, "ours"), {
    conditions: [condition("Theirs")],
  });
});

test("statusLeftovers keeps the fields of an object that have no owner", () => {
  const own = { "f:limits": { "f:a": {} } };
  const object = gadget({ limits: { a: "1", b: "2" } }, own, {});
  object.metadata.managedFields?.push({
    manager: "third",
    operation: "Update",
  });
  assert.deepEqual(statusLeftovers(object, "ours"), { limits: { a: null } });
});

test("statusLeftovers removes nothing that its manager has applied", () => {
  const object = gadget({ a: "1", b: "2" }, { "f:a": {} }, {});
  const applied = {
    ...object.metadata.managedFields![0]!,
    operation: "Apply" as const,
    fieldsV1: { "f:status": { "f:b": {} } },
  };
  object.metadata.managedFields!.push(applied);
  assert.deepEqual(statusLeftovers(object, "ours"), { a: null });
});

test("statusLeftovers removes an item of a set that nobody else owns", () => {
  const object = gadget(
    { names: ["ours", "theirs"] },
    { "f:names": { 'v:"ours"': {}, 'v:"theirs"': {} } },
    { "f:names": { 'v:"theirs"': {} } },
  );
  assert.deepEqual(statusLeftovers(object, "ours"), { names: ["theirs"] });
});
