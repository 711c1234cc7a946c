import type { OpenApiSchema } from "@coracle/operator/internal";
import { EARLIER } from "./builtin/data/earlier_release.ts";

/** Minor versions of Kubernetes that the server reproduces. */
export type KubernetesVersion = "1.34" | "1.35" | "1.36" | "1.37";

/** What a minor version of Kubernetes has, by recordings of its control plane. */
export interface KubernetesRelease {
  /** Version with the patch, such as `v1.36.3`. */
  readonly version: string;
  /**
   * Resources and subresources of the newest version that it lacks, such as
   * `deployments.apps` or `deployments.apps/scale`.
   */
  readonly lackingResources: readonly string[];
  /** Names of table columns, where it has fewer than the newest, by resource. */
  readonly columns: Readonly<Record<string, readonly string[]>>;
  /**
   * Whether names of Services begin with a letter; since 1.36 they may begin with
   * a digit, by the feature gate RelaxedServiceNameValidation.
   */
  readonly strictServiceNames: boolean;
  /** Fields of other versions that it lacks, by OpenAPI definition. */
  readonly lackingFields: Readonly<Record<string, readonly string[]>>;
  /**
   * Enumerations of OpenAPI that it has otherwise than the newest, by definition
   * and field; `undefined` for none.
   */
  readonly enumerations: Enumerations;
  /**
   * Whether OpenAPI gives the items of lists and maps an empty default, and has
   * the required fields and enumerations that 1.37 has changed.
   */
  readonly hasItemDefaults: boolean;
  /**
   * Whether validation is declarative, as from 1.37: each problem of a built-in
   * kind is reported once, and owner references by their places.
   */
  readonly isDeclarative: boolean;
  /**
   * Whether a write whose owners of fields cannot be determined, as when an object
   * moves to another version, keeps the earlier ones; to 1.36 it removes them.
   */
  readonly keepsOwners: boolean;
  /**
   * Whether bound PersistentVolumeClaims have the condition `Unused`, by the gate
   * PersistentVolumeClaimUnusedSinceTime, which is on from 1.37.
   */
  readonly marksUnusedClaims: boolean;
  /** How many releases before the newest the roles of a new cluster are. */
  readonly rolesBefore: number;
  /**
   * Whether features that 1.37 enables by default are off: HPAGeneration,
   * MaxUnavailableStatefulSet and VolumeLimitScaling.
   */
  readonly hasEarlierGates: boolean;
  /**
   * Whether the syntax of a patch is checked before its object is looked for, as
   * from 1.37, and errors speak of patches instead of YAML.
   */
  readonly checksPatchesFirst: boolean;
}

type Enumerations = Readonly<
  Record<string, Readonly<Record<string, readonly string[] | undefined>>>
>;
type LackingFields = KubernetesRelease["lackingFields"];

function together(...all: readonly LackingFields[]): LackingFields {
  const fields: Record<string, readonly string[]> = {};
  for (const one of all) {
    for (const [name, more] of Object.entries(one)) {
      fields[name] = [...fields[name] ?? [], ...more];
    }
  }
  return fields;
}

const LACKING_RESOURCES: readonly string[] = [
  ...EARLIER.lackingResources,
  "mutatingadmissionpolicies.admissionregistration.k8s.io",
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
];
const LACKING_IN_35: LackingFields = together(EARLIER.lackingFields, {
  "io.k8s.api.core.v1.PodSpec": ["schedulingGroup"],
  "io.k8s.api.core.v1.PodStatus": ["nodeAllocatableResourceClaimStatuses"],
  "io.k8s.api.core.v1.ResourceHealth": ["message"],
  "io.k8s.api.core.v1.VolumeMountStatus": ["volumeStatus"],
  "io.k8s.api.resource.v1.Device": ["nodeAllocatableResourceMappings"],
  "io.k8s.api.resource.v1.DeviceAttribute": [
    "bools",
    "ints",
    "strings",
    "versions",
  ],
  "io.k8s.api.storage.v1.CSIDriverSpec": ["preventPodSchedulingIfMissing"],
  "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta": ["shardInfo"],
});
const CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

const ADMISSION = "io.k8s.api.admissionregistration.v1";
const DEVICE = "io.k8s.api.resource.v1.Device";
const NO_SCOPE = { scope: undefined };
const NO_MODE = { allocationMode: undefined };
const TWO_EFFECTS = { effect: ["NoExecute", "NoSchedule"] };
const ENUMERATIONS_IN_34: Enumerations = {
  [`${ADMISSION}.MutatingWebhook`]: { reinvocationPolicy: undefined },
  [`${ADMISSION}.NamedRuleWithOperations`]: NO_SCOPE,
  [`${ADMISSION}.RuleWithOperations`]: NO_SCOPE,
  "io.k8s.api.core.v1.Toleration": { operator: ["Equal", "Exists"] },
  "io.k8s.api.resource.v1.ExactDeviceRequest": NO_MODE,
  [`${DEVICE}AllocationConfiguration`]: { source: undefined },
  [`${DEVICE}SubRequest`]: NO_MODE,
  [`${DEVICE}Taint`]: TWO_EFFECTS,
  [`${DEVICE}Toleration`]: TWO_EFFECTS,
};

