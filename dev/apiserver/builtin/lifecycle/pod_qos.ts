import { Quantity } from "@coracle/operator/client";
import type { Pod, ResourceRequirements } from "@coracle/operator/kinds";

/**
 * Quality-of-service class of a Pod, which nodes under memory pressure use to choose
 * whom to evict: Guaranteed if every container has equal requests and limits of
 * CPU and memory, BestEffort if none has any, otherwise Burstable.
 */
export function qosClassOf(
  pod: Pod,
): "BestEffort" | "Burstable" | "Guaranteed" {
  const { containers, initContainers = [] } = pod.spec;
  const all = [...containers ?? [], ...initContainers].map(({ resources }) =>
    resources ?? {}
  );
  if (all.every(hasNothing)) return "BestEffort";
  return all.every(isFixed) ? "Guaranteed" : "Burstable";
}

const COUNTED = ["cpu", "memory"];

function hasNothing({ limits, requests }: ResourceRequirements): boolean {
  return COUNTED.every((name) =>
    isZero(limits?.[name]) && isZero(requests?.[name])
  );
}

function isZero(quantity: string | undefined): boolean {
  return quantity === undefined || Quantity.parse(quantity).nano === 0n;
}

function isFixed({ limits, requests }: ResourceRequirements): boolean {
  return COUNTED.every((name) => {
    const limit = limits?.[name];
    const request = requests?.[name] ?? limit;
    return limit !== undefined && request !== undefined && !isZero(limit) &&
      Quantity.parse(limit).equals(Quantity.parse(request));
  });
}
