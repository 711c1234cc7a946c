import { access } from "node:fs/promises";
import * as z from "zod/mini";
import { checkInput } from "@coracle/operator/internal";
import type { CheckOptions } from "../check_options.ts";
import { importFresh } from "./fresh_modules.ts";
import { loadError } from "./load_error.ts";

/** Names of the options that a file can have. */
const NAMES = [
  "externals",
  "invariants",
  "workload",
  "examples",
  "kinds",
  "ignore",
] as const;

/** Options from a file beside an operator file. */
export type FileOptions = Pick<CheckOptions, typeof NAMES[number]>;

const EXPECTED = `must be an object with ${NAMES.join(", ")}`;

/** Schema of the names; the values are checked with all other options. */
const OPTIONS = z.strictObject(
  Object.fromEntries(NAMES.map((name) => [name, z.optional(z.any())])),
  EXPECTED,
).check(z.refine((options) => Object.keys(options).length > 0, EXPECTED));

/**
 * Path of the file with options for the check of an operator, such as
 * `operator.check.ts` beside `operator.ts`; undefined if none exists.
 */
export async function optionsBeside(
  operator: string,
): Promise<string | undefined> {
  const beside = operator.replace(/\.[cm]?[jt]sx?$/, ".check$&");
  const exists = beside !== operator &&
    await access(beside).then(() => true, () => false);
  return exists ? beside : undefined;
}

/**
 * Imports the options of a file as a new process would, so that its fakes have
 * no state from earlier runs.
 *
 * @throws {TypeError} If the default export has other options.
 */
export async function readOptions(
  file: string | undefined,
): Promise<FileOptions> {
  if (file === undefined) return {};
  const { default: options } = await importFresh(file).catch((error) => {
    throw loadError(file, error);
  });
  return checkInput(options, OPTIONS, {
    root: "its default export",
    received: (value) => Object.keys(value ?? {}).join(", ") || typeof value,
    refuse: (fault) => new TypeError(`Cannot read ${file}: ${fault}`),
  });
}
