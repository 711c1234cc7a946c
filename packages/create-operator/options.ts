import { basename, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { kindNames } from "../../core/crd/kind_names.ts";

export const RUNTIMES = ["node", "deno", "bun"] as const;
export type Runtime = typeof RUNTIMES[number];

/** What a project is made of. */
export interface ProjectOptions {
  /** Folder of the project. */
  readonly folder: string;
  /** Name of the operator, its chart and its image. */
  readonly name: string;
  readonly kind: string;
  readonly group: string;
  readonly runtime: Runtime;
}

/** Parsed command line. */
export interface Arguments {
  readonly help: boolean;
  readonly version: boolean;
  /** Whether defaults are taken without a question. */
  readonly yes: boolean;
  readonly given: Readonly<
    Partial<Record<"folder" | "name" | "kind" | "group" | "runtime", string>>
  >;
}

/** Error of a wrong command line. */
export class UsageError extends Error {}

const OPTIONS = {
  name: { type: "string" },
  kind: { type: "string" },
  group: { type: "string" },
  runtime: { type: "string" },
  yes: { type: "boolean", short: "y" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
} as const;

export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parse(args);
  if (positionals.length > 1) {
    throw new UsageError(
      `Cannot create an operator: it takes one folder: received ${
        positionals.join(" ")
      }`,
    );
  }
  const { help = false, version = false, yes = false, ...given } = values;
  const [folder] = positionals;
  return {
    help,
    version,
    yes,
    given: folder === undefined ? given : { ...given, folder },
  };
}

function parse(args: readonly string[]) {
  const parsed = parseKnown(args);
  const seen = new Set<string>();
  for (const token of parsed.tokens) {
    if (token.kind !== "option" || token.value === undefined) continue;
    const { name } = token;
    if (seen.has(name)) {
      throw new UsageError(
        `Cannot create an operator: --${name} may be given only once`,
      );
    }
    seen.add(name);
  }
  return parsed;
}

function parseKnown(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: OPTIONS,
      allowPositionals: true,
      tokens: true,
    });
  } catch (error) {
    const [message = ""] = (error as Error).message.split(". ");
    throw new UsageError(`Cannot create an operator: ${message}`);
  }
}

/** Names that the files of a project use otherwise. */
const TAKEN: readonly string[] = [
  "ConfigMap",
  "Date",
  "Number",
  "ObjectOf",
  "Operator",
  "OperatorOptions",
  "VirtualClock",
];

/** Checks of the answers, each with the error for a person. */
export const CHECKS: Readonly<
  Record<"name" | "kind" | "group" | "runtime", (value: string) => void>
> = {
  name(value) {
    if (/^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$/.test(value)) return;
    throw refusal(
      "name",
      "up to 50 lower-case letters, digits and dashes, beginning with a letter",
      value,
    );
  },
  kind(value) {
    // The file of a kind has its name in lower case.
    if (TAKEN.includes(value) || value.toLowerCase() === "operator") {
      throw refusal("kind", "a name that the example does not use", value);
    }
    if (!/^[A-Z][A-Za-z0-9]{0,56}$/.test(value)) {
      throw refusal(
        "kind",
        "up to 57 letters and digits, beginning with a capital, as Database",
        value,
      );
    }
  },
  group(value) {
    try {
      kindNames({ group: value, version: "v1", kind: "Any" });
    } catch {
      throw refusal(
        "group",
        "a domain in lower case with a dot, as sample.example.com",
        value,
      );
    }
    if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(value)) return;
    throw refusal("group", "a domain that is not Kubernetes' own", value);
  },
  runtime(value) {
    if (RUNTIMES.some((runtime) => runtime === value)) return;
    throw refusal("runtime", "node, deno or bun", value);
  },
};

function refusal(flag: string, expected: string, value: string): UsageError {
  return new UsageError(
    `Cannot create an operator: --${flag} must be ${expected}: received "${value}"`,
  );
}

/** Default answers; each may depend on those before it. */
export function defaults(
  given: Arguments["given"],
): Readonly<Record<"name" | "kind" | "group" | "runtime", string>> {
  const { folder } = given;
  return {
    name: folder === undefined ? "greeter" : basename(resolve(folder)),
    kind: "Greeting",
    group: "sample.example.com",
    runtime: currentRuntime(),
  };
}

/** Runtime of the command that created the project. */
function currentRuntime(): Runtime {
  const agent = process.env["npm_config_user_agent"] ?? "";
  if ("deno" in process.versions || agent.startsWith("deno/")) return "deno";
  if ("bun" in process.versions || agent.startsWith("bun/")) return "bun";
  return "node";
}
