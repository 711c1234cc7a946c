import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject, ObjectMeta } from "../api/object.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import type { StandardSchema, Stored } from "./standard_schema.ts";

/**
 * Object of a custom kind.
 *
 * @typeParam Spec The type of the desired state.
 * @typeParam Status The type of the observed state; `never` if absent.
 */
export interface CustomResource<Spec, Status> extends KubernetesObject {
  /** Desired state, written by the user. */
  spec: Spec;
  /** Observed state, written by the operator. */
  status?: Status | undefined;
}

/** Rule in CEL, as an item of `x-kubernetes-validations`. */
export interface ValidationRule {
  /** CEL expression on `self` and, on updates, `oldSelf`; must be true. */
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
  /** Path of the field that violates the rule, such as `.spec.min`. */
  readonly fieldPath?: string | undefined;
  /** Whether the rule applies on creation too, with optional `oldSelf`. */
  readonly optionalOldSelf?: boolean | undefined;
  /**
   * The same rule in JavaScript, which is not sent to a server; only in `rules`
   * of a definition.
   */
  readonly twin?: ((self: never, oldSelf: never) => boolean) | undefined;
}

/** Options of one version of a kind. */
export interface KindVersion {
  /**
   * Schema of `spec`, which must be an object. The API server validates objects
   * by the JSON Schema and the CEL rules of the schema, and fills in its defaults.
   * Objects are not parsed by the schema itself: refinements in code have no
   * effect, and transformations are refused. Types of built-in kinds are
   * described by `schemaOf` of `@coracle/operator/kinds`.
   */
  readonly spec: StandardSchema;
  /**
   * Schema of `status`, which must be an object. With it, the status is a
   * subresource, and a status that does not match the schema is refused.
   */
  readonly status?: StandardSchema | undefined;
  /** Description of the kind for `kubectl explain`. */
  readonly description?: string | undefined;
  /**
   * Printer columns of `kubectl get`, between the name and the age.
   *
   * @default {[]}
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
   * Paths of the fields that field selectors support, such as `.spec.color`, in
   * addition to those of all kinds.
   *
   * @default {[]}
   */
  readonly selectableFields?: readonly string[] | undefined;
  /** Paths of the fields of the `scale` subresource, if there is one. */
  readonly scale?: {
    /** Path of the desired replicas, such as `.spec.replicas`. */
    readonly specReplicasPath: string;
    /** Path of the observed replicas, such as `.status.replicas`. */
    readonly statusReplicasPath: string;
    /** Path of a text field with a label selector, such as `.status.selector`. */
    readonly labelSelectorPath?: string | undefined;
  } | undefined;
  /**
   * Rules in CEL for the whole object, as `rule` and `immutable` return them;
   * those of a single field are set by its `.meta()`.
   *
   * @default {[]}
   */
  readonly rules?: readonly ValidationRule[] | undefined;
  /**
   * Whether the server serves the version.
   *
   * @default {true}
   */
  readonly served?: boolean | undefined;
  /**
   * Whether the server warns about the use of the version; a text replaces the
   * default warning.
   *
   * @default {false}
   */
  readonly deprecated?: boolean | string | undefined;
}

/**
 * Object of one version, as a conversion takes it: frozen.
 *
 * @typeParam Spec The type of the desired state in this version.
 */
export interface ConversionInput<Spec> {
  /** Kind, the same in all versions. */
  readonly kind: string;
  /** Metadata; labels and annotations are present, and may be empty. */
  readonly metadata: Readonly<ObjectMeta> & {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  /** Desired state. */
  readonly spec: Spec;
  /** Observed state, as this version has it; absent before the first write. */
  // deno-lint-ignore no-explicit-any -- its schema is not inferred
  readonly status?: any;
}

/**
 * Object of the neighbouring version, as a conversion returns it.
 *
 * @typeParam Spec The type of the desired state in the other version.
 */
export interface ConversionResult<Spec> {
  /**
   * Labels and annotations; those that are left out stay. Nothing else of the
   * metadata can change.
   */
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  } | undefined;
  /** Desired state, complete: an API server fills in no defaults after it. */
  readonly spec: Spec;
  /** Observed state. Without this field it stays as it is. */
  readonly status?: unknown;
}

