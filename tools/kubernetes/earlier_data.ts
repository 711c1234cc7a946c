/**
 * How an earlier release of Kubernetes differs from the recorded one.
 *
 * @module
 */
import { isDeepStrictEqual } from "node:util";
import type { OpenApiSchema } from "../../core/patch/schema.ts";
import type {
  DataColumn,
  DiscoveredGroup,
  FieldNumbers,
  GoFields,
  KubernetesData,
} from "./kubernetes_data.ts";

/** What is recorded of a release. */
export type RecordedData = Pick<
  KubernetesData,
  "definitions" | "goFields" | "groups" | "columns" | "fieldNumbers"
>;

/** Content of `data/earlier.json`: what only the earlier release has, and what it lacks. */
export interface EarlierData extends RecordedData {
  readonly lacking: {
    /**
     * Resources and subresources that the earlier release lacks, such as
     * `deployments.apps` or `deployments.apps/scale`.
     */
    readonly resources: readonly string[];
    /** Fields that it lacks in definitions that it has, by definition. */
    readonly fields: Readonly<Record<string, readonly string[]>>;
  };
  /** What else differs in definitions that both have, but for defaults of items. */
  readonly changed: Readonly<Record<string, ChangedDefinition>>;
}

/** How a definition of the earlier release differs in what both have. */
export interface ChangedDefinition {
  /** Required fields; absent where they are the same. */
  readonly required?: readonly string[];
  /** Schemas of fields that differ. */
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
}

type Fields = Readonly<Record<string, unknown>>;
type Lists = Readonly<Record<string, readonly string[] | undefined>>;

/** The entries of a record whose keys another one lacks. */
function missingIn<T>(
  one: Readonly<Record<string, T>>,
  other: Readonly<Record<string, unknown>> = {},
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(one).filter(([key]) => !Object.hasOwn(other, key)),
  );
}

function fieldsOf(data: RecordedData, definition: string): Fields {
  return (data.definitions[definition]?.properties ?? {}) as Fields;
}

/** How an earlier recording differs from the newest. */
export function earlierData(
  newest: RecordedData,
  earlier: RecordedData,
): EarlierData {
  const definitions: Record<string, unknown> = {};
  const lacking: Record<string, readonly string[]> = {};
  for (const [name, definition] of Object.entries(earlier.definitions)) {
    const [now, before] = [fieldsOf(newest, name), fieldsOf(earlier, name)];
    const properties = missingIn(before, now);
    if (!Object.hasOwn(newest.definitions, name)) {
      definitions[name] = definition;
      continue;
    }
    if (Object.keys(properties).length > 0) definitions[name] = { properties };
    const added = Object.keys(missingIn(now, before));
    if (added.length > 0) lacking[name] = added;
  }
  const own = definitions as EarlierData["definitions"];
  const goFields: Record<string, GoFields> = {};
  const fieldNumbers: Record<string, FieldNumbers> = {};
  for (const [name, { properties = {} }] of Object.entries(own)) {
    const lists = Object.entries((earlier.goFields[name] ?? {}) as Lists)
      .map(([trait, names = []]) =>
        [trait, names.filter((one) => one in properties)] as const
      ).filter(([, names]) => names.length > 0);
    if (lists.length > 0) goFields[name] = Object.fromEntries(lists);
    const numbers = missingIn(
      earlier.fieldNumbers[name] ?? {},
      newest.fieldNumbers[name],
    );
    if (Object.keys(numbers).length > 0) fieldNumbers[name] = numbers;
  }
  return {
    definitions: own,
    goFields,
    groups: missingGroups(earlier.groups, newest.groups),
    columns: Object.fromEntries(
      Object.entries(earlier.columns).filter(([path, columns]) =>
        !isDeepStrictEqual(columns, newest.columns[path])
      ),
    ),
    fieldNumbers,
    lacking: {
      resources: missingNames(newest.groups, earlier.groups),
      fields: lacking,
    },
    changed: changedDefinitions(newest.definitions, earlier.definitions),
  };
}

function changedDefinitions(
  newest: RecordedData["definitions"],
  earlier: RecordedData["definitions"],
): EarlierData["changed"] {
  const same = (one: unknown, other: unknown) =>
    isDeepStrictEqual(withoutItemDefaults(one), withoutItemDefaults(other));
  const changed: Record<string, ChangedDefinition> = {};
  for (const [name, before] of Object.entries(earlier)) {
    const now = newest[name];
    if (now === undefined) continue;
    const properties = Object.entries(before.properties ?? {}).filter((
      [field, schema],
    ) => {
      const other = now.properties?.[field];
      return other !== undefined && !same(schema, other);
    });
    const isRequired = same(before.required, now.required);
    if (isRequired && properties.length === 0) continue;
    changed[name] = {
      ...isRequired ? {} : { required: before.required ?? [] },
      ...properties.length > 0 &&
        { properties: Object.fromEntries(properties) },
    };
  }
  return changed;
}

