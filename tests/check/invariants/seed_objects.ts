import { z } from "zod";
import { type DefinedKind, defineKind } from "@coracle/operator/crd";
import type { WorldObjects } from "../../../dev/testing/check/world_objects.ts";
import { type Primary, PRIMARY_KINDS } from "./fleet.ts";
import {
  CARGO,
  type ControllerPlan,
  type SeedPlan,
  SELECTED,
} from "./seed_plan.ts";

/** API group and version of the primaries. */
export const API_VERSION = "fleet.coracle.dev/v1";

/** Definition of the kind that observers find by discovery. */
export function cargoKind(plural = "cargos"): DefinedKind {
  return defineKind({
    group: API_VERSION.split("/")[0] as string,
    version: "v1",
    kind: CARGO,
    plural,
    spec: z.object({ value: z.string() }),
  }) as unknown as DefinedKind;
}

/** Versions of the objects of a kind, by namespace and name. */
export function versionsOf(
  kind: string,
  namespaces: readonly string[] | undefined,
  objects: WorldObjects,
): Map<string, string> {
  return new Map(
    Object.entries(objects).flatMap(([key, { metadata }]) => {
      const { namespace = "", name, resourceVersion = "" } = metadata;
      const isWatched = namespaces?.includes(namespace) ?? true;
      return isWatched && key.startsWith(`${API_VERSION} ${kind} `)
        ? [[`${namespace}/${name}`, resourceVersion]]
        : [];
    }),
  );
}

export function primariesIn(objects: WorldObjects): Primary[] {
  return Object.entries(objects).flatMap(([key, object]) =>
    key.startsWith(`${API_VERSION} `) && PRIMARY_KINDS.has(object.kind ?? "")
      ? [object as unknown as Primary]
      : []
  );
}

/** Whether a controller runs a primary. */
export function isChosen(
  { kind, namespaces, selects }: ControllerPlan,
  { kind: other, metadata: { namespace = "", labels } }: Primary,
): boolean {
  return kind === other &&
    (namespaces === "all" || namespaces.includes(namespace)) &&
    (!selects || labels?.["tier"] === SELECTED.tier);
}

/** JSON with sorted keys. */
export function sorted(value: unknown): string {
  return JSON.stringify(
    value,
    (_, part) =>
      part !== null && typeof part === "object" && !Array.isArray(part)
        ? Object.fromEntries(
          Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : part,
  );
}

/** Whether a perturbation of a kind is part of a plan. */
export function hasPerturbation(plan: SeedPlan, kind: string): boolean {
  return plan.perturbations.some((one) => one.do === kind);
}
