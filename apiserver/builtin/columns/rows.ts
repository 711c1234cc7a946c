import type { UntypedObject } from "../../../core/api/object.ts";
import type { Pod } from "../../../core/kinds/core_v1.ts";
import { autoscalerCells } from "./autoscaler_columns.ts";
import { nameOf, type Printer } from "./cell_text.ts";
import { CLUSTER_COLUMNS } from "./cluster_columns.ts";
import { CORE_COLUMNS } from "./core_columns.ts";
import { NETWORK_COLUMNS } from "./network_columns.ts";
import { podCells, podRowConditions } from "./pod_columns.ts";
import { STORAGE_COLUMNS } from "./storage_columns.ts";
import { WORKLOAD_COLUMNS } from "./workload_columns.ts";

const PRINTERS: ReadonlyMap<string, Printer> = new Map<string, Printer>([
  ["pods", podCells],
  ["horizontalpodautoscalers.autoscaling", autoscalerCells],
  ...[
    CORE_COLUMNS,
    WORKLOAD_COLUMNS,
    NETWORK_COLUMNS,
    STORAGE_COLUMNS,
    CLUSTER_COLUMNS,
  ].flatMap((printers) => Object.entries(printers)),
]);

/**
 * The cells of a row of a resource's table, one for each column that its data
 * names. Resources without columns of their own show when they were made.
 *
 * @param resource Such as `deployments.apps`.
 */
export function rowOf(
  resource: string,
  object: UntypedObject,
  now: number,
): readonly unknown[] {
  const print = PRINTERS.get(resource);
  return print === undefined
    ? [nameOf(object), object.metadata.creationTimestamp ?? ""]
    : print(object as never, now);
}

/** Whether a resource has columns of its own. */
export function hasOwnColumns(resource: string): boolean {
  return PRINTERS.has(resource);
}

/** What else a row of a resource's table says of its object, if anything. */
export function rowConditionsOf(
  resource: string,
  object: UntypedObject,
): readonly Readonly<Record<string, string>>[] | undefined {
  return resource === "pods"
    ? podRowConditions(object as unknown as Pod)
    : undefined;
}