/** Functions between a version and the next one. */
export interface ConversionStep {
  /** Function that converts an object to the next version. */
  readonly up: (object: never) => unknown;
  /** Function that converts an object of the next version back. */
  readonly down: (object: never) => unknown;
}

/**
 * Another version of a kind, with the functions that convert its objects to the
 * next version and back. Both are pure: they neither wait nor change what they
 * get. A version without them has the same content as the next.
 *
 * @typeParam Spec Schema of the spec of this version.
 * @typeParam NextSpec Schema of the spec of the next version.
 */
export interface OtherVersion<
  Spec extends StandardSchema = StandardSchema,
  NextSpec extends StandardSchema = StandardSchema,
> extends KindVersion {
  /** Name of the version, such as `v1beta1`. */
  readonly name: string;
  /** Schema of the spec. */
  readonly spec: Spec;
  /** Converts an object of this version to the next one in the list. */
  readonly up?:
    | ((
      object: ConversionInput<Stored<Spec>>,
    ) => ConversionResult<Stored<NextSpec>>)
    | undefined;
  /** Converts an object of the next version to this one. */
  readonly down?:
    | ((
      object: ConversionInput<Stored<NextSpec>>,
    ) => ConversionResult<Stored<Spec>>)
    | undefined;
}

/** Schemas of the versions after those of a list. */
export type NextSchemas<List extends readonly unknown[], Last> = List extends
  readonly [unknown, ...infer Rest] ? readonly [...Rest, Last]
  : readonly Last[];

/** Schema at an index of a list. */
export type SchemaAt<List, Index, Otherwise> = Index extends keyof List
  ? List[Index] extends StandardSchema ? List[Index] : Otherwise
  : Otherwise;

/**
 * Versions of a kind besides the one that the program uses, with the types of
 * their schemas and of their neighbours.
 *
 * @typeParam Specs Schemas of their specs.
 * @typeParam Spec Schema of the spec of the kind.
 */
export type OtherVersions<
  Specs extends readonly StandardSchema[],
  Spec extends StandardSchema,
> = {
  readonly [Index in keyof Specs]: OtherVersion<
    Specs[Index],
    SchemaAt<NextSchemas<Specs, Spec>, Index, Spec>
  >;
};

/** Version of a kind in a CustomResourceDefinition. */
export interface CrdVersion {
  /** Name of the version, such as `v1`. */
  readonly name: string;
  /** Whether clients may use the version. */
  readonly served: boolean;
  /** Whether objects are stored in this version; true for exactly one. */
  readonly storage: boolean;
  /** Whether the server warns about the use of the version. */
  readonly deprecated?: boolean | undefined;
  /** Text of the deprecation warning; the server has a default. */
  readonly deprecationWarning?: string | undefined;
  /** Structural schema of the objects. */
  readonly schema: { readonly openAPIV3Schema: OpenApiSchema };
  /** Subresources that are written separately. */
  readonly subresources?: {
    /** Status subresource, as an empty object; absent without one. */
    readonly status?: Readonly<Record<string, never>> | undefined;
    /** Paths of the fields of the `scale` subresource. */
    readonly scale?: KindVersion["scale"];
  } | undefined;
  /** Columns of `kubectl get`, after the name. */
  readonly additionalPrinterColumns?: KindVersion["printerColumns"];
  /** Fields that field selectors may use. */
  readonly selectableFields?:
    | readonly { readonly jsonPath: string }[]
    | undefined;
}

export type PrinterColumn = NonNullable<KindVersion["printerColumns"]>[number];

export type ScaleFields = NonNullable<KindVersion["scale"]>;

/**
 * Definition of a custom kind: its names, and the schemas of the version that the
 * program uses.
 */
