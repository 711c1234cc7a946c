import { z } from "zod";
import type { CustomResource } from "../../core/crd/kind_definition.ts";
import { defineKind } from "../../core/crd/define_kind.ts";
import type { DefinedKind } from "../../core/crd/kind_definition.ts";
import type { Condition } from "../../workflows/conditions/condition.ts";
import { readyColumns } from "../../workflows/conditions/ready_columns.ts";
import type { HandledRequests } from "../../workflows/conditions/requests.ts";

/** What a release asks for. */
export interface ReleaseSpec {
  version: string;
  suspend?: boolean | undefined;
}

/** What is reported of a release. */
export interface ReleaseStatus extends HandledRequests {
  observedGeneration?: number | undefined;
  conditions?: Condition[] | undefined;
  revision?: string | undefined;
}

/** A custom resource with conditions, for reconcilers of Flux's kind. */
export type Release = CustomResource<ReleaseSpec, ReleaseStatus>;

/** How a condition looks in a definition. */
const conditionSchema = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string(),
  message: z.string(),
  observedGeneration: z.int().optional(),
  lastTransitionTime: z.iso.datetime(),
});

/** The kind of releases; kubectl shows whether they are ready, and why not. */
export const Release: DefinedKind<Release> = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Release",
  spec: z.object({ version: z.string(), suspend: z.boolean().optional() }),
  status: z.object({
    observedGeneration: z.int(),
    conditions: z.array(conditionSchema),
    revision: z.string(),
    lastHandledReconcileAt: z.string(),
    lastHandledForceAt: z.string(),
  }).partial(),
  printerColumns: readyColumns,
}) as unknown as DefinedKind<Release>;
