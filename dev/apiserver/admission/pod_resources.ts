import { Quantity } from "@coracle/operator/client";
import type { Container, PodSpec } from "@coracle/operator/kinds";

/** Amounts by resource name. */
export type Amounts = Map<string, Quantity>;

/** Resources of an object as text, such as `{ cpu: "100m" }`. */
export type ResourceTexts = Readonly<Record<string, string>> | undefined;

/** Parses the resources of an object. */
export function amountsOf(texts: ResourceTexts): Amounts {
  return new Map(
    Object.entries(texts ?? {}).map((
      [name, text],
    ) => [name, Quantity.parse(String(text))]),
  );
}

/** Sum in the format of the first amount, or of the second if the first is zero. */
export function sum(one: Quantity | undefined, other: Quantity): Quantity {
  return one === undefined || one.nano === 0n ? other : one.plus(other);
}

/** Difference of two amounts, not below zero. */
export function difference(one: Quantity, other: Quantity): Quantity {
  return one.compare(other) <= 0
    ? Quantity.parse("0")
    : one.plus(Quantity.parse(`-${other}`));
}

/** Adds amounts to a total, in place. */
function addAmounts(
  total: Amounts,
  more: Iterable<[string, Quantity]>,
): void {
  for (const [name, amount] of more) {
    total.set(name, sum(total.get(name), amount));
  }
}

/** Pod-level resources, which replace the sum of the containers. */
const POD_LEVEL = ["cpu", "memory"];

/**
 * Requests or limits of a pod: the sum of its containers, or the largest amount
 * that its init containers need.
 */
export function podAmounts(
  spec: PodSpec,
  field: "requests" | "limits",
): Amounts {
  const total: Amounts = new Map();
  const of = ({ resources }: Container) => amountsOf(resources?.[field]);
  for (const container of spec.containers ?? []) {
    addAmounts(total, of(container));
  }
  const sidecars: Amounts = new Map();
  const initial: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = of(container);
    if (container.restartPolicy === "Always") {
      addAmounts(total, own);
      addAmounts(sidecars, own);
      raise(initial, sidecars);
    } else {
      addAmounts(own, sidecars);
      raise(initial, own);
    }
  }
  raise(total, initial);
  for (const [name, amount] of amountsOf(spec.resources?.[field])) {
    if (POD_LEVEL.includes(name)) total.set(name, amount);
  }
  return total;
}

function raise(total: Amounts, other: Amounts): void {
  for (const [name, amount] of other) {
    const known = total.get(name);
    if (!known || amount.compare(known) > 0) total.set(name, amount);
  }
}
