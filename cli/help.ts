import type { Command, Flag } from "./command.ts";

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
  const usage = ["coracle", command.name, flagUsage(command), command.operands]
    .filter((part) => part !== "").join(" ");
  const flags = command.flags.map((flag) => [flagText(flag), flag.help]);
  return [
    command.description,
    "",
    `Usage: ${usage}`,
    ...(flags.length === 0 ? [] : ["", ...columns(flags)]),
    "",
  ].join("\n");
}

function flagUsage(command: Command): string {
  return command.flags.map((flag) =>
    flag.required === true ? flagText(flag) : `[${flagText(flag)}]`
  ).join(" ");
}

function flagText(flag: Flag): string {
  return flag.value === undefined
    ? `--${flag.name}`
    : `--${flag.name} ${flag.value}`;
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map(([first = ""]) => first.length));
  return rows.map(([first = "", second = ""]) =>
    `  ${first.padEnd(width)}  ${second}`.trimEnd()
  );
}
