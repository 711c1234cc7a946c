import type { Scope } from "../api/kind.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import type { DefinedKind } from "./kind_definition.ts";

/** A CEL rule, as `x-kubernetes-validations` says it. */
export interface ValidationRule {
  /** The expression that must hold; `self` is the value, `oldSelf` the stored. */
  readonly rule: string;
  /** What the user is told when it does not hold. */
  readonly message?: string | undefined;
  /** An expression that gives the message. */
  readonly messageExpression?: string | undefined;
  readonly reason?:
    | "FieldValueInvalid"
    | "FieldValueForbidden"
    | "FieldValueRequired"
    | "FieldValueDuplicate"
    | undefined;
  /** Which field below is to blame, such as `.min`. */
  readonly fieldPath?: string | undefined;
  /** Whether the rule also holds on creation, with `oldSelf` an optional. */
  readonly optionalOldSelf?: boolean | undefined;
}

/** One version within a CustomResourceDefinition. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean | undefined;
  readonly deprecationWarning?: string | undefined;
  readonly schema: { readonly openAPIV3Schema: OpenApiSchema };
  readonly subresources?: {
    readonly status?: Readonly<Record<string, never>> | undefined;
    readonly scale?: {
      readonly specReplicasPath: string;
      readonly statusReplicasPath: string;
      readonly labelSelectorPath?: string | undefined;
    } | undefined;
  } | undefined;
  readonly additionalPrinterColumns?:
    | readonly {
      readonly name: string;
      readonly type: string;
      readonly jsonPath: string;
      readonly description?: string | undefined;
      readonly format?: string | undefined;
      readonly priority?: number | undefined;
    }[]
    | undefined;
  readonly selectableFields?:
    | readonly { readonly jsonPath: string }[]
    | undefined;
}

/** A CustomResourceDefinition as it is written to a server or a file. */
export interface CrdManifest {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly spec: {
    readonly group: string;
    readonly scope: Scope;
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[] | undefined;
      readonly categories?: readonly string[] | undefined;
    };
    readonly versions: readonly CrdVersion[];
  };
}

/**
 * The CustomResourceDefinition of a kind, as plain data that can be sent to a
 * server or written as YAML.
 *
 * @param kind What {@linkcode defineKind} gave.
 *
 * @example Write it to a file
 * ```ts
 * import { crdManifest, defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Lamp = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Lamp",
 *   spec: z.object({ on: z.boolean() }),
 * });
 * const json = JSON.stringify(crdManifest(Lamp), undefined, 2);
 * if (!json.includes("lamps.sample.coracle.dev")) throw new Error("No name");
 * ```
 */
export function crdManifest(kind: DefinedKind): CrdManifest {
  const { group, scope, plural, singular, listKind, labels, annotations } =
    kind;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      ...(isEmpty(labels) ? {} : { labels }),
      ...(isEmpty(annotations) ? {} : { annotations }),
    },
    spec: {
      group,
      scope,
      names: {
        kind: kind.kind,
        listKind,
        plural,
        singular,
        ...(isEmpty(kind.shortNames) ? {} : { shortNames: kind.shortNames }),
        ...(isEmpty(kind.categories) ? {} : { categories: kind.categories }),
      },
      versions: kind.versions,
    },
  };
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}
