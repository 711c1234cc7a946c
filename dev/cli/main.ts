import process from "node:process";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "@coracle/operator/internal";
import { VERSION } from "./version.ts";
import { readArguments } from "./arguments.ts";
import { type Command, reportError, type Terminal } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { commandHelp, overview } from "./help.ts";
import { printableTerminal } from "./printable.ts";
import { processTerminal } from "./terminal.ts";

const RULES: OptionRules<{ readonly terminal?: Terminal | undefined }> = {
  terminal: "object?",
};

/**
 * Runs a command line.
 *
 * @param args The arguments after the program's name.
 * @param options `terminal`: input and output; the standard streams of the process
 * by default.
 * @returns The exit code: 0 on success, 1 if the command failed, 2 if the command
 * line was wrong.
 * @throws {TypeError} If the arguments are not an array of strings, or an option
 * is unknown or has another type.
 *
 * @example Print the help
 * ```ts
 * import { runCli } from "@coracle/dev/cli";
 *
 * const code = await runCli(["--help"]);
 * if (code !== 0) throw new Error("Unexpected code");
 * ```
 */
export async function runCli(
  args: readonly string[],
  options: { readonly terminal?: Terminal | undefined } = {},
): Promise<number> {
  const subject = "runCli()";
  checkOption(args, "strings", { name: "args", subject });
  checkOptions(options, RULES, subject);
  return await runCommandLine(args, options.terminal ?? processTerminal());
}

/**
 * Runs a command line with a list of commands.
 */
export async function runCommandLine(
  args: readonly string[],
  given: Terminal,
  commands: readonly Command[] = COMMANDS,
): Promise<number> {
  const terminal = printableTerminal(given);
  let running: Command | undefined;
  try {
    checkNodeVersion(process.versions);
    const request = readArguments(args, commands);
    if (request.action === "version") {
      terminal.out(`coracle ${VERSION}\n`);
      return 0;
    }
    if (request.action === "help") {
      const { command } = request;
      terminal.out(command ? commandHelp(command) : overview(commands));
      return 0;
    }
    const { command, flags, operands } = request;
    running = command;
    return await command.run({ flags, operands, terminal });
  } catch (error) {
    // A command line that cannot be read names its command first.
    running ??= commands.find(({ name }) => name === args[0]);
    return reportError(error, terminal, running);
  }
}

/** Oldest version of Node that runs the commands: `engines` of package.json. */
const OLDEST = [22, 19] as const;

/**
 * Checks the version of Node. An older one would fail later, with errors about
 * missing functions.
 *
 * @param versions Versions of the process; Deno and Bun have one of their own.
 * @throws {Error} If Node is too old.
 */
export function checkNodeVersion(
  versions: Readonly<Record<string, string | undefined>>,
): void {
  const { node = "", deno, bun } = versions;
  if (deno !== undefined || bun !== undefined) return;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isOld = major < OLDEST[0] || major === OLDEST[0] && minor < OLDEST[1];
  if (!isOld) return;
  throw new Error(
    `Cannot run coracle: it needs Node ${
      OLDEST.join(".")
    } or later, Deno or Bun: received Node ${node}`,
  );
}
