import { timestamp, type UntypedObject } from "@coracle/operator/client";
import {
  type CrdCondition,
  type CrdObject,
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "@coracle/operator/internal";
import { CRD_CLEANUP_FINALIZER, type ResourceDefinition } from "../registry.ts";
import { formatWarnings } from "./crd_warnings.ts";
import { createCauses, updateCauses } from "./definition_rules/crd_rules.ts";

/** Lifecycle of CustomResourceDefinitions. */
export const CRD_LIFECYCLE: Pick<
  ResourceDefinition,
  | "prepareForCreate"
  | "prepareForUpdate"
  | "prepareForDeletion"
  | "validateCreate"
  | "validateUpdate"
  | "warnings"
> = {
  prepareForCreate(object) {
    object.status = { ...EMPTY_STATUS };
    recordStorageVersion(object);
  },
  prepareForUpdate(object, live, { subresource }) {
    if (subresource === "status") return;
    object.status = structuredClone(live.status);
    recordStorageVersion(object);
    if (!jsonEquals(object.spec, live.spec)) {
      object.metadata.generation = (live.metadata.generation ?? 0) + 1;
    }
  },
  prepareForDeletion(object, { now }) {
    const { finalizers = [] } = object.metadata;
    if (!finalizers.includes(CRD_CLEANUP_FINALIZER)) {
      object.metadata.finalizers = [...finalizers, CRD_CLEANUP_FINALIZER];
    }
    setTerminating(object, now);
  },
  validateCreate: (object) => createCauses(object),
  validateUpdate: (object, live, { subresource }) =>
    subresource === "status" ? [] : updateCauses(object, live),
  warnings: formatWarnings,
};

const EMPTY_STATUS = {
  conditions: null,
  acceptedNames: { plural: "", kind: "" },
  storedVersions: null as readonly string[] | null,
};

/** Sets the defaults of a CRD, in place. */
export function setCrdDefaults(object: UntypedObject): void {
  const { spec, status } = object as {
    readonly spec?: {
      names?: Record<string, unknown>;
      versions?: { schema?: { openAPIV3Schema?: JsonObject } }[] | null;
      conversion?: {
        webhook?: { clientConfig?: { service?: { port?: number } } };
      };
    };
    status?: Record<string, unknown>;
  };
  if (spec === undefined) return;
  for (const { schema } of spec.versions ?? []) {
    if (schema?.openAPIV3Schema) dropSchemaNulls(schema.openAPIV3Schema);
  }
  const { names } = spec;
  if (names) {
    const kind = typeof names.kind === "string" ? names.kind : "";
    if (!names.singular && kind) names.singular = kind.toLowerCase();
    if (!names.listKind && kind) names.listKind = `${kind}List`;
  }
  spec.conversion ??= { strategy: "None" } as object;
  const service = spec.conversion.webhook?.clientConfig?.service;
  if (service) service.port ??= 443;
  const stored = status?.storedVersions as readonly string[] | undefined;
  if (stored?.length) return;
  const storage = storageVersion(object);
  if (storage !== undefined) {
    object.status = { ...EMPTY_STATUS, ...status, storedVersions: [storage] };
  }
}

function storageVersion(object: UntypedObject): string | undefined {
  const { spec } = object as unknown as Partial<CrdObject>;
  return spec?.versions?.find((version) => version.storage)?.name;
}

/** Adds the storage version to `status.storedVersions`, which keeps earlier ones. */
function recordStorageVersion(object: UntypedObject): void {
  const storage = storageVersion(object);
  const status = (object.status ?? { ...EMPTY_STATUS }) as {
    storedVersions?: readonly string[] | null;
  };
  const stored = status.storedVersions ?? [];
  if (storage === undefined || stored.includes(storage)) return;
  object.status = { ...status, storedVersions: [...stored, storage] };
}

function setTerminating(object: UntypedObject, now: number): void {
  const status = (object.status ?? {}) as {
    readonly conditions?: readonly CrdCondition[] | null;
  };
  const others = (status.conditions ?? []).filter(({ type }) =>
    type !== "Terminating"
  );
  const terminating: CrdCondition = {
    type: "Terminating",
    status: "True",
    lastTransitionTime: timestamp(now),
    reason: "InstanceDeletionPending",
    message:
      "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
  };
  object.status = { ...status, conditions: [...others, terminating] };
}

/** Keywords for which null is a value. */
const VALUES: ReadonlySet<string> = new Set(["default", "enum", "example"]);

/** Keywords whose value maps names to schemas. */
const MAPS: readonly string[] = [
  "properties",
  "patternProperties",
  "definitions",
  "dependencies",
];

/** Keywords whose value is a list of schemas. */
const LISTS: readonly string[] = ["allOf", "anyOf", "oneOf"];

/** Keywords whose value is a schema. */
const SCHEMAS: readonly string[] = ["items", "additionalProperties", "not"];

/**
 * Removes nulls from a schema as Go decodes it, in place: a null keyword counts as
 * absent, a null schema in a map or list as empty.
 */
function dropSchemaNulls(schema: JsonObject): void {
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === null && !VALUES.has(keyword)) delete schema[keyword];
  }
  for (const keyword of [...MAPS, ...LISTS]) {
    const inner = schema[keyword];
    if (typeof inner !== "object" || inner === null) continue;
    const schemas = inner as Record<string, unknown>;
    for (const name of Object.keys(schemas)) {
      schemas[name] ??= {};
      dropIn(schemas[name]);
    }
  }
  for (const keyword of SCHEMAS) dropIn(schema[keyword]);
}

function dropIn(value: unknown): void {
  if (isJsonObject(value)) dropSchemaNulls(value);
}
