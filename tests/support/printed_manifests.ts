import { parseAllDocuments } from "yaml";
import type { PolicyRule } from "@coracle/operator/kinds";
import { runCommandLine } from "../../dev/cli/main.ts";
import { manifestsCommand } from "../../dev/cli/manifests_command.ts";
import { temporaryFolder, writeText } from "./temporary_folder.ts";

/** A manifest, as far as the tests read it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly rules?: readonly PolicyRule[];
  readonly spec?: Record<string, unknown>;
}

/** Runs `coracle manifests` with an image, and parses what it prints. */
export async function manifests(
  file: string,
  ...flags: readonly string[]
): Promise<{ code: number; found: readonly Manifest[]; said: string }> {
  let out = "";
  let said = "";
  const code = await runCommandLine(
    [
      "manifests",
      file,
      ...flags.includes("--image") ? [] : ["--image=img:1"],
      ...flags,
    ],
    {
      colors: false,
      out: (text) => void (out += text),
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [manifestsCommand],
  );
  const found = parseAllDocuments(out).map((one) => one.toJSON() as Manifest);
  return { code, found, said };
}

/** Whether a role is for the users of the kinds, not for the operator. */
export function isForUsers({ kind, metadata }: Manifest): boolean {
  return kind === "ClusterRole" && /-(viewer|editor)$/.test(metadata.name);
}

/** Rules as text, such as `Role a: configmaps get,list`, by roles. */
export function rulesOf(found: readonly Manifest[]): readonly string[] {
  const own = found.filter((one) => !isForUsers(one));
  return own.flatMap(({ kind, metadata, rules = [] }) =>
    rules.flatMap(({ resources = [], resourceNames = [], verbs }) =>
      resources.map((resource) =>
        `${[kind, metadata.namespace].join(" ").trim()}: ${
          [resource, ...resourceNames].join(" ")
        } ${verbs}`
      )
    )
  );
}

/** Address of a file of the project. */
export const url = (path: string): string =>
  new URL(`../../${path}`, import.meta.url).href;

/** Operator file with the kinds Boat, without a status, and Ship. */
export function boats(options: string, register: string): string {
  return writeText(
    temporaryFolder(),
    "boats.mjs",
    `
import { defineKind, Operator, untyped, watch } from "${url("mod.ts")}";
import { validatingPolicy } from "${url("core/crd/mod.ts")}";
import { ConfigMap, Namespace, RoleBinding } from "${url("core/kinds/mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const names = { group: "test.coracle.dev", version: "v1", spec: z.object({}) };
const Boat = defineKind({ ...names, kind: "Boat" });
const Ship = defineKind({ ...names, kind: "Ship", status: z.object({}) });
export const operator = new Operator(${options});
const reconcile = () => {};
${register}
`,
  );
}
