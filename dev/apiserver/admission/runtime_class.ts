import { jsonEquals } from "@coracle/operator/internal";
import type { Pod, RuntimeClass, Toleration } from "@coracle/operator/kinds";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import { type Amounts, amountsOf } from "./pod_resources.ts";

const RUNTIME_CLASSES = { group: "node.k8s.io", plural: "runtimeclasses" };

/** Plug-in that applies overhead and scheduling of the RuntimeClass of new Pods. */
export const RUNTIME_CLASS: AdmissionPlugin = {
  name: "RuntimeClass",
  operations: ["CREATE"],
  resources: ["pods"],
  mutate(attributes): void {
    const { spec } = attributes.object as unknown as Pod;
    const found = classOf(attributes);
    const overhead = found?.overhead?.podFixed;
    if (found?.overhead) {
      if (
        Object.keys(spec.overhead ?? {}).length > 0 &&
        !equal(amountsOf(spec.overhead), amountsOf(overhead))
      ) throw rejected(attributes, MISMATCH);
      if (overhead) spec.overhead = { ...overhead };
    }
    if (found?.scheduling === undefined) return;
    const { nodeSelector = {}, tolerations = [] } = found.scheduling;
    for (const [key, value] of Object.entries(nodeSelector)) {
      const own = spec.nodeSelector?.[key];
      if (own === undefined || own === value) continue;
      throw refusal(
        attributes,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
    }
    if (Object.keys(nodeSelector).length > 0) {
      spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector };
    }
    const merged = distinct([...spec.tolerations ?? [], ...tolerations]);
    if (merged.length > 0) spec.tolerations = merged;
  },
  validate(attributes): void {
    const { overhead } = (attributes.object as unknown as Pod).spec;
    const found = classOf(attributes)?.overhead;
    if (found) {
      if (equal(amountsOf(found.podFixed), amountsOf(overhead))) return;
      throw rejected(attributes, MISMATCH);
    }
    if (overhead === undefined) return;
    throw rejected(
      attributes,
      "Pod Overhead set without corresponding RuntimeClass defined Overhead",
    );
  },
};

const MISMATCH = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";

function rejected(attributes: Attributes, why: string): Error {
  return refusal(attributes, `pod rejected: ${why}`);
}

function classOf(attributes: Attributes): RuntimeClass | undefined {
  const { runtimeClassName: name } = (attributes.object as unknown as Pod).spec;
  if (name === undefined) return undefined;
  const found = attributes.hooks.find(RUNTIME_CLASSES, { name });
  if (found !== undefined) return found as unknown as RuntimeClass;
  throw rejected(attributes, `RuntimeClass ${JSON.stringify(name)} not found`);
}

function equal(one: Amounts, other: Amounts): boolean {
  return one.size === other.size &&
    [...one].every(([name, amount]) => other.get(name)?.equals(amount));
}

/** Tolerations without those that another toleration includes. */
function distinct(tolerations: readonly Toleration[]): Toleration[] {
  return tolerations.filter((one, index) =>
    !tolerations.some((other, at) =>
      jsonEquals(one, other) ? at < index : at !== index && includes(other, one)
    )
  );
}

function includes(outer: Toleration, inner: Toleration): boolean {
  const { key = "", effect = "", operator = "Equal" } = outer;
  const anyKey = key === "" && operator === "Exists";
  if (!anyKey && key !== (inner.key ?? "")) return false;
  if (effect !== "" && effect !== inner.effect) return false;
  const { tolerationSeconds: seconds } = outer;
  if (
    effect === "NoExecute" && seconds !== undefined &&
    (inner.tolerationSeconds ?? Infinity) > seconds
  ) return false;
  return operator === "Exists" ||
    (inner.operator === "Equal" && (inner.value ?? "") === (outer.value ?? ""));
}
