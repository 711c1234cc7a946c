import { builtIn, type ResolvedKind, type Scope } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import type { CrdVersion } from "./kind_definition.ts";

/** CustomResourceDefinition, as it is written to a server or a file. */
export interface CrdManifest {
  /** API version of CustomResourceDefinitions. */
  readonly apiVersion: "apiextensions.k8s.io/v1";
  /** Kind: always `CustomResourceDefinition`. */
  readonly kind: "CustomResourceDefinition";
  /** Metadata; the name is `plural.group`. */
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  /** Definition of the kind. */
  readonly spec: {
    /** API group of the kind. */
    readonly group: string;
    /** Scope of the objects. */
    readonly scope: Scope;
    /** Names of the kind. */
    readonly names: {
      /** Name of the kind, such as `WebPage`. */
      readonly kind: string;
      /** Kind of lists of the objects, such as `WebPageList`. */
      readonly listKind: string;
      /** Plural name, as in paths of the API. */
      readonly plural: string;
      /** Singular name, for kubectl. */
      readonly singular: string;
      /** Short names, for kubectl. */
      readonly shortNames?: readonly string[] | undefined;
      /** Categories, for kubectl. */
      readonly categories?: readonly string[] | undefined;
    };
    /** Versions of the kind. */
    readonly versions: readonly CrdVersion[];
    /** Conversion between the versions; absent if all have the same content. */
    readonly conversion?: CrdConversion | undefined;
  };
}

/** Conversion of a CustomResourceDefinition by a webhook. */
export interface CrdConversion {
  /** Strategy: always `Webhook`. */
  readonly strategy: "Webhook";
  /** Webhook that converts the objects. */
  readonly webhook: {
    /** Place where an API server calls it. */
    readonly clientConfig?: WebhookClientConfig | undefined;
    /** Versions of ConversionReview that it answers. */
    readonly conversionReviewVersions: readonly string[];
  };
}

/** Conversion by a webhook in a CustomResourceDefinition. */
export function crdConversion(
  clientConfig: WebhookClientConfig | undefined,
): CrdConversion {
  return {
    strategy: "Webhook",
    webhook: {
      ...clientConfig !== undefined && { clientConfig },
      conversionReviewVersions: ["v1"],
    },
  };
}

/** Names of a kind in a CustomResourceDefinition. */
export type CrdNames = CrdManifest["spec"]["names"];

/** Condition of a CustomResourceDefinition, such as `Established`. */
export interface CrdCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  /** Machine-readable reason, in CamelCase. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Time of the last change of the status. */
  readonly lastTransitionTime?: string | undefined;
}

/** CustomResourceDefinition, as a server returns it. */
export interface CrdObject extends KubernetesObject {
  spec: CrdManifest["spec"];
  /** Status, written by the server. */
  status?: {
    readonly conditions?: readonly CrdCondition[] | undefined;
    readonly acceptedNames?: CrdNames | undefined;
    readonly storedVersions?: readonly string[] | undefined;
  } | undefined;
}

export const CRD_KIND: ResolvedKind<CrdObject> = builtIn(
  "CustomResourceDefinition",
  "Cluster",
  "apiextensions.k8s.io",
);

/** Returns a condition of a definition, if the server has set it. */
export function crdCondition(
  crd: CrdObject,
  type: "Established" | "NamesAccepted" | "Terminating",
): CrdCondition | undefined {
  return crd.status?.conditions?.find((condition) => condition.type === type);
}
