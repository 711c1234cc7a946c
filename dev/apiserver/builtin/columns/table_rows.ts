/**
 * Table cells of the built-in kinds, as `kubectl get` shows them. Pure functions
 * of an object and a time; must not import storage or requests.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { Pod } from "@coracle/operator/kinds";
import { FieldPath } from "../../validation/field_path.ts";
import { humanAge } from "../../human_duration.ts";
import { convertAutoscaler } from "../autoscaler_conversion.ts";
import { convertEvent } from "../event_conversion.ts";
import {
  type Expression,
  ExpressionParser,
} from "../../validation/rules/expression.ts";
import { blocksOf } from "../../validation/rules/rule_text.ts";
import { Scope } from "../../validation/rules/scope.ts";
import { CELLS_TEXT } from "../../validation/rules/rule_data.ts";
import { CELL_FUNCTIONS } from "./column_functions.ts";
import { podCells, podRowConditions } from "./pod_columns.ts";

let blocks: ReadonlyMap<string, readonly string[]> | undefined;
const COMPILED: Map<string, readonly Expression[]> = new Map();

function tableBlocks(): ReadonlyMap<string, readonly string[]> {
  return blocks ??= blocksOf(CELLS_TEXT);
}

/** Cells of a resource; undefined if it has no columns of its own. */
function cellsOf(resource: string): readonly Expression[] | undefined {
  const known = COMPILED.get(resource);
  if (known) return known;
  const [text] = tableBlocks().get(resource) ?? [];
  if (text === undefined) return undefined;
  const cells = text.replace(/\s+/g, " ").split(" | ").map((cell) =>
    new ExpressionParser(cell, CELL_FUNCTIONS).parseAll()
  );
  COMPILED.set(resource, cells);
  return cells;
}

/** Version of an object that the cells read. */
function shownVersion(resource: string, object: UntypedObject): UntypedObject {
  if (resource.startsWith("horizontalpodautoscalers.")) {
    return convertAutoscaler(object, "autoscaling/v2");
  }
  return /^events(?:\.|$)/.test(resource) ? convertEvent(object, "v1") : object;
}

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
  const { name = "", creationTimestamp } = object.metadata;
  if (resource === "pods") return podCells(object as unknown as Pod, now);
  const cells = cellsOf(resource);
  if (cells === undefined) return [name, creationTimestamp ?? ""];
  const scope = new Scope(shownVersion(resource, object), new FieldPath("", []))
    .set("$name", name).set("$now", now)
    .set("$age", humanAge(creationTimestamp, now));
  return cells.map((cell) => cell(scope) ?? "");
}

/** Whether the resource has columns of its own. */
export function hasOwnColumns(resource: string): boolean {
  return resource === "pods" || tableBlocks().has(resource);
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
