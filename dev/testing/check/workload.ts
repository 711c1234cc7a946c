/**
 * Workloads: scenarios in which a user creates, changes and deletes objects
 * that are given as examples or generated from the schemas of the kinds.
 *
 * @module
 */
import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { CheckOptions } from "../check_options.ts";
import {
  changed,
  fittingValue,
  type LeafChange,
  leafChanges,
} from "./schema_values.ts";
import { metadataOf, stateKey } from "./state.ts";

type GivenStep = NonNullable<CheckOptions["workload"]>[number];

type WithJson<Step> = {
  readonly [Name in keyof Step]: object extends Step[Name] ? JsonObject
    : Step[Name];
};

/** Step of a user, as in the option `workload`, with objects as JSON. */
export type CheckStep = WithJson<GivenStep>;

/** Scenario of a workload: steps in a cluster of their own. */
export interface Scenario {
  /** Name, such as `change-spec.replicas`. */
  readonly name: string;
  /** Steps of the user. */
  readonly steps: readonly CheckStep[];
  /** Number of steps at the start in which the operator is not disturbed. */
  readonly known: number;
  /** Step of another scenario after which the state must be the same. */
  readonly sameAs?: {
    readonly scenario: string;
    readonly step: number;
    /** Whether the other scenario has a further object. */
    readonly isShared?: boolean;
  };
  /** Index of the step whose state the last step must restore. */
  readonly backTo?: number | undefined;
}

/** Name of generated objects. */
const NAME = "sample";
/** Maximum number of changes of one object. */
const MAX_CHANGES = 24;
/** Namespace of objects without one. */
const NAMESPACE = "default";
/** Namespace of a second object of the same name. */
const ELSEWHERE = "elsewhere";

/**
 * Generates example objects of a kind from its structural schema: with all
 * optional fields, with none of them, and with one of them.
 *
 * @param manifest CustomResourceDefinition of the kind.
 * @returns Objects to try, the best first; CEL rules may refuse them.
 */
export function generatedObjects(manifest: CrdManifest): readonly JsonObject[] {
  const { schema, apiVersion } = storedSchema(manifest);
  const { kind } = manifest.spec.names;
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) =>
    !["apiVersion", "kind", "metadata", "status"].includes(name)
  );
  const namespace = manifest.spec.scope === "Cluster"
    ? {}
    : { namespace: NAMESPACE };
  const made = [false, true].map((optional): JsonObject => {
    const fields = properties.flatMap(([name, field]) => {
      const isRequired = schema.required?.includes(name) || name === "spec";
      const value = optional || isRequired
        ? fittingValue(field, { optional, name })
        : undefined;
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      apiVersion,
      kind,
      metadata: { ...namespace, name: NAME },
      ...Object.fromEntries(fields),
    };
  });
  const [least, most] = made as [JsonObject, JsonObject];
  return [most, least, ...between(least, most)];
}

/** Copies of the smallest object, each with one optional field of the spec. */
function between(least: JsonObject, most: JsonObject): readonly JsonObject[] {
  const [some, all] = [least["spec"], most["spec"]];
  if (!isJsonObject(some) || !isJsonObject(all)) return [];
  return Object.keys(all).filter((name) => !(name in some)).map((name) => ({
    ...least,
    spec: { ...some, [name]: all[name] },
  }));
}

/** Schema of the stored version of a kind. */
function storedSchema(
  { spec }: CrdManifest,
): { readonly schema: OpenApiSchema; readonly apiVersion: string } {
  const version = spec.versions.find(({ storage }) => storage) ??
    spec.versions[0];
  return {
    schema: version?.schema.openAPIV3Schema ?? {},
    apiVersion: `${spec.group}/${version?.name}`,
  };
}

