import type { UntypedObject } from "@coracle/operator/client";
import { decodeOwners } from "../../dev/apiserver/merge/field_owner.ts";
import {
  applyManaged,
  type ManagedKind,
  updateManagedFields,
} from "../../dev/apiserver/merge/managed_fields.ts";
import { Schema } from "../../dev/apiserver/merge/schema.ts";

/** API version of the widgets. */
export const apiVersion = "example.com/v1";

const schema = new Schema({
  type: "object",
  properties: {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { type: "object" },
    spec: {
      type: "object",
      properties: {
        n: { type: "integer" },
        color: { type: "string" },
        deep: { type: "object", properties: { x: { type: "integer" } } },
        labels: { type: "object", additionalProperties: { type: "string" } },
        tags: {
          type: "array",
          items: { type: "string" },
          "x-kubernetes-list-type": "set",
        },
        steps: { type: "array", items: { type: "string" } },
        block: {
          type: "object",
          additionalProperties: { type: "string" },
          "x-kubernetes-map-type": "atomic",
        },
        parts: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            properties: {
              name: { type: "string" },
              size: { type: "integer" },
              note: { type: "string" },
            },
          },
        },
      },
    },
    status: {
      type: "object",
      properties: { phase: { type: "string" } },
    },
  },
});

/** Widgets, whose fields have every way to be merged. */
export const kind: ManagedKind = {
  schema: (version) => version === apiVersion ? schema : undefined,
  convert: ({ value }) => value,
  empty: () => ({ apiVersion, kind: "Widget", metadata: { name: "" } }),
};

/** Spec that managers apply. */
export interface Spec {
  [field: string]: unknown;
}

let seconds = 0;
const time = (): string =>
  new Date(Date.UTC(2024, 0, 1) + 1000 * seconds++).toISOString()
    .replace(".000Z", "Z");

/** The widget after a manager applied a spec, a second after the last write. */
export function apply(
  live: UntypedObject | undefined,
  manager: string,
  spec: Spec,
  force = false,
): UntypedObject {
  const applied = {
    apiVersion,
    kind: "Widget",
    metadata: { name: "a" },
    spec,
  };
  const { object: merged } = applyManaged(kind, { live, applied }, {
    manager,
    apiVersion,
    time: time(),
    force,
  });
  merged.metadata.uid = "1";
  return merged;
}

/** The widget after a manager wrote it as a whole, or a subresource of it. */
export function update(
  live: UntypedObject | undefined,
  manager: string,
  next: Partial<UntypedObject>,
  subresource?: string,
): UntypedObject {
  const object = structuredClone({
    apiVersion,
    kind: "Widget",
    metadata: { name: "a", uid: "1" },
    ...next,
  }) as UntypedObject;
  updateManagedFields(kind, { live, next: object }, {
    manager,
    apiVersion,
    subresource,
    time: time(),
  });
  return object;
}

/** The fields of each manager, by its name and the operation. */
export function owned(object: UntypedObject): Record<string, string[]> {
  return Object.fromEntries(
    [...decodeOwners(object.metadata.managedFields).values()].map((owner) => [
      `${owner.manager} ${owner.operation}`,
      owner.fields.toString().split("\n"),
    ]),
  );
}
