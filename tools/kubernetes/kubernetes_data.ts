import { readFileSync } from "node:fs";
import type { OpenApiSchema } from "../../core/patch/schema.ts";
import type { EarlierData } from "./earlier_data.ts";

/** What `data/go_types.json` says about the fields of one definition. */
export interface GoFields {
  readonly pointer?: readonly string[];
  readonly struct?: readonly string[];
  readonly always?: readonly string[];
  readonly nullPointer?: readonly string[];
}

/** A subresource as discovery tells it. */
export interface DiscoveredSubresource {
  readonly subresource: string;
  readonly responseKind: {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  };
  readonly verbs: readonly string[];
}

/** A resource as discovery tells it. */
export interface DiscoveredResource {
  readonly resource: string;
  readonly responseKind: { readonly kind: string };
  readonly scope: "Namespaced" | "Cluster";
  readonly singularResource: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly DiscoveredSubresource[];
}

/** A group as discovery tells it; the core group has no name. */
export interface DiscoveredGroup {
  readonly metadata: { readonly name?: string };
  readonly versions: readonly {
    readonly version: string;
    readonly resources: readonly DiscoveredResource[];
  }[];
}

/** One column of a Table. */
export interface DataColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly priority: number;
}

/**
 * The names of a message's fields in JSON, by their numbers in protobuf; those
 * of a struct that Go embeds stand in place of a name.
 */
export interface FieldNumbers {
  readonly [number: string]: string | FieldNumbers;
}

/**
 * The resources in which the built-in kinds differ, by trait; resources are named
 * like `deployments.apps` or `pods`.
 */
export interface TraitsData {
  readonly nameRule: Readonly<Record<string, readonly string[]>>;
  readonly hasGeneration: readonly string[];
  readonly allowCreateOnUpdate: readonly string[];
  /** Resources whose updates must carry a resourceVersion. */
  readonly conditionalUpdate: readonly string[];
  /** Resources whose deletion returns the object instead of a Status. */
  readonly returnsDeletedObject: readonly string[];
  /** Resources whose dependents are orphaned by default. */
  readonly orphansDependents: readonly string[];
  /** Resources that are validated as a whole and again within an update. */
  readonly isValidatedTwice: readonly string[];
  readonly selectableFields: Readonly<Record<string, readonly string[]>>;
  /** How often the metadata of an update are validated, where it is unusual. */
  readonly metadataChecks: readonly {
    readonly changes: number;
    readonly whole: number;
    readonly finalizers: boolean;
    readonly resources: readonly string[];
  }[];
  /** Resources whose generation counts the changes of a field, by that field. */
  readonly generationFields: Readonly<Record<string, readonly string[]>>;
}

/** All that is in `data/`. */
export interface KubernetesData {
  readonly definitions: Readonly<Record<string, OpenApiSchema>>;
  readonly goFields: Readonly<Record<string, GoFields>>;
  readonly groups: readonly DiscoveredGroup[];
  readonly columns: Readonly<Record<string, readonly DataColumn[]>>;
  readonly fieldNumbers: Readonly<Record<string, FieldNumbers>>;
  readonly traits: TraitsData;
  /** Specs of the priority levels and flow schemas of a new cluster, by name. */
  readonly flowControl: unknown;
  /** Numbers and types of the fields of gnostic's messages. */
  readonly gnosticMessages: unknown;
  /** Checks of fields that do not follow from their schemas. */
  readonly fieldChecks: unknown;
  /** Reads files of `data/rules`, without comments and blank lines. */
  readonly rules: (...names: readonly string[]) => string;
}

/** Structs that the types of `data/meta_types.json` always write. */
const META_FIELDS: Readonly<Record<string, GoFields>> = Object.fromEntries(
  Object.entries({
    "io.k8s.api.apidiscovery.v2.APIGroupDiscovery": "metadata",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList": "metadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup": "preferredVersion",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata": "metadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList":
      "metadata",
  }).map(([name, field]) => [name, { struct: [field] }]),
);

function readRules(name: string): string {
  const file = new URL(`data/rules/${name}.rules`, import.meta.url);
  return readFileSync(file, "utf8").replace(/^\s*(?:#.*)?\n/gm, "")
    // One space a level.
    .replace(/^(?: {2})+/gm, (spaces) => spaces.slice(spaces.length / 2));
}

function read(name: string): unknown {
  const file = new URL(`data/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Definitions that are in no OpenAPI document of a group. */
export function readMetaTypes(): KubernetesData["definitions"] {
  return read("meta_types") as KubernetesData["definitions"];
}

/** Reads how the release before the recorded one differs. */
export function readEarlierData(): EarlierData {
  return read("earlier") as EarlierData;
}

/** Reads what is in `data/` of the recorded release. */
export function readKubernetesData(): KubernetesData {
  return {
    definitions: {
      ...readMetaTypes(),
      ...read("openapi") as KubernetesData["definitions"],
    },
    goFields: {
      ...META_FIELDS,
      ...read("go_types") as KubernetesData["goFields"],
    },
    groups: read("discovery") as KubernetesData["groups"],
    columns: read("table_columns") as KubernetesData["columns"],
    fieldNumbers: read("protobuf") as KubernetesData["fieldNumbers"],
    traits: read("traits") as TraitsData,
    flowControl: read("flow_control"),
    gnosticMessages: read("gnostic_messages"),
    fieldChecks: read("field_checks"),
    rules: (...names) => names.map(readRules).join(""),
  };
}

/** The first line of every file that is written. */
export const GENERATED_HEADER: string = [
  "// Generated by tools/kubernetes/generate.ts from tools/kubernetes/data.",
  "// deno-fmt-ignore-file",
].join("\n");
