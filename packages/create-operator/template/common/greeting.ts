import { defineKind, type ObjectOf } from "@coracle/operator";
import { z } from "zod";

export const Greeting = defineKind({
  group: "sample.example.com",
  version: "v1",
  kind: "Greeting",
  spec: z.object({
    message: z.string().min(1).max(1000).describe("Text of the ConfigMap."),
    validHours: z.int().min(1).default(72)
      .describe("Hours after which the ConfigMap is removed."),
  }),
  status: z.object({ expired: z.boolean() }).partial(),
  printerColumns: [
    { name: "Expired", type: "boolean", jsonPath: ".status.expired" },
  ],
});
export type Greeting = ObjectOf<typeof Greeting>;