export interface KindDefinition extends KindVersion {
  /** API group, such as `sample.coracle.dev`. */
  readonly group: string;
  /** Version that the program uses, such as `v1`. */
  readonly version: string;
  /** Name of the kind, such as `WebPage`. */
  readonly kind: string;
  /**
   * Plural name in paths. Defaults to the English plural of the kind in lower
   * case.
   */
  readonly plural?: string | undefined;
  /** Singular name for kubectl. Defaults to the kind in lower case. */
  readonly singular?: string | undefined;
  /** Kind of lists of objects. Defaults to the kind followed by `List`. */
  readonly listKind?: string | undefined;
  /**
   * Short names for kubectl, such as `wp`.
   *
   * @default {[]}
   */
  readonly shortNames?: readonly string[] | undefined;
  /**
   * Categories for kubectl, such as `all`.
   *
   * @default {[]}
   */
  readonly categories?: readonly string[] | undefined;
  /**
   * Scope: objects are in namespaces, or cluster-wide.
   *
   * @default {"Namespaced"}
   */
  readonly scope?: "Namespaced" | "Cluster" | undefined;
  /**
   * Other versions of the same objects, the oldest first, each with the functions
   * that convert to and from the next; the last one to and from `version`.
   *
   * @default {[]}
   */
  readonly versions?: readonly OtherVersion[] | undefined;
  /** Version in which objects are stored. Defaults to `version`. */
  readonly storageVersion?: string | undefined;
  /**
   * Labels of the CustomResourceDefinition.
   *
   * @default {{}}
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Annotations of the CustomResourceDefinition.
   *
   * @default {{}}
   */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * Type of the objects of a definition.
 *
 * @typeParam D The type of the definition.
 * @typeParam Side Objects that are written, where fields with a default are
 * optional, or read.
 */
export type DefinedObject<
  D extends Pick<KindDefinition, "spec" | "status">,
  Side extends "input" | "output" = "output",
> =
  // A mapped type, unlike a name, shows the fields in editors and errors.
  CustomResource<Stored<D["spec"], Side>, Stored<D["status"], Side>> extends
    infer T ? { [K in keyof T]: T[K] } : never;

/**
 * Descriptor of a custom kind, with its CustomResourceDefinition.
 *
 * @typeParam T The type of the objects.
 */
export interface DefinedKind<T extends KubernetesObject = KubernetesObject>
  extends ResolvedKind<T> {
  /** Singular name for kubectl. */
  readonly singular: string;
  /** Kind of lists of objects. */
  readonly listKind: string;
  /** Short names for kubectl. */
  readonly shortNames: readonly string[];
  /** Categories for kubectl. */
  readonly categories: readonly string[];
  /** Labels of the CustomResourceDefinition. */
  readonly labels: Readonly<Record<string, string>>;
  /** Annotations of the CustomResourceDefinition. */
  readonly annotations: Readonly<Record<string, string>>;
  /** All versions, as they are in the CustomResourceDefinition. */
  readonly versions: readonly CrdVersion[];
  /** Rules for the whole object by version, with their twins. */
  readonly rules?:
    | Readonly<Record<string, readonly ValidationRule[]>>
    | undefined;
  /** Paths of the fields with checks in code, which no server runs, by version. */
  readonly checkedInCode?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  /** Conversion between the versions; absent if all have the same content. */
  readonly conversion?: {
    /** Names of all versions, the oldest first. */
    readonly versions: readonly string[];
    /** Functions from each version to the next; undefined if they are alike. */
    readonly steps: readonly (ConversionStep | undefined)[];
  } | undefined;
  /** Schema of the spec, as passed to `defineKind`. */
  readonly specSchema: StandardSchema;
  /** Schema of the status, as passed to `defineKind`. */
  readonly statusSchema: StandardSchema | undefined;
}

/** Whether a kind was created by `defineKind`. */
export function isDefinedKind<T extends KubernetesObject>(
  kind: ResolvedKind<T> | { readonly kind: string },
): kind is DefinedKind<T> {
  return typeof kind === "object" && kind !== null && "specSchema" in kind &&
    "versions" in kind;
}
