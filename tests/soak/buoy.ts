import { z } from "zod";
import { defineKind } from "../../core/crd/define_kind.ts";
import type {
  CustomResource,
  DefinedKind,
} from "../../core/crd/kind_definition.ts";

/** What is soaked. */
export type Buoy = CustomResource<
  { value: string },
  { value?: string | undefined }
>;

/**
 * The kind of buoys. Their status has no `observedGeneration`, which would be
 * written by itself after runs that only look.
 */
export const Buoy: DefinedKind<Buoy> = defineKind({
  group: "soak.coracle.dev",
  version: "v1",
  kind: "Buoy",
  spec: z.object({ value: z.string() }),
  status: z.object({ value: z.string() }).partial(),
}) as unknown as DefinedKind<Buoy>;
