import { isDeepStrictEqual } from "node:util";
import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { type EarlierData, ownFields } from "./earlier_data.ts";
import {
  GENERATED_HEADER,
  type KubernetesData,
  type TraitsData,
} from "./kubernetes_data.ts";

/** Definitions that stand for any value, which OpenAPI calls an object. */
const ANY_VALUE: readonly string[] = [
  "io.k8s.apimachinery.pkg.runtime.RawExtension",
];

/** Writes the files of dev/apiserver/builtin/data, by name. */
export function builtinFiles(data: KubernetesData): Map<string, string> {
  return new Map([
    ["field_checks.ts", fieldChecksFile(data)],
    ["field_numbers.ts", fieldNumbersFile(data)],
    ["flow_objects.ts", flowObjectsFile(data)],
    ["gnostic_messages.ts", gnosticFile(data)],
    ["openapi_definitions.ts", definitionsFile(data)],
    ["resource_table.ts", resourcesFile(data)],
  ]);
}

/** JSON as a text literal: parsing that is several times as fast as a program. */
export function jsonLiteral(value: unknown): string {
  return textLiteral(JSON.stringify(value));
}

function textLiteral(text: string): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")
    .replaceAll("\n", "\\n");
  return `'${escaped}'`;
}

/** Writes the rules of the files in `data/rules`. */
export function rulesFile({ rules }: KubernetesData): string {
  const validation = rules(
    "pods",
    "volumes",
    "workloads",
    "networks",
    "cluster",
    "updates",
  );
  return `${GENERATED_HEADER}

/** Validation of the built-in kinds by definition, and of updates by resource. */
export const VALIDATION_TEXT: string = ${textLiteral(validation)};

/** Defaults of the built-in kinds that their schemas do not contain, by definition. */
export const DEFAULTS_TEXT: string = ${textLiteral(rules("defaults"))};

/** Fields that a create or an update of the built-in kinds sets and keeps, such as \`create.pods\`. */
export const LIFECYCLES_TEXT: string = ${textLiteral(rules("lifecycles"))};

/** Cells of the table columns of the built-in kinds, by resource. */
export const CELLS_TEXT: string = ${textLiteral(rules("columns"))};

/** Validation of CustomResourceDefinitions. */
export const DEFINITIONS_TEXT: string = ${textLiteral(rules("crds"))};

/** Validation of the metadata of all kinds. */
export const METADATA_TEXT: string = ${textLiteral(rules("metadata"))};

/** Validation of the query options of requests. */
export const OPTIONS_TEXT: string = ${textLiteral(rules("options"))};
`;
}

/** Writes what the release before the newest one lacks, and what only it has. */
export function earlierFile(
  data: KubernetesData,
  earlier: EarlierData,
): string {
  return `${GENERATED_HEADER}

/** How the release before the newest one differs. */
export const EARLIER: {
  /** Resources, subresources and fields that it lacks; fields by definition. */
  readonly lackingResources: readonly string[];
  readonly lackingFields: Readonly<Record<string, readonly string[]>>;
  /** Fields that only it has, by definition. */
  readonly ownFields: Readonly<Record<string, readonly string[]>>;
  /** Names of table columns, where it has fewer, by resource. */
  readonly columns: Readonly<Record<string, readonly string[]>>;
  /** Required fields and schemas of fields that differ, by definition. */
  readonly changed: Readonly<Record<string, {
    readonly required?: readonly string[];
    readonly properties?: Readonly<Record<string, unknown>>;
  }>>;
} = JSON.parse(
  ${
    jsonLiteral({
      lackingResources: earlier.lacking.resources,
      lackingFields: earlier.lacking.fields,
      ownFields: ownFields(data, earlier),
      columns: fewerColumns(data, earlier),
      changed: earlier.changed,
    })
  },
);
`;
}

