import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import {
  type Answer,
  answerTo,
  differences,
  type Question,
} from "../../cluster/cel/answers.ts";

/** Question with the answer of kube-apiserver 1.37.2; see `npm run test:cel`. */
interface Recorded {
  readonly question: Question;
  readonly answer: Answer;
}

function recorded(): Recorded[] {
  const url = new URL("./data/answers.ndjson", import.meta.url);
  return readFileSync(url, "utf8").trim().split("\n")
    .map((line) => JSON.parse(line) as Recorded);
}

for (const mode of ["expression", "rule", "policy"]) {
  test(`CEL is compiled, evaluated and charged as recorded: ${mode}`, async () => {
    await loadPatterns();
    const asked = recorded()
      .filter(({ question }) => (question.mode ?? "expression") === mode);
    assert.ok(asked.length > 20);
    for (const { question, answer } of asked) {
      const text = question.expression ?? question.rule?.rule;
      assert.deepEqual(differences(answerTo(question), answer), [], text);
    }
  });
}
