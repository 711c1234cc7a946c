import { fileURLToPath } from "node:url";
import type { UntypedObject } from "@coracle/operator/client";
import type { Perturbation } from "../../../dev/testing/check/perturbations.ts";
import { importFresh } from "../../../dev/testing/check/fresh_modules.ts";
import type { WorldOptions } from "../../../dev/testing/check/world_options.ts";
import { runWorld, type WorldRun, type WorldStep } from "./run_world.ts";

const FILE = fileURLToPath(new URL("copier_operator.ts", import.meta.url));

/** Loads the operator of the tests, as a new process would. */
export async function loadCopier(): Promise<undefined> {
  await importFresh(FILE);
  return undefined;
}

export const COPIER = {
  apiVersion: "world.coracle.dev/v1",
  kind: "Copier",
  name: "one",
} as const;

/** A Copier with a text. */
export function copier(text: string): UntypedObject {
  const { apiVersion, kind, name } = COPIER;
  const metadata = { name, namespace: "default" };
  return { apiVersion, kind, metadata, spec: { text } } as UntypedObject;
}

/** Runs the operator of the tests. */
export function runCopier(
  perturbations: readonly Perturbation[] = [],
  { steps = [{ apply: copier("a") }], ...options }:
    & Partial<WorldOptions>
    & { readonly steps?: readonly WorldStep[] } = {},
): Promise<WorldRun> {
  const load = loadCopier;
  return runWorld({ seed: 1, load, perturbations, steps, ...options });
}

/** Requests of a run that are numbered writes, as text. */
export function writesOf({ trace }: WorldRun): string[] {
  return trace.flatMap((entry) =>
    entry.type === "request" && entry.write !== undefined
      ? [
        `${entry.write} ${entry.incarnation} ${entry.verb} ${entry.resource}${
          entry.subresource && `/${entry.subresource}`
        } ${entry.code}${entry.changed ? " changed" : ""}${
          entry.answered ? "" : " unanswered"
        }`,
      ]
      : []
  );
}

/** Status of the Copier at the end of a run. */
export function statusOf({ end }: WorldRun): unknown {
  return end["world.coracle.dev/v1 Copier default/one"]?.["status"];
}
