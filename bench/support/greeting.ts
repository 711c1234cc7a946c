import { z } from "zod";
import { defineKind } from "../../core/crd/define_kind.ts";
import type {
  CustomResource,
  DefinedKind,
} from "../../core/crd/kind_definition.ts";

/** What the operators of `reconcile` greet by. */
export type Greeting = CustomResource<
  { name: string },
  { text?: string | undefined }
>;

/** The kind of a {@linkcode Greeting}. */
export const Greeting: DefinedKind<Greeting> = defineKind({
  group: "bench.coracle.dev",
  version: "v1",
  kind: "Greeting",
  spec: z.object({ name: z.string() }),
  status: z.object({ text: z.string() }).partial(),
});

/** What the status of one must say. */
export function greetingText(spec: { readonly name: string }): string {
  return `Hello, ${spec.name}.`;
}
