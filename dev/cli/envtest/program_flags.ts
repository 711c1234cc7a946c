import { suggestion } from "../command.ts";

/** Flags of a program that another program stands in for. */
export interface ProgramFlags {
  /** Name of the program, for errors. */
  readonly program: string;
  /** Supported flags with their meanings. */
  readonly honoured: Readonly<Record<string, string>>;
  /** Flags with a value that are ignored, separated by spaces. */
  readonly accepted: string;
  /** Flags without a value that are ignored, separated by spaces. */
  readonly switches: string;
  /** Flags that would change answers in a way that is not supported. */
  readonly refused: string;
}

/** Values of the flags by name, in the order given. */
export type ProgramValues = ReadonlyMap<string, readonly string[]>;

/**
 * Reads flags as the flag packages of Go do: `--name=value`, `--name value`
 * and, for a switch, `--name`; one dash counts as two. Only supported flags are
 * returned.
 *
 * @throws {Error} If a flag is unknown or not supported, or an operand is
 * given.
 */
export function readProgramFlags(
  args: readonly string[],
  { program, honoured, accepted, switches, refused }: ProgramFlags,
): ProgramValues {
  const words = (text: string) => text.split(/\s+/).filter(Boolean);
  const isSwitch = new Set(words(switches));
  const isRefused = new Set(words(refused));
  const known = new Set([
    ...Object.keys(honoured),
    ...words(accepted),
    ...isSwitch,
    ...isRefused,
  ]);
  const values = new Map<string, string[]>();
  const rest = args.values();
  for (const arg of rest) {
    const [, name = "", given] = /^--?([^=-][^=]*)(?:=([^]*))?$/.exec(arg) ??
      [];
    if (!known.has(name)) {
      const names = [...known].map((flag) => `--${flag}`);
      throw new Error(
        `Cannot start ${program}: it knows no such ${
          arg.startsWith("-") ? "flag" : "operand"
        }: received ${arg}${suggestion(arg.split("=")[0] ?? "", names)}`,
      );
    }
    const value = given ?? (isSwitch.has(name) ? "true" : rest.next().value);
    if (value === undefined) {
      throw new Error(`Cannot start ${program}: --${name} takes a value`);
    }
    if (isRefused.has(name) && value !== "" && value !== "false") {
      throw new Error(
        `Cannot start ${program}: the embedded API server does not support --${name}`,
      );
    }
    if (name in honoured) values.set(name, [...values.get(name) ?? [], value]);
  }
  return values;
}

/** Help of a program: its flags, one per line as Go programs print them. */
export function programHelp(
  { program, honoured, accepted, switches, refused }: ProgramFlags,
): string {
  const lines = (text: string) =>
    text.split(/\s+/).filter(Boolean).toSorted()
      .map((name) => `      --${name}`);
  return [
    `Usage:\n  ${program} [flags]`,
    "Stand-in of Coracle, written by: coracle envtest",
    "Flags:",
    Object.entries(honoured)
      .map(([name, help]) => `      --${name.padEnd(34)} ${help}`).join("\n"),
    "Flags without effect:",
    lines(`${accepted} ${switches}`).join("\n"),
    "Flags that are not supported:",
    lines(refused).join("\n"),
  ].filter(Boolean).join("\n\n");
}