/** Changes of the desired state of an object: each leaf, one at a time. */
function objectChanges(
  object: JsonObject,
  schema: OpenApiSchema,
): readonly LeafChange[] {
  const found = Object.entries(schema.properties ?? {}).flatMap(
    ([name, field]) =>
      ["apiVersion", "kind", "metadata", "status"].includes(name)
        ? []
        : leafChanges(field, object[name], [name]),
  );
  // The whole spec is not a leaf, and cannot be removed.
  return found.filter(({ path, value }) =>
    path.length > 1 || value !== undefined
  ).slice(0, MAX_CHANGES * 4);
}

/** Function that checks whether the server accepts an object or a change. */
export type Accepts = (
  object: JsonObject,
  from?: JsonObject,
) => Promise<boolean>;

/**
 * Creates scenarios in which example objects are created, changed at each leaf
 * and back, deleted, recreated, and combined with another object.
 *
 * @param examples Objects, in the order in which they are created.
 * @param options.definitions CustomResourceDefinitions of kinds to change.
 * @param options.accepts Checks an object by a dry run.
 */
export async function scenarios(
  examples: readonly JsonObject[],
  { definitions, accepts }: {
    readonly definitions: readonly CrdManifest[];
    readonly accepts: Accepts;
  },
): Promise<readonly Scenario[]> {
  const isOwn = (object: JsonObject) =>
    definitions.some((one) => isOf(object, one));
  const own = examples.filter(isOwn);
  const others = examples.filter((object) => !isOwn(object));
  const given = others.map((object): CheckStep => ({
    apply: object,
    settle: false,
  }));
  const subjects = own.length > 0 ? own : examples;
  if (subjects.length === 0) return [];
  const before = own.length > 0 ? given : [];
  const create = subjects.map((object): CheckStep => ({ apply: object }));
  const remove = subjects.toReversed().map((object): CheckStep => ({
    delete: nameOf(object),
  }));
  const known = before.length;
  const found: Scenario[] = [
    {
      name: "life",
      known,
      steps: [...before, ...create, ...remove, ...create],
      backTo: known + create.length - 1,
    },
    {
      name: "recreate",
      known: known + create.length,
      steps: [
        ...before,
        ...create,
        ...unsettled(remove),
        ...create,
        ...remove,
      ],
    },
    {
      name: "brief",
      known,
      steps: [...before, ...unsettled(create), ...remove],
    },
  ];
  const at = known + create.length;
  /** Creates a scenario that leads directly to a state of another one. */
  const direct = (
    scenario: string,
    steps: readonly CheckStep[],
    step: number = at,
  ): Scenario => ({
    name: `direct-${scenario}`,
    known: Infinity,
    steps,
    sameAs: { scenario, step, ...(step > at && { isShared: true }) },
  });
  const inPlaceOf = (subject: JsonObject, other: JsonObject) => [
    ...before,
    ...subjects.map((one): CheckStep => ({
      apply: one === subject ? other : one,
    })),
  ];
  for (const subject of subjects) {
    const second = renamed(subject);
    if (!await accepts(second)) continue;
    const name = unique("share", found);
    found.push(direct(name, inPlaceOf(subject, second), at + 1), {
      name,
      known: at,
      steps: [
        ...before,
        ...create,
        { apply: second },
        { delete: nameOf(subject) },
        { delete: nameOf(second) },
      ],
    });
    break;
  }
  const placed = own.find((one) => metadataOf(one)["namespace"] !== undefined);
  if (placed !== undefined) {
    const namespace = {
      apply: {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: ELSEWHERE },
      },
      settle: false,
    };
    const metadata = { ...metadataOf(placed), namespace: ELSEWHERE };
    const other: CheckStep = { apply: { ...placed, metadata } };
    const steps = [
      ...before,
      namespace,
      ...create,
      other,
      { delete: nameOf(placed) },
    ];
    const alone = subjects.flatMap((one): CheckStep[] =>
      one === placed ? [] : [{ apply: one }]
    );
    // They are compared, but not disturbed.
    found.push({ name: "elsewhere", known: Infinity, steps }, {
      name: "direct-elsewhere",
      known: Infinity,
      steps: [...before, namespace, ...alone, other],
      sameAs: {
        scenario: "elsewhere",
        step: steps.length - 1,
        isShared: true,
      },
    });
  }
  for (const subject of subjects) {
    const definition = definitions.find((one) => isOf(subject, one));
    if (definition === undefined) continue;
    const { schema } = storedSchema(definition);
    let count = 0;
    for (const change of objectChanges(subject, schema)) {
      if (count >= MAX_CHANGES) break;
      const other = changed(subject, change) as JsonObject;
      if (!await accepts(other, subject)) continue;
      count++;
      const isBack = await accepts(subject, other);
      const name = unique(`change-${pathText(change)}`, found);
      found.push({
        name,
        known: at,
        steps: [
          ...before,
          ...create,
          { apply: other },
          ...(isBack ? [{ apply: subject }] : []),
        ],
        ...(isBack && { backTo: at - 1 }),
      });
      if (await accepts(other)) {
        found.push(direct(name, inPlaceOf(subject, other)));
      }
    }
  }
  for (const object of before.length > 0 ? others : []) {
    const other = changedContent(object);
    if (other === undefined || !await accepts(other, object)) continue;
    const name = unique(`given-${metadataOf(object)["name"]}`, found);
    const steps = others.map((one): CheckStep => ({
      apply: one === object ? other : one,
      settle: false,
    }));
    found.push({
      name,
      known: at,
      steps: [...before, ...create, { apply: other }],
    }, direct(name, [...steps, ...create]));
  }
  return found;
}

