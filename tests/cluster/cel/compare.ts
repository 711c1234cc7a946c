/**
 * Compares the embedded server's CEL with that of kube-apiserver, whose compiler
 * and evaluator the program `cmd/cel` is built from: expressions alone, rules of
 * definitions and expressions of policies, with their types, values, costs and
 * messages.
 *
 * `npm run test:cel -- --questions 9000 --seed 1`; `--record` writes the answers
 * that the tests of the embedded server expect.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { PROJECT } from "../../support/child_process.ts";
import { commandLine } from "../../support/command_line.ts";
import {
  buildPrograms,
  DEFAULT_KUBERNETES,
  programsFolder,
  releaseOf,
} from "../go_programs.ts";
import {
  type Answer,
  answerTo,
  differences,
  type Question,
} from "./answers.ts";
import { publicExpressions, questions } from "./questions.ts";
import { writtenQuestions } from "./written.ts";

/** File of the answers that tests expect. */
const RECORDED = join(PROJECT, "tests/apiserver/cel/data/answers.ndjson");

/** Number of random questions whose answers are recorded. */
const RECORDED_COUNT = 450;

/** Answers of kube-apiserver. */
function realAnswers(
  program: string,
  asked: readonly Question[],
): readonly Answer[] {
  const input = asked.map((one) => `${JSON.stringify(one)}\n`).join("");
  const { status, stdout, stderr } = spawnSync(program, {
    input,
    maxBuffer: 1 << 30,
    timeout: 600_000,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Cannot ask kube-apiserver: ${stderr}`);
  return stdout.trim().split("\n").map((line) => JSON.parse(line) as Answer);
}

function take(count: number, seed: number): Question[] {
  const taken: Question[] = [];
  for (const question of questions(seed)) {
    if (taken.length === count) break;
    taken.push(question);
  }
  return taken;
}

function report(
  name: string,
  asked: readonly Question[],
  real: readonly Answer[],
): number {
  let differing = 0;
  for (const [index, question] of asked.entries()) {
    const theirs = real[index] as Answer;
    const found = differences(answerTo(question), theirs);
    if (found.length === 0) continue;
    differing++;
    const text = question.expression ?? question.rule?.rule ?? "";
    process.stdout.write(`${text}\n  ${found.join("\n  ")}\n`);
  }
  const share = (100 * differing / asked.length).toFixed(2);
  process.stdout.write(
    `${name}: ${differing} of ${asked.length} answers differ (${share} %)\n`,
  );
  return differing;
}

const { values, integer } = commandLine("compare answers", {
  questions: { type: "string", default: "9000" },
  seed: { type: "string", default: "1" },
  record: { type: "boolean", default: false },
});
const seed = integer("seed");
const count = integer("questions", 1);
const release = releaseOf(DEFAULT_KUBERNETES);
if (!await buildPrograms(release, ["cel"])) {
  throw new Error("Cannot compare answers: no Go toolchain was found");
}
const program = join(programsFolder(release), "cel");
await loadPatterns();
const written = writtenQuestions();
if (values.record) {
  const asked = [...written, ...take(RECORDED_COUNT, seed)];
  const real = realAnswers(program, asked);
  writeFileSync(
    RECORDED,
    asked.flatMap((question, index) => {
      const answer = real[index] as Answer;
      // What the real server does not survive has no answer.
      return answer.failed?.startsWith("panic")
        ? []
        : [`${JSON.stringify({ question, answer })}\n`];
    }).join(""),
  );
} else {
  const random = take(count, seed);
  const published = await publicExpressions();
  const counts = [
    ["written", written],
    ["conformance data of CEL", published],
    ["random", random],
  ] as const;
  let differing = 0;
  for (const [name, asked] of counts) {
    differing += report(name, asked, realAnswers(program, asked));
  }
  // A hundredth of the answers may differ: messages of the parser, mostly.
  const all = written.length + published.length + random.length;
  process.exitCode = differing > all / 100 ? 1 : 0;
}
