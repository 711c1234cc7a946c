import { z } from "zod";
import type { DefinedKind, UntypedObject } from "@coracle/operator/core";
import { defineKind } from "../../../core/crd/define_kind.ts";

/** Kind with three versions, each with fields that the others cannot express. */
export const Fleet: DefinedKind = defineKind({
  group: "sea.example.org",
  version: "v1",
  kind: "Fleet",
  spec: z.object({
    min: z.int(),
    max: z.int(),
    boats: z.array(z.object({ name: z.string(), mast: z.int().optional() }))
      .meta({
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
      }),
    notes: z.array(z.object({ text: z.string(), by: z.string() })).optional(),
  }),
  status: z.object({ afloat: z.int() }).partial(),
  versions: [
    {
      name: "v1alpha1",
      spec: z.object({ size: z.string(), colour: z.string().optional() }),
      up: ({ spec: { size } }) => {
        const min = Number(size);
        if (!Number.isInteger(min)) throw new Error(`no size: ${size}`);
        return { spec: { size: min } };
      },
      down: ({ spec: { size } }) => ({ spec: { size: String(size) } }),
    },
    {
      name: "v1beta1",
      spec: z.object({
        size: z.int(),
        boats: z.array(z.string()).optional(),
        notes: z.array(z.string()).optional(),
      }),
      up: ({ spec: { size, boats = [], notes } }) => ({
        spec: {
          min: size,
          max: size,
          boats: boats.map((name) => ({ name })),
          ...notes && { notes: notes.map((text) => ({ text, by: "" })) },
        },
      }),
      down: ({ spec: { min, boats, notes } }) => ({
        spec: {
          size: min,
          boats: boats.map(({ name }) => name),
          ...notes && { notes: notes.map(({ text }) => text) },
        },
      }),
    },
  ],
});

/** An object of a version. */
export function fleet(
  version: string,
  spec: object,
  metadata: object = {},
): UntypedObject {
  return {
    apiVersion: `sea.example.org/${version}`,
    kind: "Fleet",
    metadata: { name: "a", namespace: "default", uid: "1", ...metadata },
    spec,
    status: { afloat: 2 },
  };
}
