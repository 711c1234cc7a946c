import { readdir } from "node:fs/promises";
import { relative, resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import manifest from "./package.json" with { type: "json" };
import { shellText } from "../../dev/testing/shell_text.ts";
import { writeProject } from "./project.ts";
import { COMMANDS, RUNTIME_NAMES } from "./runtimes.ts";
import {
  type Arguments,
  CHECKS,
  defaults,
  type ProjectOptions,
  readArguments,
  RUNTIMES,
  UsageError,
} from "./options.ts";

const HELP = `Creates a Kubernetes operator in TypeScript.

  npm create @coracle/operator [FOLDER] -- [FLAGS]

  --name NAME        name of the operator, by default that of the folder
  --kind KIND        kind of its objects, such as Database
  --group GROUP      API group of the kind, such as sample.example.com
  --runtime RUNTIME  ${RUNTIMES.join(", ")}; by default the one that runs this
  --yes              take the defaults, and ask nothing
  --help, --version
`;

const QUESTIONS: Readonly<Record<keyof typeof CHECKS, string>> = {
  name: "Name of the operator",
  kind: "Kind of its objects",
  group: "API group of the kind",
  runtime: `Runtime (${RUNTIMES.join(", ")})`,
};

/** Runs the command; resolves to its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const request = readArguments(args);
    if (request.help || request.version) {
      print(request.help ? HELP : `${manifest.version}\n`);
      return 0;
    }
    for (const [name, check] of Object.entries(CHECKS)) {
      const value = request.given[name as keyof typeof CHECKS];
      if (value !== undefined) check(value);
    }
    if (request.given.folder !== undefined) {
      await requireEmpty(request.given.folder);
    }
    const options = await completed(request);
    await requireEmpty(options.folder);
    await writeProject(options);
    print(farewell(options));
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\nSee --help\n`);
    return 2;
  }
}

/** Asks for what was not given, or takes the defaults. */
async function completed(
  { given, yes }: Arguments,
): Promise<ProjectOptions> {
  const fallback = defaults(given);
  const answers = { ...fallback, ...given };
  if (yes || !process.stdin.isTTY) {
    for (const [name, check] of Object.entries(CHECKS)) {
      check(answers[name as keyof typeof CHECKS]);
    }
  } else {
    const terminal = createInterface({
      input: process.stdin,
      output: process.stdout,
    });
    // Ctrl-C and the end of the input close it.
    const { promise: closed, reject } = Promise.withResolvers<never>();
    terminal.once("close", () =>
      reject(
        new UsageError(
          "Cannot create an operator: a question was not answered, so nothing was written",
        ),
      ));
    closed.catch(() => {}); // Closed at the end, too.
    try {
      for (const [key, question] of Object.entries(QUESTIONS)) {
        const name = key as keyof typeof CHECKS;
        if (given[name] !== undefined) continue;
        answers[name] = await ask(
          (text) =>
            Promise.race([
              closed,
              terminal.question(text).catch(() => closed),
            ]),
          `${question} [${fallback[name]}]: `,
          (answer) => {
            CHECKS[name](answer || fallback[name]);
            return answer || fallback[name];
          },
        );
      }
    } finally {
      terminal.close();
    }
  }
  const { folder = answers.name, ...rest } = answers;
  return { folder, ...rest } as ProjectOptions;
}

/** Asks until the answer is valid. */
async function ask(
  question: (text: string) => Promise<string>,
  text: string,
  read: (answer: string) => string,
): Promise<string> {
  while (true) {
    const answer = await question(text);
    try {
      return read(answer.trim());
    } catch (error) {
      print(`${(error as Error).message}\n`);
    }
  }
}

/** Refuses a folder with files other than those of a new repository. */
async function requireEmpty(folder: string): Promise<void> {
  const found = await readdir(folder).catch((error: { code?: string }) => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(
      `Cannot create an operator: ${folder} must be a folder: received ${error.code}`,
    );
  });
  const [file] = found.filter((name) => name !== ".git");
  if (file === undefined) return;
  throw new UsageError(
    `Cannot create an operator: ${folder} must be empty or new: received a folder with ${file}`,
  );
}

function farewell({ folder, name, kind, runtime }: ProjectOptions): string {
  const { install, dev } = COMMANDS[runtime];
  const place = relative("", resolve(folder));
  const enter = place === "" ? "" : `  cd ${shellText(place)}\n`;
  return `Created the operator ${name} of the kind ${kind}, for ${
    RUNTIME_NAMES[runtime]
  }.\n\n${enter}  ${install}\n  ${dev}\n`;
}

function print(text: string): void {
  process.stdout.write(text);
}
