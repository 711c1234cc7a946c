/**
 * Comparable states of a cluster: values that differ in every run, such as
 * times and UIDs, are replaced.
 *
 * @module
 */
import {
  differences,
  isBuiltIn,
  isJsonObject,
  type JsonDifference,
  type JsonObject,
  parseApiVersion,
} from "@coracle/operator/internal";

/** Objects of a cluster by their key, such as `ConfigMap default/a`. */
export type ClusterState = ReadonlyMap<string, JsonObject>;

/** Field or object in which two states differ. */
export interface StateDifference {
  /** Key of the object. */
  readonly object: string;
  /** Path of the field; empty for the whole object. */
  readonly path: string;
  /** Value in the reference run; undefined if absent. */
  readonly expected: unknown;
  /** Value in the judged run; undefined if absent. */
  readonly found: unknown;
}

const TIME_REGEXP =
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
export const UID_REGEXP: RegExp =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Range of times in a simulation with a jumping clock, in milliseconds. */
const TIMES_MS = [
  Date.parse("2025-12-01T00:00:00Z"),
  Date.parse("2027-01-01T00:00:00Z"),
] as const;

/** Metadata fields that the server sets. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "managedFields",
  "selfLink",
  "generation",
]);

/** Fields that servers and controllers allocate. */
const ALLOCATED: ReadonlySet<string> = new Set([
  "clusterIP",
  "clusterIPs",
  "nodePort",
  "healthCheckNodePort",
  "podIP",
  "podIPs",
  "hostIP",
  "hostIPs",
  "nodeName",
  "volumeName",
  "deployment.kubernetes.io/revision",
  "collisionCount",
]);

/** Kinds that are not compared: records of work, and internal objects. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "Event",
  "Lease",
  "Node",
  "CSINode",
  "Namespace",
  "Endpoints",
  "EndpointSlice",
  "ControllerRevision",
  "CustomResourceDefinition",
  "APIService",
  "FlowSchema",
  "PriorityLevelConfiguration",
  "PriorityClass",
]);

/** Kinds whose built-in controllers create objects that are not compared. */
const BUILT_IN_OWNERS: ReadonlySet<string> = new Set([
  "Deployment",
  "ReplicaSet",
  "StatefulSet",
  "DaemonSet",
  "Job",
  "CronJob",
  "ReplicationController",
  "Node",
]);

/** Compares conditions by type, because their order has no meaning. */
function byType(a: unknown, b: unknown): number {
  const [x, y] = [a, b].map((one) =>
    isJsonObject(one) ? String(one["type"]) : ""
  );
  return x! < y! ? -1 : x! > y! ? 1 : 0;
}

/** Key of an object: its kind, and its name or generated name's prefix. */
export function stateKey(object: JsonObject): string {
  const metadata = metadataOf(object);
  const { namespace, name, generateName } = metadata;
  const shown = typeof generateName === "string" ? `${generateName}*` : name;
  const at = namespace === undefined ? shown : `${namespace}/${shown}`;
  return `${object["kind"]} ${at}`;
}

/**
 * Converts the objects of a cluster to a comparable state.
 *
 * @param objects All objects of the cluster.
 * @param ignored Keys of objects that existed before the workload.
 * @param options.keepsTimes Whether times stay as they are, to compare moments of
 * one run.
 */
export function clusterState(
  objects: readonly JsonObject[],
  ignored: ReadonlySet<string> = new Set(),
  options: { readonly keepsTimes?: boolean } = {},
): ClusterState {
  const keys = new Map<string, string>();
  const kept: (readonly [string, JsonObject])[] = [];
  const counts = new Map<string, number>();
  const byAge = objects.toSorted((a, b) => revisionOf(a) - revisionOf(b));
  for (const object of byAge) {
    const plain = stateKey(object);
    const count = (counts.get(plain) ?? 0) + 1;
    counts.set(plain, count);
    const key = count === 1 ? plain : `${plain} (${count})`;
    keys.set(String(metadataOf(object)["uid"]), key);
    if (!ignored.has(key) && !isLeftOut(object)) kept.push([key, object]);
  }
  const named = (text: string) =>
    text.replace(
      UID_REGEXP,
      (uid) => `<uid of ${keys.get(uid) ?? "no object"}>`,
    );
  return new Map(
    kept.sort(([a], [b]) => a < b ? -1 : 1).map(([key, object]) => [
      key,
      comparable(object, named, options),
    ]),
  );
}

