/**
 * Table cells of the built-in kinds, as `kubectl get` shows them: one printer for
 * each kind, grouped by area. Pure functions of an object and a time; must not
 * import storage or requests.
 *
 * @module
 */
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
 * Table cells of an object, one for each column of the resource. Resources
 * without columns of their own show the creation time.
 *
 * @param resource Resource name such as `deployments.apps`.
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

/** Whether the resource has columns of its own. */
export function hasOwnColumns(resource: string): boolean {
  return PRINTERS.has(resource);
}

/** Row conditions of an object; undefined for resources without any. */
export function rowConditionsOf(
  resource: string,
  object: UntypedObject,
): readonly Readonly<Record<string, string>>[] | undefined {
  return resource === "pods"
    ? podRowConditions(object as unknown as Pod)
    : undefined;
}
