import { type Command, type Flag, flagsOf } from "./command.ts";

/** Text of `coracle --help`. */
export function overview(commands: readonly Command[]): string {
  const lines = commands.map(
    (command) => [`${command.name} ${command.operands}`, command.summary],
  );
  return [
    "Kubernetes operators in TypeScript, for Node, Deno and Bun.",
    "",
    "Usage: coracle COMMAND",
    "",
    ...columns(lines),
    "",
    "coracle help COMMAND describes a command; coracle --version prints the version.",
    "",
  ].join("\n");
}

/** Text of `coracle help COMMAND`. */
export function commandHelp(command: Command): string {
  const flags = flagsOf(command);
  const usage = [
    "coracle",
    command.name,
    ...flags.map((flag) =>
      flag.isRequired ? flagText(flag) : `[${flagText(flag)}]`
    ),
    command.operands,
  ].filter((part) => part !== "").join(" ");
  const rows = flags.map((flag) => [flagText(flag), flag.help]);
  return [
    command.description,
    "",
    `Usage: ${usage}`,
    ...(rows.length === 0 ? [] : ["", ...columns(rows)]),
    "",
  ].join("\n");
}

function flagText({ name, value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map(([first = ""]) => first.length));
  return rows.map(([first = "", second = ""]) =>
    `  ${first.padEnd(width)}  ${second}`.trimEnd()
  );
}
