/**
 * Operator files for tests of `coracle dev`, and where it leaves its files.
 *
 * @module
 */

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { untyped } from "../../core/api/kind.ts";
import { linkFileOf } from "../../dev/cli/serving.ts";
import { PROJECT } from "./child_process.ts";
import { RUNTIME } from "./program.ts";
import { temporaryFolder, writeText } from "./temporary_folder.ts";

/** URL of a file of the project. */
export const url = (path: string): string =>
  new URL(`../../${path}`, import.meta.url).href;
/** API group of the kinds. */
export const GROUP = "batch.test.dev";

/** Operator file with a kind CronJob of its own, as its name and body say. */
export function operatorFile(body: string): string {
  return writeText(
    projectFolder(),
    "op.mjs",
    `
import { defineKind, deny, Operator } from "${url("mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const names = { group: "${GROUP}", version: "v1", spec: z.object({}) };
const CronJob = defineKind({ ...names, kind: "CronJob" });
const Part = defineKind({ ...names, kind: "Part" });
function make(options = {}) {
  const operator = new Operator(options);
  const reconcile = (job, ctx) => ctx.log.debug("one");
  operator.register(CronJob, { reconcile }, { owns: [Part] });
  return operator;
}
${body}
`,
  );
}

/** Folder of an operator, in a project that has the dependencies. */
function projectFolder(): string {
  if (RUNTIME !== "deno") return temporaryFolder();
  const cache = join(PROJECT, ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "operator-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Where a command of a test leaves its files. */
export interface Places {
  /** Folder for temporary files. */
  readonly folder: string;
  readonly kubeconfig: string;
  /** Nothing of the command is left. */
  isEmpty(): boolean;
}

/** A folder for temporary files, the kubeconfig and what the command leaves. */
export function places(): Places {
  const folder = temporaryFolder();
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  return {
    folder,
    kubeconfig,
    isEmpty: () =>
      !existsSync(kubeconfig) && !existsSync(linkFileOf(kubeconfig)) &&
      readdirSync(folder).filter((name) => name.startsWith("coracle-"))
          .length === 0,
  };
}

/** Creates an object that the operator reconciles. */
export async function createJob(
  kubeconfig: string,
  name: string,
): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const kind = untyped({ group: GROUP, version: "v1", kind: "CronJob" });
  await client.create(kind, {
    metadata: { name, namespace: "default" },
    spec: {},
  });
  await client.close();
}

/** Forms of an operator file. */
export const FORMS = {
  "awaits run()": "await make().run();",
  "does not await run()": "void make().run();",
  "exports a function": "export const operator = make;",
  "runs only as the main module": "if (import.meta.main) await make().run();",
};
