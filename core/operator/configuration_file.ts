import * as z from "zod/mini";
import { checkInput } from "../api/input.ts";
import { shown } from "../api/options.ts";
import { readLimited } from "../config/limited_file.ts";
import { parseYaml } from "../config/yaml_text.ts";
import type { ConfiguredOptions } from "./operator_options.ts";

/** Content of a configuration file: the options of an operator. */
export type ConfigurationFile = ConfiguredOptions & {
  /** Options of controllers by name. */
  readonly controllers?:
    | Readonly<Record<string, ConfiguredOptions>>
    | undefined;
};

/** Maximum size of a configuration file, in bytes. */
const MAX_BYTES = 1 << 20;

const NAMED = "must have named options";

/** Schema of the parts; the tables of options check the options themselves. */
const CONFIGURATION: z.ZodMiniType<ConfigurationFile> = z.looseObject({
  controllers: z.optional(
    z.record(z.string(), z.record(z.string(), z.unknown(), NAMED), NAMED),
  ),
}, NAMED);

/**
 * Reads a configuration file.
 *
 * @throws {Error} If it cannot be read.
 * @throws {SyntaxError} If it is not YAML.
 * @throws {TypeError} If a part of it is no map.
 * @throws {RangeError} If it is too large.
 */
export async function readConfiguration(
  file: string,
): Promise<ConfigurationFile> {
  const subject = `the configuration ${file}`;
  const text = await readLimited(file, MAX_BYTES).catch((error: Error) => {
    throw new Error(`Cannot read ${subject}: ${error.message}`, {
      cause: error,
    });
  });
  if (text === undefined) {
    throw new RangeError(
      `Cannot read ${subject}: it must have at most ${MAX_BYTES} bytes: received more`,
    );
  }
  const document = await parseYaml(text, {
    subject,
    refuse: ({ message, at }) =>
      new SyntaxError(
        `Cannot read ${subject}: it must be YAML or JSON: received ${message}${at}`,
      ),
  });
  return checkInput(document ?? {}, CONFIGURATION, {
    received: shown,
    refuse: (fault) => new TypeError(`Cannot read ${subject}: ${fault}`),
  });
}
