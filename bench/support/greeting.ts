import { z } from "zod";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { defineKind } from "../../core/crd/define_kind.ts";

/** Custom resource of the bench `reconcile`. */
export type Greeting = CustomResource<
  { name: string },
  { text?: string | undefined }
>;

/** Kind of a {@linkcode Greeting}. */
export const Greeting: DefinedKind<Greeting> = defineKind({
  group: "bench.coracle.dev",
  version: "v1",
  kind: "Greeting",
  spec: z.object({ name: z.string() }),
  status: z.object({ text: z.string() }).partial(),
});

/** Expected text of a status. */
export function greetingText(spec: { readonly name: string }): string {
  return `Hello, ${spec.name}.`;
}

/** Number of concurrent runs of every operator of Greetings. */
export const CONCURRENCY = 10;
