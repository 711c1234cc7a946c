/**
 * What a newer release of Kubernetes adds to the recorded one, and takes away.
 *
 * @module
 */
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

/** Content of `data/newer.json`: only what the recorded release lacks. */
export interface NewerData extends RecordedData {
  /** Fields that the newer release lacks, by definition. */
  readonly withdrawn: Readonly<Record<string, readonly string[]>>;
}

type Fields = Readonly<Record<string, unknown>>;
type Lists = Readonly<Record<string, readonly string[] | undefined>>;

/** The entries of a record whose keys another one lacks. */
function missingIn<T>(
  newer: Readonly<Record<string, T>>,
  base: Readonly<Record<string, unknown>> = {},
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(newer).filter(([key]) => !Object.hasOwn(base, key)),
  );
}

function fieldsOf(data: RecordedData, definition: string): Fields {
  return (data.definitions[definition]?.properties ?? {}) as Fields;
}

/** What one recording has and another lacks. */
export function newerData(base: RecordedData, newer: RecordedData): NewerData {
  const definitions: Record<string, unknown> = {};
  const withdrawn: Record<string, readonly string[]> = {};
  for (const [name, definition] of Object.entries(newer.definitions)) {
    const [before, now] = [fieldsOf(base, name), fieldsOf(newer, name)];
    const properties = missingIn(now, before);
    if (!Object.hasOwn(base.definitions, name)) definitions[name] = definition;
    else if (Object.keys(properties).length > 0) {
      definitions[name] = { properties };
    }
    const gone = Object.keys(missingIn(before, now));
    if (gone.length > 0) withdrawn[name] = gone;
  }
  const added = definitions as NewerData["definitions"];
  const goFields: Record<string, GoFields> = {};
  const fieldNumbers: Record<string, FieldNumbers> = {};
  for (const [name, { properties = {} }] of Object.entries(added)) {
    const lists = Object.entries((newer.goFields[name] ?? {}) as Lists)
      .map(([trait, names = []]) =>
        [trait, names.filter((one) => one in properties)] as const
      ).filter(([, names]) => names.length > 0);
    if (lists.length > 0) goFields[name] = Object.fromEntries(lists);
    const numbers = missingIn(
      newer.fieldNumbers[name] ?? {},
      base.fieldNumbers[name],
    );
    const isNew = Object.hasOwn(newer.fieldNumbers, name) &&
      !Object.hasOwn(base.fieldNumbers, name);
    if (isNew || Object.keys(numbers).length > 0) fieldNumbers[name] = numbers;
  }
  return {
    definitions: added,
    goFields,
    groups: newGroups(base.groups, newer.groups),
    columns: missingIn(newer.columns, base.columns),
    fieldNumbers,
    withdrawn,
  };
}

function newGroups(
  base: readonly DiscoveredGroup[],
  newer: readonly DiscoveredGroup[],
): DiscoveredGroup[] {
  return newer.flatMap(({ metadata, versions }) => {
    const known = base.find((group) => group.metadata.name === metadata.name);
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

/** Resources that a newer release adds, such as `deployments.apps`. */
export function addedResources({ groups }: NewerData): string[] {
  return groups.flatMap(({ metadata: { name = "" }, versions }) =>
    versions.flatMap(({ resources }) =>
      resources.map(({ resource }) => name ? `${resource}.${name}` : resource)
    )
  );
}

/** Fields that a newer release adds to definitions, by definition. */
export function addedFields(
  base: RecordedData,
  { definitions }: NewerData,
): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(definitions)
      .filter(([name]) => Object.hasOwn(base.definitions, name))
      .map(([name, { properties = {} }]) => [name, Object.keys(properties)]),
  );
}

/** A recording with what a newer release adds. */
export function withNewer(
  base: KubernetesData,
  newer: NewerData,
): KubernetesData {
  const definitions: Record<string, unknown> = { ...base.definitions };
  for (const [name, definition] of Object.entries(newer.definitions)) {
    const before = base.definitions[name];
    const properties = { ...before?.properties, ...definition.properties };
    definitions[name] = { ...definition, ...before, properties };
  }
  const goFields: Record<string, GoFields> = { ...base.goFields };
  for (const [name, added] of Object.entries(newer.goFields)) {
    const lists: Record<string, readonly string[]> = { ...goFields[name] };
    for (const [trait, names = []] of Object.entries(added as Lists)) {
      lists[trait] = [...lists[trait] ?? [], ...names];
    }
    goFields[name] = lists;
  }
  const fieldNumbers: Record<string, FieldNumbers> = { ...base.fieldNumbers };
  for (const [name, numbers] of Object.entries(newer.fieldNumbers)) {
    fieldNumbers[name] = { ...fieldNumbers[name], ...numbers };
  }
  const columns: Record<string, readonly DataColumn[]> = {
    ...base.columns,
    ...newer.columns,
  };
  return {
    ...base,
    definitions: definitions as KubernetesData["definitions"],
    goFields,
    groups: withGroups(base.groups, newer.groups),
    columns,
    fieldNumbers,
  };
}

function withGroups(
  base: readonly DiscoveredGroup[],
  newer: readonly DiscoveredGroup[],
): DiscoveredGroup[] {
  const name = ({ metadata }: DiscoveredGroup) => metadata.name;
  const known = base.map((group) => {
    const more = newer.find((one) => name(one) === name(group));
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
  const names = base.map(name);
  return [...known, ...newer.filter((group) => !names.includes(name(group)))];
}
