import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { CrdManifest, CrdNames } from "./crd_manifest.ts";

/** What the API server says about a definition, such as `Established`. */
export interface CrdCondition {
  /** What is stated, such as `Established`. */
  readonly type: string;
  /** Whether it holds. */
  readonly status: "True" | "False" | "Unknown";
  /** Why, in one word. */
  readonly reason?: string | undefined;
  /** Why, for a person. */
  readonly message?: string | undefined;
  /** When the status changed last. */
  readonly lastTransitionTime?: string | undefined;
}

/** A CustomResourceDefinition as a server gives it. */
export interface CrdObject extends KubernetesObject {
  /** What was asked for. */
  spec: CrdManifest["spec"];
  /** What the server made of it. */
  status?: {
    readonly conditions?: readonly CrdCondition[] | undefined;
    readonly acceptedNames?: CrdNames | undefined;
    readonly storedVersions?: readonly string[] | undefined;
  } | undefined;
}

/** The kind of CustomResourceDefinitions. */
export const CRD_KIND: ResolvedKind<CrdObject> = Object.freeze({
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  scope: "Cluster",
});

/** A condition of a definition, if the server has set it. */
export function crdCondition(
  crd: CrdObject,
  type: "Established" | "NamesAccepted" | "Terminating",
): CrdCondition | undefined {
  return crd.status?.conditions?.find((condition) => condition.type === type);
}
