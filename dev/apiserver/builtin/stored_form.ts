import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import { EARLIER } from "./data/earlier_release.ts";
import { type GoType, structIn } from "./go_types.ts";

/** Fields that 1.37 adds and stores; those of TokenRequests are not stored. */
const ENABLED: readonly string[] = [
  "io.k8s.api.authentication.v1.TokenRequestSpec",
  "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition",
  "io.k8s.api.core.v1.NodeSystemInfo",
  // Its own field is of a disabled feature.
  "io.k8s.api.storage.v1.CSINode",
];

/**
 * Fields of features that are disabled by default, by definition. Clients may
 * send them and own them, but they are not stored.
 */
const DISABLED: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.entries(EARLIER.lackingFields).filter(([name]) =>
    !ENABLED.includes(name)
  ),
  ["io.k8s.api.storage.v1.CSINodeStatus", ["storageHealth"]],
  ["io.k8s.api.core.v1.PodSpec", [
    "schedulingGroup",
    ...EARLIER.lackingFields["io.k8s.api.core.v1.PodSpec"] ?? [],
  ]],
  ["io.k8s.api.core.v1.Lifecycle", ["stopSignal"]],
  ["io.k8s.api.coordination.v1.LeaseSpec", ["strategy", "preferredHolder"]],
]);

/** Fields of features that 1.37 enables, and that are off before it. */
const ENABLED_LATELY: readonly (readonly [string, readonly string[]])[] = [
  ["io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", ["maxUnavailable"]],
  ["io.k8s.api.storage.v1.CSIDriverSpec", ["preventPodSchedulingIfMissing"]],
  ["io.k8s.api.core.v1.VolumeProjection", [
    "clusterTrustBundle",
    "podCertificate",
  ]],
];

/** Plan of the stored form of a struct: its changes, and its fields that contain structs to change. */
interface StoredPlan {
  /** Fields that are dropped. */
  readonly disabled: readonly string[];
  /** Lists and maps that become null if empty. */
  readonly lists: readonly string[];
  readonly structs: readonly (readonly [field: string, plan: StoredPlan])[];
}

/** The stored form of objects, by the features that a release enables. */
export class StoredForm {
  readonly #disabled: ReadonlyMap<string, readonly string[]>;
  readonly #plans: Map<string, StoredPlan | undefined> = new Map();

  /**
   * Creates the form of a release.
   *
   * @param hasEarlierGates Whether features that 1.37 enables are off.
   */
  constructor(hasEarlierGates: boolean) {
    this.#disabled = hasEarlierGates
      ? new Map([...DISABLED, ...ENABLED_LATELY])
      : DISABLED;
  }

  /**
   * Changes an object to its stored form, in place: drops the fields of disabled
   * features, and sets empty lists and maps that are always written to null,
   * because storage (unlike a request) does not distinguish empty from null.
   */
  convert(type: GoType, object: JsonObject): void {
    const plan = this.#planFor(type);
    if (plan) convert(plan, object);
  }

  #planFor(type: GoType): StoredPlan | undefined {
    if (this.#plans.has(type.definition)) {
      return this.#plans.get(type.definition);
    }
    this.#plans.set(type.definition, undefined);
    const lists: string[] = [];
    const structs: [string, StoredPlan][] = [];
    for (const { name, schema, presence } of type.fields.values()) {
      const isCollection = schema.type === "array" ||
        schema.additionalProperties !== undefined;
      // A definition without versions is not stored: its refusal shows the list.
      const isRefused = name === "versions";
      if (presence === "always" && isCollection && !isRefused) lists.push(name);
      const struct = structIn(schema);
      const plan = struct && this.#planFor(struct);
      if (plan) structs.push([name, plan]);
    }
    const disabled = this.#disabled.get(type.definition) ?? [];
    const plan = disabled.length + lists.length + structs.length > 0
      ? { disabled, lists, structs }
      : undefined;
    this.#plans.set(type.definition, plan);
    return plan;
  }
}

function convert(plan: StoredPlan, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) convert(plan, item);
  } else if (isJsonObject(value)) {
    for (const name of plan.disabled) delete value[name];
    for (const name of plan.lists) {
      const list = value[name];
      const isEmpty = typeof list === "object" && list !== null &&
        Object.keys(list).length === 0;
      if (isEmpty) value[name] = null;
    }
    for (const [name, below] of plan.structs) convert(below, value[name]);
  }
}
