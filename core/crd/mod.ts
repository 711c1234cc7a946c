/**
 * Custom kinds: typed objects and CustomResourceDefinitions from schemas.
 *
 * {@linkcode defineKind} defines a kind by its names and by schemas of zod or any
 * other library that implements Standard Schema. Clients and controllers accept
 * the kind, and its objects have the types of the schemas.
 * {@linkcode crdManifest} returns the CustomResourceDefinition, and
 * {@linkcode installCrd} applies it to a server.
 *
 * Defaults, limits and patterns of a schema are enforced by the API server.
 * Extensions of Kubernetes are set by `.meta()`.
 *
 * The folder imports `api`, `patch` and `client`, but no cache, controller or
 * operator.
 *
 * @example A kind with a rule, a merge key and columns
 * ```ts
 * import { crdManifest, defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Fleet = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Fleet",
 *   shortNames: ["fl"],
 *   spec: z.object({
 *     boats: z.array(z.object({ name: z.string(), seats: z.int().min(1) }))
 *       .meta({
 *         "x-kubernetes-list-type": "map",
 *         "x-kubernetes-list-map-keys": ["name"],
 *       }),
 *     harbour: z.string().meta({
 *       "x-kubernetes-validations": [
 *         { rule: "self == oldSelf", message: "harbour is immutable" },
 *       ],
 *     }),
 *   }),
 *   status: z.object({ afloat: z.int() }).partial(),
 *   printerColumns: [
 *     { name: "Afloat", type: "integer", jsonPath: ".status.afloat" },
 *   ],
 * });
 *
 * const { versions } = crdManifest(Fleet).spec;
 * if (!versions[0]?.subresources?.status) throw new Error("Expected a status");
 * ```
 *
 * @module
 */

export { checkStatus } from "./check_status.ts";
export { crdManifest } from "./crd_manifest.ts";
export type { CrdConversion, CrdManifest } from "./crd_object.ts";
export { defineKind } from "./define_kind.ts";
export type { WebhookClientConfig } from "../client/webhook_host.ts";
export { installCrd } from "./install_crd.ts";
export type {
  ConversionInput,
  ConversionResult,
  ConversionStep,
  CrdVersion,
  CustomResource,
  DefinedKind,
  DefinedObject,
  KindDefinition,
  KindVersion,
  NextSchemas,
  OtherVersion,
  OtherVersions,
  SchemaAt,
  ValidationRule,
} from "./kind_definition.ts";
export {
  type AdmissionPolicy,
  mutatingPolicy,
  type MutatingPolicyOptions,
  type PolicyObject,
  type PolicyOperation,
  type PolicyOptions,
  validatingPolicy,
  type ValidatingPolicyOptions,
} from "./policies.ts";
export { immutable, rule } from "./rules.ts";
export * from "./standard_schema.ts";