/** What the releases up to 1.36 have in common. */
const TO_36 = {
  columns: EARLIER.columns,
  hasItemDefaults: true,
  isDeclarative: false,
  keepsOwners: false,
  marksUnusedClaims: false,
  hasEarlierGates: true,
  checksPatchesFirst: false,
} as const;

/** Releases by minor version, the newest last. */
export const RELEASES: Readonly<Record<KubernetesVersion, KubernetesRelease>> =
  {
    "1.34": {
      ...TO_36,
      version: "v1.34.4",
      lackingResources: LACKING_RESOURCES,
      strictServiceNames: true,
      enumerations: ENUMERATIONS_IN_34,
      rolesBefore: 3,
      lackingFields: together(LACKING_IN_35, {
        "io.k8s.api.core.v1.NodeStatus": ["declaredFeatures"],
        "io.k8s.api.core.v1.PodCertificateProjection": ["userAnnotations"],
        "io.k8s.api.core.v1.PodStatus": ["allocatedResources", "resources"],
        "io.k8s.api.storage.v1.CSIDriverSpec": ["serviceAccountTokenInSecrets"],
        [`${CRD}.CustomResourceDefinitionCondition`]: ["observedGeneration"],
        [`${CRD}.CustomResourceDefinitionStatus`]: ["observedGeneration"],
      }),
    },
    "1.35": {
      ...TO_36,
      version: "v1.35.4",
      lackingResources: LACKING_RESOURCES,
      strictServiceNames: true,
      enumerations: {},
      rolesBefore: 2,
      lackingFields: LACKING_IN_35,
    },
    "1.36": {
      ...TO_36,
      version: "v1.36.3",
      lackingResources: EARLIER.lackingResources,
      strictServiceNames: false,
      enumerations: {},
      rolesBefore: 1,
      lackingFields: EARLIER.lackingFields,
    },
    "1.37": {
      version: "v1.37.2",
      lackingResources: [],
      columns: {},
      strictServiceNames: false,
      enumerations: {},
      hasItemDefaults: false,
      isDeclarative: true,
      keepsOwners: true,
      marksUnusedClaims: true,
      rolesBefore: 0,
      hasEarlierGates: false,
      checksPatchesFirst: true,
      lackingFields: EARLIER.ownFields,
    },
  };

/** The release that is served unless another is asked for. */
export const DEFAULT_RELEASE: KubernetesRelease = RELEASES["1.37"];

/** What `/version` answers. */
export function versionInfo(
  { version }: KubernetesRelease,
): Readonly<Record<string, string>> {
  const [major = "", minor = ""] = version.slice(1).split(".");
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: version,
    gitCommit: "0000000000000000000000000000000000000000",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "go1.26.8",
    compiler: "gc",
    platform: "linux/amd64",
  };
}

/** Makes OpenAPI definitions those of a release, in place. */
export function adaptDefinitions(
  { lackingFields, enumerations, hasItemDefaults }: KubernetesRelease,
  definitions: Record<string, OpenApiSchema>,
): void {
  for (const [name, fields] of Object.entries(lackingFields)) {
    const properties = definitions[name]?.properties as
      | Record<string, unknown>
      | undefined;
    for (const field of fields) delete properties?.[field];
  }
  for (const [name, fields] of Object.entries(enumerations)) {
    const { properties = {}, ...rest } = definitions[name] ?? {};
    const changed = Object.entries(fields).map(([field, values]) => {
      const { enum: _, ...schema } = properties[field] ?? {};
      return [field, values ? { ...schema, enum: values } : schema] as const;
    });
    definitions[name] = {
      ...rest,
      properties: { ...properties, ...Object.fromEntries(changed) },
    };
  }
  if (!hasItemDefaults) return;
  for (
    const [name, { required, properties }] of Object.entries(
      EARLIER.changed,
    )
  ) {
    const { required: now, ...rest } = definitions[name] ?? {};
    const names = required ?? now ?? [];
    definitions[name] = {
      ...rest,
      ...names.length > 0 && { required: names },
      properties: { ...rest.properties, ...properties },
    } as OpenApiSchema;
  }
  for (const definition of Object.values(definitions)) {
    addItemDefaults(definition, definitions);
  }
}

/** Empty values by the type of a schema; bytes have none. */
const EMPTY: Readonly<Record<string, unknown>> = {
  boolean: false,
  integer: 0,
  string: "",
};

/** Adds empty defaults of items, with the `allOf` that they need. */
function addItemDefaults(
  schema: OpenApiSchema,
  definitions: Readonly<Record<string, OpenApiSchema>>,
): void {
  for (const property of Object.values(schema.properties ?? {})) {
    addItemDefaults(property, definitions);
  }
  for (const place of ["items", "additionalProperties"] as const) {
    const inner = schema[place];
    if (typeof inner !== "object") continue;
    addItemDefaults(inner, definitions);
    const { $ref, type = "", format } = inner;
    const target = $ref?.slice($ref.lastIndexOf("/") + 1) ?? "";
    const value = definitions[target]?.type === "object"
      ? { default: {}, allOf: [inner] }
      : type in EMPTY && format !== "byte"
      ? { default: EMPTY[type], ...inner }
      : inner;
    Object.assign(schema, { [place]: value });
  }
}
