import { z } from "zod";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import type { ConditionedStatus } from "@coracle/operator/workflows";
import { defineKind } from "../../core/crd/define_kind.ts";
import {
  conditionedStatus,
  readyColumns,
} from "../../workflows/conditions/status_schema.ts";

/** Spec of a release. */
export interface ReleaseSpec {
  version: string;
  suspend?: boolean | undefined;
}

/** Status of a release. */
export interface ReleaseStatus extends ConditionedStatus {
  revision?: string | undefined;
}

/** A custom resource with conditions, for reconcilers of Flux's kind. */
export type Release = CustomResource<ReleaseSpec, ReleaseStatus>;

/** The kind of releases; kubectl shows whether they are ready, and why not. */
export const Release: DefinedKind<Release> = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Release",
  spec: z.object({ version: z.string(), suspend: z.boolean().optional() }),
  status: conditionedStatus(z.object({ revision: z.string() })),
  printerColumns: readyColumns,
});
