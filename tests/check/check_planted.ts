/**
 * Plants bugs in a correct operator, one at a time, and prints how many of them, and
 * of those of the operators beside it, `coracle check` finds with its usual options:
 *
 * ```sh
 * npm run check:planted -- --only 'leak|status'
 * ```
 *
 * `--only` is a pattern of bugs. Without it the operator without a bug comes first,
 * and must have no finding. The exit code is 1 if it has one, or if less than 90 % of
 * the bugs are found.
 *
 * @module
 */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import process from "node:process";
import { checkOperator } from "../../dev/testing/check/check_operator.ts";
import { commandLine } from "../support/command_line.ts";
import { PLANTED } from "./planted/bugs.ts";

const { values, integer } = commandLine("plant bugs", {
  plans: { type: "string", default: "5000" },
  only: { type: "string", default: "" },
});
type Finding = Awaited<ReturnType<typeof checkOperator>>["findings"][number];

const GOAL = 0.9;
const OPERATORS = new URL("planted/operators/", import.meta.url);
const SHOP = new URL("planted/shop.ts", import.meta.url);
const FOLDER = new URL(
  `../../.cache/check/planted-${process.pid}/`,
  import.meta.url,
);

/** Prints a line that no console of the world replaces. */
function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/**
 * Checks an operator until something is found; gives what.
 *
 * @param write Part of a write that the finding must name.
 */
async function firstOf(
  operator: URL,
  write: string = "",
): Promise<string | undefined> {
  const isAbout = ({ title, writes }: Finding) =>
    [title, ...writes].some((text) => text.includes(write));
  const { findings } = await checkOperator({
    operator,
    plans: integer("plans"),
    enough: isAbout,
  });
  const first = findings.find(isAbout);
  return first && `${first.title} [${first.oracle}] ${first.plan}`;
}

/** Writes the operator with a bug. */
function plant(
  at: number,
  edits: readonly (readonly [string, string])[],
): URL {
  const correct = readFileSync(SHOP, "utf8");
  const text = edits.reduce((text, [part, replacement]) => {
    if (text.split(part).length === 2) {
      return text.replace(part, () => replacement);
    }
    throw new Error(
      `Cannot plant bug ${at}: the text is not there once: ${part}`,
    );
  }, correct);
  const file = new URL(`bug_${at}.ts`, FOLDER);
  writeFileSync(file, text);
  const options = new URL("shop.check.ts", SHOP);
  writeFileSync(
    new URL(`bug_${at}.check.ts`, FOLDER),
    readFileSync(options, "utf8"),
  );
  return file;
}

mkdirSync(FOLDER, { recursive: true });
const wrong = values.only === "" ? await firstOf(SHOP) : undefined;
if (wrong !== undefined) print(`! without a bug: ${wrong}`);
let found = 0;
const chosen = [...PLANTED.entries()].filter(([, [kind, text]]) =>
  new RegExp(values.only).test(`${kind}: ${text}`)
);
for (const [at, [kind, text, ...edits]] of chosen) {
  const finding = await firstOf(plant(at, edits));
  if (finding !== undefined) found++;
  print(`${finding ? " " : "!"} ${kind}: ${text}: ${finding ?? "not found"}`);
}
rmSync(FOLDER, { recursive: true });
const others = readdirSync(OPERATORS).filter((file) =>
  /^[a-z_]+\.ts$/.test(file) && new RegExp(values.only).test(file)
);
for (const file of others.toSorted()) {
  const url = new URL(file, OPERATORS);
  const { write } = await import(url.href) as { readonly write: string };
  const finding = await firstOf(url, write);
  if (finding !== undefined) found++;
  print(`${finding ? " " : "!"} ${file}: ${finding ?? "not found"}`);
}
const planted = chosen.length + others.length;
print(`${found} of ${planted} planted bugs are found`);
process.exitCode = wrong === undefined && found >= GOAL * planted ? 0 : 1;
