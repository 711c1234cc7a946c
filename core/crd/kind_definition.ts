import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject, WrittenAs } from "../api/object.ts";
import type { CrdVersion } from "./crd_object.ts";
import type { StandardSchema, Stored } from "./standard_schema.ts";

/**
 * An object of a kind that a program defined itself.
 *
 * @typeParam Spec What the user asks for.
 * @typeParam Status What the operator reports; `never` if it reports nothing.
 */
export interface CustomResource<Spec, Status> extends KubernetesObject {
  /** What the user asks for. */
  spec: Spec;
  /** What the operator reports. */
  status?: Status | undefined;
}

/** What each version of a kind may say for itself. */
export interface KindVersion {
  /**
   * What the user asks for; it must describe an object. The server holds objects
   * to what JSON Schema and CEL can say of it, and fills in its defaults. No
   * object is run through the schema itself: what transforms a value, or refines
   * it by code, has no effect on what is read.
   */
  readonly spec: StandardSchema;
  /**
   * What the operator reports; it must describe an object. Where it is given,
   * the status is a subresource, and one that does not fit it is refused.
   */
  readonly status?: StandardSchema | undefined;
  /**
   * Said by `kubectl explain`.
   *
   * @default {nothing}
   */
  readonly description?: string | undefined;
  /**
   * Columns of `kubectl get` between the name and the age.
   *
   * @default {none}
   */
  readonly printerColumns?:
    | readonly {
      /** Heading of the column, such as `Ready`. */
      readonly name: string;
      /** Type of the value. */
      readonly type: "integer" | "number" | "string" | "boolean" | "date";
      /** JSON path of the value, such as `.status.ready`. */
      readonly jsonPath: string;
      /** Description of the column. */
      readonly description?: string | undefined;
      /** Format of the type, such as `int32`. */
      readonly format?: string | undefined;
      /**
       * Priority; columns above zero are only shown by `-o wide`.
       *
       * @default {0}
       */
      readonly priority?: number | undefined;
    }[]
    | undefined;
  /**
   * Paths that field selectors may use, such as `.spec.color`.
   *
   * @default {only those of every kind}
   */
  readonly selectableFields?: readonly string[] | undefined;
  /** Paths of the fields of the `scale` subresource; absent without one. */
  readonly scale?: {
    /** Path of the desired replicas, such as `.spec.replicas`. */
    readonly specReplicasPath: string;
    /** Path of the observed replicas, such as `.status.replicas`. */
    readonly statusReplicasPath: string;
    /** Path of a text field with a label selector, such as `.status.selector`. */
    readonly labelSelectorPath?: string | undefined;
  } | undefined;
  /**
   * CEL rules about the whole object; those of a field go into its `.meta()`.
   *
   * @default {none}
   */
  readonly validations?:
    | readonly {
      /** CEL expression that must hold, of `self` and, on updates, `oldSelf`. */
      readonly rule: string;
      /** Message for the user if the rule does not hold. */
      readonly message?: string | undefined;
      /** CEL expression that returns the message. */
      readonly messageExpression?: string | undefined;
      /** Reason of the violation; `FieldValueInvalid` if absent. */
      readonly reason?:
        | "FieldValueInvalid"
        | "FieldValueForbidden"
        | "FieldValueRequired"
        | "FieldValueDuplicate"
        | undefined;
      /** Path of the field that violates the rule, such as `.min`. */
      readonly fieldPath?: string | undefined;
      /** Whether the rule also holds on creation, with an optional `oldSelf`. */
      readonly optionalOldSelf?: boolean | undefined;
    }[]
    | undefined;
  /**
   * Whether clients may use the version.
   *
   * @default {true}
   */
  readonly served?: boolean | undefined;
  /**
   * Whether its use is warned about; a text replaces the server's own.
   *
   * @default {false}
   */
  readonly deprecated?: boolean | string | undefined;
}

/** Printer column of a kind's definition. */
export type PrinterColumn = NonNullable<KindVersion["printerColumns"]>[number];

