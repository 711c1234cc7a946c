import { escaped } from "../../core/api/input.ts";
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { parseByteSize } from "../../core/api/byte_size.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { loadModule, outsideWork, systemClock } from "../../core/clock.ts";
import { fromYaml } from "./manifests.ts";

/** Options of {@linkcode fromCommand}. */
export interface CommandOptions {
  /**
   * Time limit, in real time also where the operator has a virtual clock.
   *
   * @default {"60s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * Maximum size of the output.
   *
   * @default {"8Mi"}
   */
  readonly maxOutput?: number | string | undefined;
  /** Text of the standard input, which is empty by default. */
  readonly input?: string | undefined;
  /** Variables that are added to those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Folder in which the command runs. Defaults to that of this process. */
  readonly cwd?: string | undefined;
  /** Signal that ends the command, such as `ctx.signal`. */
  readonly signal?: AbortSignal | undefined;
}

const RULES: OptionRules<CommandOptions> = {
  timeout: "duration?",
  maxOutput: "bytes?",
  input: "string?",
  env: "object?",
  cwd: "name?",
  signal: "signal?",
};

/**
 * Reads the objects that a command prints as YAML or JSON, such as those of `helm
 * template` and `kustomize build`.
 *
 * No shell reads the command, so no text in it has a special meaning. A program may
 * still take an argument that begins with `-` for an option: put `--` before what
 * comes from a spec.
 *
 * At the end of the time limit the process group of the program is killed. A child that
 * has made a session of its own, as `setsid` does, is not in that group and goes on: in
 * a pod, only a limit of the container bounds it. On Windows, and on Deno where
 * `--allow-run` names programs, only the program itself is killed.
 *
 * Name the program in the option `programs` of the operator, for the permissions that
 * `coracle manifests` prints for Deno.
 *
 * @param command The program, by its name in `PATH` or by its path, and its
 * arguments.
 * @throws {Error} If the program is not installed, fails, prints too much or exceeds
 * its time limit, after which it and its group are killed. If it failed, the error
 * has the end of its standard error, and never its arguments, input or output.
 * @throws {TypeError | RangeError} If its output has other things than objects, as
 * `fromYaml` says, or an option is unknown or invalid.
 * @throws The reason of the signal, if that fires.
 *
 * @example
 * ```ts
 * import { fromCommand } from "@coracle/operator/workflows";
 *
 * const helm = (chart: string, values: object) =>
 *   fromCommand(
 *     ["helm", "template", "--values", "-", "--", "web", chart],
 *     { input: JSON.stringify(values), timeout: "30s" },
 *   );
 * ```
 */
export async function fromCommand(
  command: readonly [program: string, ...args: readonly string[]],
  options: CommandOptions = {},
): Promise<UntypedObject[]> {
  const subject = "fromCommand()";
  checkOption(command, "strings", { name: "command", subject });
  const [program, ...args] = command;
  checkOption(program, "name", { name: "program", subject });
  checkOptions(options, RULES, subject);
  const { timeout = "60s", maxOutput = "8Mi", env = {} } = options;
  const name = escaped(program);
  const { runProgram } = await loadModule(
    import("../../core/config/program.ts"),
  );
  const output = await outsideWork(runProgram(program, {
    ...options,
    args,
    env,
    timeout: milliseconds(timeout),
    maxOutput: parseByteSize(maxOutput),
    clock: systemClock,
    keepsErrors: true,
    failure: (why) => new Error(`Cannot run "${name}": it ${why}`),
  }));
  return await fromYaml(output, { name: `the output of "${name}"` });
}
