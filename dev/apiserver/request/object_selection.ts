import {
  type FieldRequirement,
  type LabelRequirement,
  matchesLabels,
} from "@coracle/operator/client";
import {
  inShard,
  matchesFields,
  type ParsedShardSelector,
  parseFieldSelector,
  parseShardSelector,
} from "@coracle/operator/internal";
import type { FeatureGates } from "../feature_gates.ts";
import type { ResourceDefinition, ResourceVersion } from "../registry.ts";
import { badRequest } from "../status.ts";
import {
  isStoredForm,
  objectIn,
  prepareObjects,
  type View,
} from "../storage/object_view.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { readLabelQuery } from "./label_query.ts";

/** Selection of objects by labels, fields and shard. */
export interface Selection {
  readonly namespace: string | undefined;
  readonly labels: readonly LabelRequirement[];
  readonly fields: readonly FieldRequirement[];
  /** Shard, with the feature gate `ShardedListAndWatch`. */
  readonly shard: ParsedShardSelector | undefined;
  /** View of the custom resources whose fields are selected; undefined for other resources. */
  readonly view: View | undefined;
  /** Name that the field selector requires; undefined without such a requirement. */
  readonly name: string | undefined;
}

/** Whether a selection contains every object of the namespace. */
export function selectsAll({ labels, fields, shard }: Selection): boolean {
  return labels.length === 0 && fields.length === 0 && shard === undefined;
}

/** Whether a selection contains an object, by the object and its namespace. */
export function selects(selection: Selection, object: StoredObject): boolean {
  const { namespace, labels, fields, shard } = selection;
  return (namespace === undefined || object.namespace === namespace) &&
    matchesLabels(labels, object.labels) &&
    matchesFields(
      fields,
      (field) =>
        selection.view
          ? customField(object, selection.view, field)
          : object.field(field) || object.field(eventSynonym(field)),
    ) &&
    (shard === undefined || inShard(shard, object));
}

/** Selectable field of a custom resource in the version of a view as text. */
function customField(object: StoredObject, view: View, field: string): string {
  const read = view.version.selectableFields.get(field);
  if (read === undefined || isStoredForm(object, view)) {
    return object.field(field);
  }
  return read(objectIn(object, view));
}

/**
 * Whether the fields of a selection may need a conversion webhook, so that
 * {@linkcode selects} must be called in a step of `settle`.
 */
export function needsWebhook({ view, fields }: Selection): boolean {
  return view?.definition.prepareConversion !== undefined &&
    fields.some(({ field }) => view.version.selectableFields.has(field));
}

/** Converts objects for {@linkcode selects} by one call of a webhook, if needed. */
export function prepareSelection(
  objects: readonly StoredObject[],
  selection: Selection,
): void {
  if (selection.view && needsWebhook(selection)) {
    prepareObjects(objects, selection.view);
  }
}

/**
 * Name of a field of Events in the other group that has the same objects; empty
 * for other fields.
 */
function eventSynonym(field: string): string {
  const [first = "", rest] = field.split(".");
  const other = EVENT_SYNONYMS.get(first);
  return other === undefined ? "" : rest ? `${other}.${rest}` : other;
}

const EVENT_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["involvedObject", "regarding"],
  ["regarding", "involvedObject"],
  ["reportingComponent", "reportingController"],
  ["reportingController", "reportingComponent"],
]);

/**
 * Parses the selectors of a query.
 *
 * @param query Query parameters.
 * @param resource Resource, whose fields may be selected.
 * @param path Namespace and, on deprecated watch paths, name of the path.
 * @throws {StatusError} 400 if a selector is malformed or uses an unsupported
 * field.
 */
export function readSelection(
  query: URLSearchParams,
  resource: {
    readonly context: { readonly featureGates: FeatureGates };
    readonly definition: ResourceDefinition;
    readonly version: ResourceVersion;
  },
  path: {
    readonly namespace: string | undefined;
    readonly name: string | undefined;
  },
): Selection {
  const labels = readLabelQuery(query.get("labelSelector") ?? "");
  const fields = readFields(query.get("fieldSelector") ?? "");
  const { context, definition, version } = resource;
  for (const { field } of fields) checkField(field, definition, version);
  if (path.name !== undefined) {
    fields.push({ field: "metadata.name", operator: "=", value: path.name });
  }
  return {
    namespace: path.namespace,
    labels,
    fields,
    shard: context.featureGates.ShardedListAndWatch
      ? readShard(query.get("shardSelector") ?? undefined)
      : undefined,
    view: definition.custom ? { definition, version } : undefined,
    name: fields.find(({ field, operator }) =>
      field === "metadata.name" && operator === "="
    )?.value,
  };
}

function readShard(text: string | undefined): ParsedShardSelector | undefined {
  if (text === undefined) return undefined;
  try {
    return parseShardSelector(text);
  } catch (error) {
    throw badRequest((error as SyntaxError).message);
  }
}

function readFields(text: string): FieldRequirement[] {
  try {
    // A requirement of nothing, such as `=`, selects everything.
    return parseFieldSelector(text).filter(({ field, value }) =>
      field !== "" || value !== ""
    );
  } catch {
    throw badRequest(fieldProblem(text));
  }
}

/** Error message of apimachinery for a malformed field selector. */
function fieldProblem(text: string): string {
  const term = text.split(",").find((part) =>
    part !== "" && !part.includes("=")
  );
  if (term !== undefined) {
    return `invalid selector: '${text}'; can't understand '${term}'`;
  }
  const [, escape] = /\\(?![\\,=])([^]?)/.exec(
    text.replaceAll(/\\[\\,=]/g, ""),
  ) ?? [];
  return escape === undefined
    // The message contains the code of the character "=".
    ? "invalid field selector: unescaped character in value: 61"
    : `invalid field selector: invalid escape sequence: \\${escape}`;
}

function checkField(
  field: string,
  definition: ResourceDefinition,
  version: ResourceVersion,
): void {
  if (field === "metadata.name") return;
  if (field === "metadata.namespace" && definition.scope === "Namespaced") {
    return;
  }
  if (version.selectableFields.has(field)) return;
  const ordinary = !definition.custom && version.selectableFields.size === 0;
  if (ordinary && field === "metadata.namespace") return;
  throw badRequest(
    ordinary
      ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
      : `field label not supported: ${field}`,
  );
}