/** A schema whose items have no default, nor the `allOf` that it needs. */
function withoutItemDefaults(value: unknown, isItem = false): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => withoutItemDefaults(one));
  }
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([key, inner]) =>
    [
      key,
      withoutItemDefaults(
        inner,
        key === "items" || key === "additionalProperties",
      ),
    ] as const
  );
  const schema = Object.fromEntries(fields) as Record<string, unknown>;
  const { allOf } = schema as { allOf?: readonly object[] };
  if (!isItem) return schema;
  const { default: _, allOf: __, ...rest } = schema;
  return allOf?.length === 1
    ? { ...rest, ...allOf[0] }
    : { ...rest, ...allOf && { allOf } };
}

/** The resources of groups that others lack. */
function missingGroups(
  groups: readonly DiscoveredGroup[],
  others: readonly DiscoveredGroup[],
): DiscoveredGroup[] {
  return groups.flatMap(({ metadata, versions }) => {
    const known = others.find((group) => group.metadata.name === metadata.name);
    const added = versions.map(({ version, resources }) => {
      const old = known?.versions.find((one) => one.version === version);
      const names = old?.resources.map(({ resource }) => resource) ?? [];
      return {
        version,
        resources: resources.filter(({ resource }) =>
          !names.includes(resource)
        ),
      };
    }).filter(({ resources }) => resources.length > 0);
    return added.length > 0 ? [{ metadata, versions: added }] : [];
  });
}

/** The names of resources and subresources that others lack. */
function missingNames(
  groups: readonly DiscoveredGroup[],
  others: readonly DiscoveredGroup[],
): string[] {
  const known = new Set(namesOf(others));
  return namesOf(groups).filter((name) => {
    const [resource = "", subresource] = name.split("/");
    return !known.has(name) &&
      (subresource === undefined || known.has(resource));
  });
}

/** The names of resources, such as `deployments.apps`, and their subresources. */
function namesOf(groups: readonly DiscoveredGroup[]): string[] {
  return groups.flatMap(({ metadata: { name: group }, versions }) =>
    versions.flatMap(({ resources }) =>
      resources.flatMap(({ resource, subresources = [] }) => {
        const name = group ? `${resource}.${group}` : resource;
        return [
          name,
          ...subresources.map(({ subresource }) => `${name}/${subresource}`),
        ];
      })
    )
  );
}

/** Fields that only the earlier release has, by definition. */
export function ownFields(
  newest: RecordedData,
  { definitions }: EarlierData,
): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(definitions)
      .filter(([name]) => Object.hasOwn(newest.definitions, name))
      .map(([name, { properties = {} }]) => [name, Object.keys(properties)]),
  );
}

/** A recording with what only an earlier release has. */
export function withEarlier(
  newest: KubernetesData,
  earlier: EarlierData,
): KubernetesData {
  const definitions: Record<string, unknown> = { ...newest.definitions };
  for (const [name, definition] of Object.entries(earlier.definitions)) {
    const now = newest.definitions[name];
    const properties = { ...now?.properties, ...definition.properties };
    definitions[name] = { ...definition, ...now, properties };
  }
  const goFields: Record<string, GoFields> = { ...newest.goFields };
  for (const [name, added] of Object.entries(earlier.goFields)) {
    const lists: Record<string, readonly string[]> = { ...goFields[name] };
    for (const [trait, names = []] of Object.entries(added as Lists)) {
      lists[trait] = [...lists[trait] ?? [], ...names];
    }
    goFields[name] = lists;
  }
  const fieldNumbers: Record<string, FieldNumbers> = { ...newest.fieldNumbers };
  for (const [name, numbers] of Object.entries(earlier.fieldNumbers)) {
    fieldNumbers[name] = { ...fieldNumbers[name], ...numbers };
  }
  const columns: Record<string, readonly DataColumn[]> = {
    ...earlier.columns,
    ...newest.columns,
  };
  return {
    ...newest,
    definitions: definitions as KubernetesData["definitions"],
    goFields,
    groups: withGroups(newest.groups, earlier.groups),
    columns,
    fieldNumbers,
  };
}

function withGroups(
  groups: readonly DiscoveredGroup[],
  others: readonly DiscoveredGroup[],
): DiscoveredGroup[] {
  const name = ({ metadata }: DiscoveredGroup) => metadata.name;
  const known = groups.map((group) => {
    const more = others.find((one) => name(one) === name(group));
    return {
      ...group,
      versions: group.versions.map(({ version, resources }) => ({
        version,
        resources: [
          ...resources,
          ...more?.versions.find((one) => one.version === version)
            ?.resources ?? [],
        ],
      })),
    };
  });
  const names = groups.map(name);
  return [...known, ...others.filter((group) => !names.includes(name(group)))];
}
