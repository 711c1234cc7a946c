/** A flag that takes a value, or one that stands for itself. */
export interface Flag {
  /** The name without dashes, such as `port`. */
  readonly name: string;
  /** What the value is, such as `FILE`; a flag without one is a switch. */
  readonly value?: string | undefined;
  /** Whether the command cannot do without it. */
  readonly required?: boolean | undefined;
  /** What it does, for the help. */
  readonly help: string;
}

/** The values of flags by name; a switch that was given is `true`. */
export type FlagValues = Readonly<Record<string, string | true | undefined>>;

/** Where a command reads and writes, passed in so that tests can look on. */
export interface Terminal {
  /** Writes what the user asked for, for a person or a pipe. */
  out(text: string): void;
  /** Writes what is said about it, for a person. */
  say(text: string): void;
  /** Whether what is said may be coloured. */
  readonly colors: boolean;
  /**
   * Fires when the user or the system asks the program to end. Whoever asks for
   * it takes the ending over; a second request ends the program at once.
   */
  interrupts(): AbortSignal;
}

/** What a command is run with. */
export interface CommandInput {
  /** The values of its flags. */
  readonly flags: FlagValues;
  /** The arguments that belong to no flag, usually files. */
  readonly operands: readonly string[];
  /** Where it reads and writes. */
  readonly terminal: Terminal;
}

/** One thing that the command line can do. */
export interface Command {
  /** The word that names it. */
  readonly name: string;
  /** What its operands are, such as `FILE…`; none if empty. */
  readonly operands: string;
  /** How few and how many operands it takes. */
  readonly count: readonly [least: number, most: number];
  /** One line for the list of commands. */
  readonly summary: string;
  /** What a person should know beside its flags. */
  readonly description: string;
  /** The flags that it takes. */
  readonly flags: readonly Flag[];
  /** Does it and gives the exit code. */
  run(input: CommandInput): Promise<number>;
}

/**
 * The user asked for something that cannot be: the message says what to change,
 * and is printed without a stack.
 */
export class UsageError extends Error {
  /** The command whose help may tell more. */
  readonly command: string | undefined;

  /**
   * Makes the error of a wrong command line.
   *
   * @param message What is wrong and what would be right.
   * @param command The command whose help may tell more.
   */
  constructor(message: string, command?: string) {
    super(message);
    this.name = "UsageError";
    this.command = command;
  }
}