/** Whether an object is not compared. */
export function isLeftOut(object: JsonObject): boolean {
  if (LEFT_OUT.has(String(object["kind"]))) return true;
  const { ownerReferences, name } = metadataOf(object);
  if (object["kind"] === "ConfigMap" && name === "kube-root-ca.crt") {
    return true;
  }
  return Array.isArray(ownerReferences) &&
    ownerReferences.some((owner) =>
      owner.controller === true && BUILT_IN_OWNERS.has(owner.kind) &&
      /^(apps|batch)\/|^v1$/.test(owner.apiVersion)
    );
}

function comparable(
  object: JsonObject,
  named: (text: string) => string,
  { keepsTimes = false }: { readonly keepsTimes?: boolean },
): JsonObject {
  const { generation, managedFields } = metadataOf(object);
  const isOfKubernetes = isBuiltIn(
    parseApiVersion(String(object["apiVersion"])),
  );
  const walk = (value: unknown, name: string, inMetadata: boolean): unknown => {
    if (ALLOCATED.has(name)) return "<allocated>";
    // The server's default depends on the tag that the image had at creation.
    if (
      name === "imagePullPolicy" && isOfKubernetes &&
      !isApplied(managedFields, name)
    ) return undefined;
    if (typeof value === "string") {
      if (TIME_REGEXP.test(value)) return keepsTimes ? value : "<time>";
      // Messages of conditions name the generation.
      return named(value).replace(/\bgeneration \d+/g, "generation <number>");
    }
    // What an older generation was observed to be says nothing of this one.
    if (name === "observedGeneration" && typeof value === "number") {
      return value === generation ? "<generation>" : undefined;
    }
    if (name === "generation" && value === generation) return "<generation>";
    if (Array.isArray(value)) {
      // None is as good as an empty one, which is left where an apply had items.
      if (value.length === 0) return undefined;
      if (name !== "conditions") {
        return value.map((item) => walk(item, "", false));
      }
      const items = value.filter((item) => !isOutdated(item, generation))
        .map((item) => walk(item, "", false));
      return items.length === 0 ? undefined : items.toSorted(byType);
    }
    if (typeof value === "number") {
      return isTime(value) && !keepsTimes ? "<time>" : value;
    }
    if (!isJsonObject(value)) return value;
    const fields = Object.entries(value).filter(([field]) =>
      !inMetadata || !SERVER_METADATA.has(field)
    ).map(([field, inner]) => [field, walk(inner, field, false)] as const)
      .filter(([, inner]) => inner !== undefined);
    return Object.fromEntries(fields);
  };
  // The status of built-in kinds is the work of built-in controllers; none is as
  // good as an empty one.
  const status = isOfKubernetes ? undefined : object["status"] ?? {};
  const fields = Object.entries({ ...object, status });
  return Object.fromEntries(
    fields.flatMap(([field, value]) => {
      const isMetadata = field === "metadata";
      const walked = walk(value, field, isMetadata);
      if (walked === undefined) return [];
      const nameless = isMetadata && isJsonObject(walked) &&
        typeof walked["generateName"] === "string";
      return [[field, nameless ? { ...walked, name: "<generated>" } : walked]];
    }),
  );
}

/** Whether a manager has applied a field of this name. */
function isApplied(managedFields: unknown, name: string): boolean {
  return Array.isArray(managedFields) &&
    managedFields.some(({ operation, fieldsV1 }) =>
      operation === "Apply" && JSON.stringify(fieldsV1).includes(`"f:${name}"`)
    );
}

/** Whether a condition belongs to an older generation of its object. */
function isOutdated(condition: unknown, generation: unknown): boolean {
  if (!isJsonObject(condition)) return false;
  const { observedGeneration: observed } = condition;
  return typeof observed === "number" && observed < Number(generation);
}

/** Whether a number is a time in the simulation, in seconds or milliseconds. */
function isTime(value: number): boolean {
  const [from, to] = TIMES_MS;
  return value >= from && value < to ||
    value >= from / 1_000 && value < to / 1_000;
}

/**
 * Finds the differences between two states.
 *
 * @param masked Names of differences to ignore, by {@linkcode differenceName},
 * and keys of objects.
 */
