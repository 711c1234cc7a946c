import { z } from "zod";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { defineKind } from "../../core/crd/define_kind.ts";

/** Primary of the soak. */
export type Buoy = CustomResource<
  { value: string },
  { value?: string | undefined }
>;

/**
 * Kind of the buoys. Their status has no `observedGeneration`, which would be
 * written automatically after runs that only read.
 */
export const Buoy: DefinedKind<Buoy> = defineKind({
  group: "soak.coracle.dev",
  version: "v1",
  kind: "Buoy",
  spec: z.object({ value: z.string() }),
  status: z.object({ value: z.string() }).partial(),
}) as unknown as DefinedKind<Buoy>;