/** Names of the columns of the tables that both releases have, by resource. */
function fewerColumns(
  { columns }: KubernetesData,
  earlier: EarlierData,
): Record<string, readonly string[]> {
  const found: Record<string, readonly string[]> = {};
  for (const [path, before] of Object.entries(earlier.columns)) {
    const now = columns[path];
    if (now === undefined) continue;
    const [group, , resource] = path.split("/");
    for (const column of before) {
      if (now.some((one) => isDeepStrictEqual(one, column))) continue;
      throw new Error(
        `Cannot serve the columns of ${path}: received another ${column.name}`,
      );
    }
    found[resource === undefined ? path : `${resource}.${group}`] = before.map((
      { name },
    ) => name);
  }
  return found;
}

function definitionsFile(data: KubernetesData): string {
  const definitions: Record<string, OpenApiSchema> = {};
  for (const name of Object.keys(data.definitions).sort()) {
    const definition = data.definitions[name] ?? {};
    definitions[name] = ANY_VALUE.includes(name)
      ? { "x-kubernetes-map-type": "atomic" }
      : definition;
  }
  return `${GENERATED_HEADER}

/** OpenAPI definitions of all built-in kinds, as JSON. */
export const DEFINITIONS: string = ${jsonLiteral(definitions)};

/**
 * JSON presence of the fields of each definition that Go writes even when they
 * are empty, as JSON; fields that are omitted when empty are not listed.
 */
export const FIELD_PRESENCE: string = ${jsonLiteral(data.goFields)};
`;
}

function fieldNumbersFile({ fieldNumbers, definitions }: KubernetesData) {
  const numbers = Object.entries(fieldNumbers).map(([name, byNumber]) => {
    const byField = new Map(
      Object.entries(byNumber).map(([number, field]) => [field, number]),
    );
    const fields = Object.keys(definitions[name]?.properties ?? {}).sort();
    const isPlain = [...byField.keys()].every((field) =>
      typeof field === "string" && fields.includes(field)
    );
    return [
      name,
      isPlain
        ? fields.map((field) => byField.get(field) ?? "").join(" ")
        : byNumber,
    ];
  });
  return `${GENERATED_HEADER}

/**
 * Numbers of the fields of each definition in protobuf, as JSON: a text with
 * the numbers in the order of the fields' names, or the JSON names of the fields
 * by number; an object instead of a name stands for a struct that Go embeds.
 */
export const FIELD_NUMBERS: string = ${
    jsonLiteral(Object.fromEntries(numbers))
  };
`;
}

function fieldChecksFile(data: KubernetesData): string {
  return `${GENERATED_HEADER}

/** Checks of fields, named like \`PodSpec.restartPolicy\`, beside those of their schemas. */
export interface FieldChecksData {
  /** Supported values, where the schema does not list them or lists them in another order than messages do. */
  readonly choices: Readonly<Record<string, readonly string[]>>;
  /** Enumerated fields that are not checked, or that a separate rule checks. */
  readonly checkedByRule: readonly string[];
  /** Fields whose content is not checked; upstream validates it when it is used. */
  readonly unchecked: readonly string[];
  /** Names of fields in messages, where they differ from the JSON names. */
  readonly shownAs: Readonly<Record<string, string>>;
}

export const FIELD_CHECKS: FieldChecksData = JSON.parse(
  ${jsonLiteral(data.fieldChecks)},
);
`;
}

function gnosticFile(data: KubernetesData): string {
  return `${GENERATED_HEADER}

/**
 * Fields of gnostic's messages of OpenAPI v2: number and type. \`[]\` before a
 * type marks a list; \`any\` is a value as YAML, and \`x-\` stands for the
 * extensions.
 */
export const GNOSTIC_MESSAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = JSON.parse(
  ${jsonLiteral(data.gnosticMessages)},
);
`;
}

function flowObjectsFile(data: KubernetesData): string {
  return `${GENERATED_HEADER}

/** Specs of the priority levels and flow schemas of a new cluster by name, as JSON. */
export const FLOW_OBJECTS: string = ${jsonLiteral(data.flowControl)};
`;
}