/** Paths of the `scale` subresource of a kind's definition. */
export type ScaleFields = NonNullable<KindVersion["scale"]>;

/** CEL rule, as an item of `x-kubernetes-validations`. */
export type ValidationRule = NonNullable<KindVersion["validations"]>[number];

/**
 * What {@linkcode defineKind} takes: the names of a kind, and the schema of one
 * version, the one that the program speaks.
 */
export interface KindDefinition extends KindVersion {
  /** The API group, such as `sample.coracle.dev`. */
  readonly group: string;
  /** The version that the program speaks, such as `v1`. */
  readonly version: string;
  /** The kind in the singular, such as `WebPage`. */
  readonly kind: string;
  /**
   * The name in paths.
   *
   * @default {the plural of the kind in lower case, by the rules of English}
   */
  readonly plural?: string | undefined;
  /**
   * The name of one object for kubectl.
   *
   * @default {the kind in lower case}
   */
  readonly singular?: string | undefined;
  /**
   * The kind of its lists.
   *
   * @default {the kind followed by List}
   */
  readonly listKind?: string | undefined;
  /**
   * Short forms for kubectl, such as `wp`.
   *
   * @default {none}
   */
  readonly shortNames?: readonly string[] | undefined;
  /**
   * Groups of kinds for kubectl, such as `all`.
   *
   * @default {none}
   */
  readonly categories?: readonly string[] | undefined;
  /**
   * Whether its objects live in namespaces.
   *
   * @default {"Namespaced"}
   */
  readonly scope?: "Namespaced" | "Cluster" | undefined;
  /**
   * Further versions, by name, that the same objects can be read in.
   *
   * @default {none}
   */
  readonly versions?: Readonly<Record<string, KindVersion>> | undefined;
  /**
   * The version that objects are stored in.
   *
   * @default {the `version`}
   */
  readonly storageVersion?: string | undefined;
  /**
   * Labels of the CustomResourceDefinition.
   *
   * @default {none}
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Annotations of the CustomResourceDefinition.
   *
   * @default {none}
   */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * The type of a definition's objects: as they are read, with defaults, and for
 * writers as they may be written, without.
 */
export type DefinedObject<D extends KindDefinition> =
  & CustomResource<
    Stored<NonNullable<D["spec"]["~standard"]["types"]>["output"]>,
    D["status"] extends StandardSchema
      ? Stored<NonNullable<D["status"]["~standard"]["types"]>["output"]>
      : never
  >
  & WrittenAs<
    CustomResource<
      Stored<NonNullable<D["spec"]["~standard"]["types"]>["input"]>,
      D["status"] extends StandardSchema
        ? Stored<NonNullable<D["status"]["~standard"]["types"]>["input"]>
        : never
    >
  >;

/**
 * A kind whose CustomResourceDefinition the program itself carries.
 *
 * @typeParam T The type of its objects.
 */
export interface DefinedKind<T extends KubernetesObject = KubernetesObject>
  extends ResolvedKind<T> {
  /** The name of one object for kubectl. */
  readonly singular: string;
  /** The kind of its lists. */
  readonly listKind: string;
  /** Short forms for kubectl. */
  readonly shortNames: readonly string[];
  /** Groups of kinds for kubectl. */
  readonly categories: readonly string[];
  /**
   * Labels of the CustomResourceDefinition.
   *
   * @default {none}
   */
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Annotations of the CustomResourceDefinition.
   *
   * @default {none}
   */
  readonly annotations: Readonly<Record<string, string>>;
  /** All versions, as the CustomResourceDefinition says them. */
  readonly versions: readonly CrdVersion[];
  /** The schema of the spec, as it was given. */
  readonly specSchema: StandardSchema;
  /** The schema of the status, as it was given. */
  readonly statusSchema: StandardSchema | undefined;
}

/** Whether a kind carries its own CustomResourceDefinition. */
export function isDefinedKind<T extends KubernetesObject>(
  kind: ResolvedKind<T> | { readonly kind: string },
): kind is DefinedKind<T> {
  return "specSchema" in kind && "versions" in kind;
}
