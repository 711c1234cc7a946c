import { parseArgs } from "node:util";
import {
  type Command,
  type Flag,
  flagsOf,
  type FlagValues,
  suggestion,
  UsageError,
} from "./command.ts";

/** Parsed command line. */
export type Request =
  | { readonly action: "help"; readonly command: Command | undefined }
  | { readonly action: "version" }
  | {
    readonly action: "run";
    readonly command: Command;
    readonly flags: FlagValues;
    readonly operands: readonly string[];
  };

/**
 * Parses a command line: `[--help | --version] COMMAND [--flag VALUE]… OPERAND…`.
 * Flags may appear anywhere after the command; `--` ends them.
 *
 * @throws {UsageError} If the command or a flag does not exist, a value is
 * missing, or the number of operands is wrong.
 */
export function readArguments(
  args: readonly string[],
  commands: readonly Command[],
): Request {
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") {
    return { action: "help", command: undefined };
  }
  if (first === "--version" || first === "-V") return { action: "version" };
  if (first === "help") {
    const [name] = rest;
    return {
      action: "help",
      command: name === undefined ? undefined : findCommand(name, commands),
    };
  }
  const command = findCommand(first, commands);
  const { flags, operands } = readFlags(rest, command);
  if (flags["help"] !== undefined) return { action: "help", command };
  checkRequired(flags, command);
  checkOperands(operands, command);
  return { action: "run", command, flags, operands };
}

function findCommand(name: string, commands: readonly Command[]): Command {
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const names = commands.map((candidate) => candidate.name);
  throw new UsageError(
    `Cannot run a command: it must be one of ${
      names.join(", ")
    }: received "${name}"${suggestion(name, names)}`,
  );
}

function readFlags(
  args: readonly string[],
  command: Command,
): { flags: FlagValues; operands: readonly string[] } {
  const known = new Map(flagsOf(command).map((flag) => [flag.name, flag]));
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([
      ...Array.from(known.values(), ({ name, value }) => [
        name,
        { type: value === undefined ? "boolean" : "string" } as const,
      ]),
      ["help", { type: "boolean", short: "h" } as const],
    ]),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const flags: Record<string, string | true | readonly string[]> = Object
    .create(null);
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    else if (token.kind === "option") {
      const flag = known.get(token.name);
      if (flag === undefined && token.name !== "help") {
        throw unknownFlag(token.rawName, command);
      }
      const value = flagValue(flag, token.value, command);
      const earlier = flags[token.name];
      if (Array.isArray(value)) {
        flags[token.name] = [...earlier as readonly string[] ?? [], ...value];
      } else if (earlier === undefined || flag === undefined) {
        flags[token.name] = value;
      } else throw repeatedFlag(flag, [earlier, value], command);
    }
  }
  return { flags, operands };
}

function flagValue(
  flag: Flag | undefined,
  value: string | undefined,
  command: Command,
): string | true | readonly string[] {
  if (flag?.value === undefined) {
    if (value === undefined) return true;
    const name = flag?.name ?? "help";
    throw wrongUse(command, `--${name} takes no value: received "${value}"`);
  }
  const { name, isList } = flag;
  const values = isList
    ? value?.split(",").map((one) => one.trim()).filter(Boolean) ?? []
    : [];
  if (values.length > 0) return values;
  if (!isList && value !== undefined && value !== "") return value;
  throw wrongUse(
    command,
    `--${name} takes a value: write --${name} ${flag.value}`,
  );
}

function repeatedFlag(
  { name, value }: Flag,
  received: readonly unknown[],
  command: Command,
): UsageError {
  const all = value === undefined
    ? ""
    : `: received ${received.map((one) => `"${one}"`).join(" and ")}`;
  return wrongUse(command, `--${name} may be given only once${all}`);
}

function unknownFlag(written: string, command: Command): UsageError {
  const names = flagsOf(command).map(({ name }) => `--${name}`);
  const known = names.length === 0 ? "no flags" : names.join(", ");
  return wrongUse(
    command,
    `it knows ${known}: received ${written}${suggestion(written, names)}`,
  );
}

function checkRequired(flags: FlagValues, command: Command): void {
  for (const { name, isRequired, value } of flagsOf(command)) {
    if (!isRequired || flags[name] !== undefined) continue;
    throw wrongUse(command, `--${name} is missing: write --${name} ${value}`);
  }
}

function checkOperands(operands: readonly string[], command: Command): void {
  const [least, most] = command.count;
  if (operands.length >= least && operands.length <= most) return;
  const expected = command.operands === "" ? "no operands" : command.operands;
  const received = operands.length === 0
    ? "nothing"
    : operands.map((operand) => `"${operand}"`).join(" ");
  throw wrongUse(command, `it takes ${expected}: received ${received}`);
}

function wrongUse({ name }: Command, why: string): UsageError {
  return new UsageError(`Cannot run ${name}: ${why}`, name);
}