export function stateDifferences(
  expected: ClusterState,
  found: ClusterState,
  masked: ReadonlySet<string> = new Set(),
): readonly StateDifference[] {
  const objects = new Set([...expected.keys(), ...found.keys()]);
  return [...objects].flatMap((object) =>
    Array.from(
      differences(expected.get(object), found.get(object)),
      ({ path, before, after }) => ({
        object,
        path: pathText(path),
        expected: before,
        found: after,
      }),
    )
  ).filter((one) =>
    !isMasked(differenceName(one), masked) &&
    !isIgnored(
      one.object,
      [expected.get(one.object), found.get(one.object)],
      masked,
    )
  );
}

/** Whether a field, or one that it is a part of, is not compared. */
export function isMasked(name: string, masked: ReadonlySet<string>): boolean {
  if (masked.has(name)) return true;
  for (const one of masked) {
    const isAbove = name.startsWith(one) && one.includes(" .") &&
      /^[.[]/.test(name.slice(one.length));
    if (isAbove) return true;
  }
  return false;
}

/** Labels of ignored objects, such as `Pod app=autoscaler,tier=worker`. */
const LABELLED_REGEXP = /^(\w+) ([^\s=,]+=[^\s=,]*(?:,[^\s=,]+=[^\s=,]*)*)$/;

/**
 * Whether an object is ignored by its key, by its kind, or by labels that the
 * masked names require of its kind.
 */
export function isIgnored(
  key: string,
  objects: readonly (JsonObject | undefined)[],
  masked: ReadonlySet<string>,
): boolean {
  const [kind = ""] = key.split(" ", 1);
  if (masked.has(key) || masked.has(kind)) return true;
  for (const one of masked) {
    const [, of, selector = ""] = LABELLED_REGEXP.exec(one) ?? [];
    if (of !== kind) continue;
    const wanted = selector.split(",").map((pair) => pair.split("="));
    const isLabelled = objects.some((object) => {
      const { labels } = metadataOf(object ?? {});
      return isJsonObject(labels) &&
        wanted.every(([name = "", value]) => labels[name] === value);
    });
    if (isLabelled) return true;
  }
  return false;
}

/** Name of a difference, without object names and list positions. */
export function differenceName(
  { object, path }: Pick<StateDifference, "object" | "path">,
): string {
  const [kind] = object.split(" ", 1);
  return `${kind} ${path.replace(/\[\d+\]/g, "[]")}`;
}

/** Path of a field of the object at a path. */
export function fieldPath(path: string, name: string): string {
  return /^[\w-]+$/.test(name) ? `${path}.${name}` : `${path}["${name}"]`;
}

function pathText(path: JsonDifference["path"]): string {
  return path.reduce<string>(
    (text, step) =>
      typeof step === "number" ? `${text}[${step}]` : fieldPath(text, step),
    "",
  );
}

/** Maximum length of a value in formatted differences, in characters. */
const MAX_VALUE = 200;
/** Maximum number of formatted differences. */
const MAX_DIFFERENCES = 12;

/** Formats differences in the style of `diff`. */
export function differencesText(
  differences: readonly StateDifference[],
): string {
  const lines: string[] = [];
  let last: string | undefined;
  for (const one of differences.slice(0, MAX_DIFFERENCES)) {
    const { object, path, expected, found } = one;
    if (path === "") {
      lines.push(
        found === undefined
          ? `- ${object}   (missing)`
          : `+ ${object}   (not in the reference)`,
      );
      last = undefined;
      continue;
    }
    if (object !== last) lines.push(`  ${object}`);
    last = object;
    if (expected !== undefined) {
      lines.push(`-   ${path}: ${shown(expected, object)}`);
    }
    if (found !== undefined) lines.push(`+   ${path}: ${shown(found, object)}`);
  }
  const more = differences.length - MAX_DIFFERENCES;
  if (more > 0) lines.push(`  … and ${more} more differences`);
  return lines.join("\n");
}

function shown(value: unknown, object: string): string {
  if (object.startsWith("Secret ")) return "<not shown: it is a Secret>";
  const text = JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

export function metadataOf(object: JsonObject): JsonObject {
  const { metadata } = object;
  return isJsonObject(metadata) ? metadata : {};
}

function revisionOf(object: JsonObject): number {
  const { creationTimestamp } = metadataOf(object);
  return Date.parse(String(creationTimestamp)) || 0;
}
