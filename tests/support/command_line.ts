/**
 * Arguments of the project's own commands, such as the benchmarks: a wrong one
 * ends the process with exit code 2 and a line that names what is right. What the
 * command itself refuses later ends it with exit code 1 and such a line.
 *
 * @module
 */
import process from "node:process";
import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

/** Arguments of a command. */
export interface CommandLine<V> {
  readonly values: V;
  readonly positionals: readonly string[];
  /** Value of an option as a positive number; undefined if absent. */
  positive<K extends keyof V & string>(name: K): NumberOf<V[K]>;
  /** Value of an option as an integer of 0 or `least` or more; undefined if absent. */
  integer<K extends keyof V & string>(name: K, least?: number): NumberOf<V[K]>;
}

type NumberOf<T> = undefined extends T ? number | undefined : number;

/** Ends the process with the message of an uncaught error, or its stack. */
function endWith(error: unknown): void {
  const { message = String(error), stack = message } = error as Error;
  const isRefusal = message.startsWith("Cannot ");
  process.stderr.write(`${(isRefusal ? message : stack).trimEnd()}\n`);
  process.exit(1);
}

/**
 * Reads the arguments of the process. From then on an uncaught error whose message
 * begins with "Cannot" is printed without its stack.
 *
 * @param action What the command does, for errors: "run tests".
 * @param options Options, as `parseArgs` of `node:util` takes them.
 * @param positionals Names of the other arguments, for errors; none are taken
 * by default.
 */
export function commandLine<const T extends ParseArgsOptionsConfig>(
  action: string,
  options: T,
  positionals = "",
): CommandLine<
  ReturnType<typeof parseArgs<{ options: T; strict: true }>>["values"]
> {
  process.once("uncaughtException", endWith);
  const refuse = (why: string): never => {
    process.stderr.write(`Cannot ${action}: ${why}\n`);
    process.exit(2);
  };
  const read = () => {
    const allowPositionals = positionals !== "";
    try {
      return parseArgs({ options, strict: true, allowPositionals });
    } catch (error) {
      const known = Object.entries(options).map(([name, { type }]) =>
        type === "boolean" ? `--${name}` : `--${name} VALUE`
      );
      const taken = allowPositionals ? [positionals, ...known] : known;
      const args = process.argv.slice(2).join(" ");
      return refuse(
        `it takes ${taken.join(", ") || "no arguments"}: received ${args} (${
          (error as Error).message.split(/\. |\n/, 1)[0]
        })`,
      );
    }
  };
  const { values, positionals: rest } = read();
  const number = (
    name: string,
    what: string,
    isRight: (value: number) => boolean,
  ) => {
    const text = (values as Record<string, unknown>)[name];
    if (text === undefined) return undefined;
    const value = text === "" ? NaN : Number(text);
    return isRight(value)
      ? value
      : refuse(`--${name} must be ${what}: received "${text}"`);
  };
  return {
    values,
    positionals: rest,
    positive: (name) =>
      number(
        name,
        "a positive number",
        (value) => value > 0 && value < Infinity,
      ) as never,
    integer: (name, least = 0) =>
      number(
        name,
        `an integer of ${least} or more`,
        (value) => Number.isSafeInteger(value) && value >= least,
      ) as never,
  };
}
