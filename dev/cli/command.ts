import { nearestName } from "@coracle/operator/internal";

/** Command-line flag, with a value or as a switch. */
export interface Flag {
  /** The name without dashes, such as `port`. */
  readonly name: string;
  /** Placeholder of the value, such as `FILE`; without it the flag is a switch. */
  readonly value: string | undefined;
  /** Whether it has a list of values, such as `FILE…`. */
  readonly isList: boolean;
  readonly isRequired: boolean;
  readonly help: string;
}

/** Values of flags by name; a switch that is present is `true`. */
export type FlagValues = Readonly<
  Record<string, string | true | readonly string[] | undefined>
>;

/** Input and output of a command, passed in so that tests can observe them. */
export interface Terminal {
  /** Writes results to standard output, for a person or a pipe. */
  out(text: string): void;
  /** Writes messages for a person to standard error. */
  say(text: string): void;
  /** Whether messages may be coloured. */
  readonly colors: boolean;
  /**
   * Signal that aborts when the user or the system asks the program to end.
   * After the first call of this method the command is responsible for ending;
   * a second request ends the program immediately.
   */
  interrupts(): AbortSignal;
}

/** Terminal of a command, which escapes control characters in text. */
export interface CommandTerminal extends Terminal {
  /**
   * Writes to standard error as it is, for colours and movements of the cursor.
   * Text of others in it must be escaped by `printable`.
   */
  draw(text: string): void;
}

export interface Command {
  readonly name: string;
  /** Placeholder of the operands, such as `FILE…`; empty if absent. */
  readonly operands: string;
  /** Minimum and maximum number of operands. */
  readonly count: readonly [least: number, most: number];
  /** Summary in one line, for the list of commands. */
  readonly summary: string;
  /** Description, shown above the flags in the command's help. */
  readonly description: string;
  /**
   * Flags with their help: a switch by its name, and any other by its name and
   * the placeholder of its value, such as `port N`. A list, such as `crd FILE…`,
   * may be given several times and separated by commas; no other flag may.
   */
  readonly flags: Readonly<Record<string, string>>;
  /** Names of the flags that must be given. */
  readonly required?: readonly string[] | undefined;
  /**
   * Exit code of a wrong command line.
   *
   * @default {2}
   */
  readonly usageCode?: number | undefined;
  /** Runs the command and resolves to the exit code. */
  run(input: {
    readonly flags: FlagValues;
    /** Arguments that belong to no flag, usually files. */
    readonly operands: readonly string[];
    readonly terminal: CommandTerminal;
  }): Promise<number>;
}

/** Flags of a command, in the order of its help. */
export function flagsOf(
  { flags, required = [] }: Pick<Command, "flags" | "required">,
): readonly Flag[] {
  return Object.entries(flags).map(([usage, help]) => {
    const [name = "", value] = usage.split(" ");
    const isList = value?.endsWith("…") ?? false;
    return { name, value, isList, isRequired: required.includes(name), help };
  });
}

/**
 * Error of a wrong command line. The message says what to change and is printed
 * without a stack trace.
 */
export class UsageError extends Error {
  /** Command whose help is suggested. Defaults to the running command. */
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.name = "UsageError";
    this.command = command;
  }
}

/** Reports an error to the user; returns the exit code. */
export function reportError(
  error: unknown,
  terminal: Terminal,
  running?: Pick<Command, "name" | "usageCode">,
): number {
  if (error instanceof UsageError) {
    const help = ["See coracle help", error.command ?? running?.name ?? ""];
    terminal.say(`${error.message}\n${help.join(" ").trimEnd()}\n`);
    return running?.usageCode ?? 2;
  }
  // Errors of this library say what failed and why. For other errors, such as
  // those of the user's own file, the stack trace leads to the cause.
  const text = error instanceof Error
    ? error.message.startsWith("Cannot ") ? error.message : traceOf(error)
    : String(error);
  terminal.say(`${text}\n`);
  return 1;
}

/** Stack trace of an error, or its position for errors of Bun's parser. */
function traceOf(
  { stack, message, position }: Error & {
    readonly position?: { readonly file: string; readonly line: number };
  },
): string {
  if (stack !== undefined) return stack;
  return position === undefined
    ? message
    : `${message}\n    at ${position.file}:${position.line}`;
}

/** Suggestion for a misspelt name, for the end of an error; may be empty. */
export function suggestion(word: string, names: readonly string[]): string {
  const nearest = nearestName(word, names);
  return nearest === undefined ? "" : ` (did you mean "${nearest}"?)`;
}
