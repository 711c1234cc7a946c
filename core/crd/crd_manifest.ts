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
  /** How the server classes the violation; `FieldValueInvalid` if absent. */
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

/** A column of `kubectl get`, as a CustomResourceDefinition says it. */
export interface CrdColumn {
  /** The heading. */
  readonly name: string;
  /** One of integer, number, string, boolean and date. */
  readonly type: string;
  /** Where the value stands, such as `.status.ready`. */
  readonly jsonPath: string;
  /** What it means. */
  readonly description?: string | undefined;
  /** How the type is written, such as `int32`. */
  readonly format?: string | undefined;
  /** Columns above zero are shown by `-o wide` only. */
  readonly priority?: number | undefined;
}

/** Which subresources a version has. */
export interface CrdSubresources {
  /** An empty object where the status is written apart. */
  readonly status?: Readonly<Record<string, never>> | undefined;
  /** Where replicas live. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string | undefined;
  } | undefined;
}

/** One version within a CustomResourceDefinition. */
export interface CrdVersion {
  /** Such as `v1`. */
  readonly name: string;
  /** Whether clients may use it. */
  readonly served: boolean;
  /** Whether objects are stored in it; it is so for one version. */
  readonly storage: boolean;
  /** Whether its use is warned about. */
  readonly deprecated?: boolean | undefined;
  /** The text of the warning, instead of the server's own. */
  readonly deprecationWarning?: string | undefined;
  /** What its objects may hold. */
  readonly schema: { readonly openAPIV3Schema: OpenApiSchema };
  /** Which parts of its objects are written apart. */
  readonly subresources?: CrdSubresources | undefined;
  /** The columns between the name and the end. */
  readonly additionalPrinterColumns?: readonly CrdColumn[] | undefined;
  /** The fields that field selectors may name. */
  readonly selectableFields?:
    | readonly { readonly jsonPath: string }[]
    | undefined;
}

/** The names of a kind within a CustomResourceDefinition. */
export interface CrdNames {
  /** The kind in the singular, such as `WebPage`. */
  readonly kind: string;
  /** The kind of its lists. */
  readonly listKind: string;
  /** The name in paths. */
  readonly plural: string;
  /** The name of one object for kubectl. */
  readonly singular: string;
  /** Short forms for kubectl. */
  readonly shortNames?: readonly string[] | undefined;
  /** Groups of kinds for kubectl. */
  readonly categories?: readonly string[] | undefined;
}

/** A CustomResourceDefinition as it is written to a server or a file. */
export interface CrdManifest {
  /** Always the same. */
  readonly apiVersion: "apiextensions.k8s.io/v1";
  /** Always the same. */
  readonly kind: "CustomResourceDefinition";
  /** Its name is `plural.group`. */
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  /** What it defines. */
  readonly spec: {
    readonly group: string;
    readonly scope: Scope;
    readonly names: CrdNames;
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