/** Changes the first value of a ConfigMap or Secret; undefined for others. */
function changedContent(object: JsonObject): JsonObject | undefined {
  for (const field of ["data", "stringData"]) {
    const values = object[field];
    const [name] = isJsonObject(values) ? Object.keys(values) : [];
    if (!isJsonObject(values) || name === undefined) continue;
    const isEncoded = object["kind"] === "Secret" && field === "data";
    const value = isEncoded ? btoa("changed") : `${values[name]}-changed`;
    return { ...object, [field]: { ...values, [name]: value } };
  }
  return undefined;
}

function unsettled(steps: readonly CheckStep[]): readonly CheckStep[] {
  return steps.map((step) => ({ ...step, settle: false }));
}

function pathText({ path, value }: LeafChange): string {
  const names = path.filter((part) => typeof part === "string").join(".");
  return value === undefined ? `${names}-removed` : names;
}

function unique(name: string, taken: readonly Scenario[]): string {
  const used = new Set(taken.map((one) => one.name));
  if (!used.has(name)) return name;
  let number = 2;
  while (used.has(`${name}-${number}`)) number++;
  return `${name}-${number}`;
}

/** Whether a CustomResourceDefinition defines the kind of an object. */
function isOf(object: JsonObject, { spec }: CrdManifest): boolean {
  const [group] = String(object["apiVersion"]).split("/");
  return group === spec.group && object["kind"] === spec.names.kind;
}

/** Reference to an object: apiVersion, kind, namespace and name. */
function nameOf(object: JsonObject): JsonObject {
  const { apiVersion, kind } = object;
  const { namespace, name } = metadataOf(object);
  return {
    apiVersion,
    kind,
    metadata: namespace === undefined ? { name } : { namespace, name },
  };
}

function renamed(object: JsonObject): JsonObject {
  const metadata = metadataOf(object);
  return {
    ...object,
    metadata: { ...metadata, name: `${metadata["name"]}-2` },
  };
}

/** Keys of the objects that a scenario applies, as in a `ClusterState`. */
export function appliedKeys({ steps }: Scenario): readonly string[] {
  return steps.flatMap((step) => "apply" in step ? [stateKey(step.apply)] : []);
}

/** Formats a step for users. */
export function stepText(step: CheckStep): string {
  if ("wait" in step) return `wait ${step.wait}`;
  const [verb, object] = "apply" in step
    ? ["apply", step.apply]
    : "patch" in step
    ? ["patch", step.patch]
    : ["delete", step.delete];
  const { namespace, name } = metadataOf(object);
  const at = namespace === undefined ? name : `${namespace}/${name}`;
  return `${verb} ${object["kind"]} ${at}`;
}