/** Metadata checks of most kinds: only those of an update. */
const USUAL_CHECKS: TraitsData["metadataChecks"][number] = {
  changes: 1,
  whole: 0,
  finalizers: true,
  resources: [],
};

/** Traits of a resource, named like `deployments.apps` or `pods`. */
function traitsOf(traits: TraitsData, resource: string): object {
  const [nameRule = "dns-subdomain"] =
    Object.entries(traits.nameRule).find(([, names]) =>
      names.includes(resource)
    ) ?? [];
  const { resources: _, ...metadataChecks } =
    traits.metadataChecks.find(({ resources }) =>
      resources.includes(resource)
    ) ?? USUAL_CHECKS;
  return {
    nameRule,
    hasGeneration: traits.hasGeneration.includes(resource),
    allowCreateOnUpdate: traits.allowCreateOnUpdate.includes(resource),
    allowUnconditionalUpdate: !traits.conditionalUpdate.includes(resource),
    returnsDeletedObject: traits.returnsDeletedObject.includes(resource),
    defaultDeletionPolicy: traits.orphansDependents.includes(resource)
      ? "Orphan"
      : "Background",
    metadataChecks,
  };
}

/** A group, its versions and resources, with what tables show. */
function resourcesFile(data: KubernetesData): string {
  const resources = data.groups.flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources }) =>
      resources.map((resource) => {
        const group = metadata.name ?? "";
        const path = group === "" ? version : `${group}/${version}`;
        const name = resource.resource + (group === "" ? "" : `.${group}`);
        const columns = data.columns[`${path}/${resource.resource}`] ?? [];
        return {
          group,
          version,
          plural: resource.resource,
          singular: resource.singularResource,
          kind: resource.responseKind.kind,
          scope: resource.scope,
          shortNames: resource.shortNames ?? [],
          categories: resource.categories ?? [],
          verbs: resource.verbs,
          subresources: (resource.subresources ?? []).map((subresource) => ({
            name: subresource.subresource,
            ...subresource.responseKind,
            verbs: subresource.verbs,
          })),
          columns: columns.map(({ name, type, format, priority }) => [
            name,
            type,
            format,
            priority,
          ]),
          traits: traitsOf(data.traits, name),
          generationFields: Object.entries(data.traits.generationFields)
            .filter(([, names]) => names.includes(name))
            .map(([field]) => field),
          isValidatedTwice: data.traits.isValidatedTwice.includes(name),
          selectableFields: data.traits.selectableFields[name] ?? [],
        };
      })
    )
  );
  return `${GENERATED_HEADER}
import type { Scope } from "@coracle/operator/client";
import type { ResourceDefinition, Verb } from "../../registry.ts";

/** Subresource in discovery; group and version are empty if they are the resource's. */
export interface SubresourceData {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
}

/** Version of a resource, with its discovery data and table columns. */
export interface ResourceData {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly scope: Scope;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  readonly subresources: readonly SubresourceData[];
  readonly columns: readonly (readonly [name: string, type: string, format: string, priority: number])[];
  /** Properties in which the built-in kinds differ. */
  readonly traits: Pick<
    ResourceDefinition,
    | "nameRule"
    | "hasGeneration"
    | "allowCreateOnUpdate"
    | "allowUnconditionalUpdate"
    | "returnsDeletedObject"
    | "defaultDeletionPolicy"
    | "metadataChecks"
  >;
  /** Fields whose changes the generation counts. */
  readonly generationFields: readonly string[];
  /**
   * Whether kube-apiserver validates an update twice: the object as a whole and
   * within the update. Clients receive each cause twice.
   */
  readonly isValidatedTwice: boolean;
  /**
   * Selectable fields besides name and namespace: \`FIELD\`, or \`FIELD=PATH\` if
   * the path differs from the name; the value of an absent field follows \`?\`.
   */
  readonly selectableFields: readonly string[];
}

/** All versions of all built-in resources, the preferred version of a group first. */
export const RESOURCES: readonly ResourceData[] = JSON.parse(
  ${jsonLiteral(resources)},
);
`;
}
