import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type CheckReport, kindFromCrd } from "@coracle/dev";
import type { Terminal } from "@coracle/dev/cli";
import { crdManifest } from "@coracle/operator/crd";
import { checkCommand } from "../../dev/cli/check_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const TEXT = { type: "string" } as const;

async function check(
  ...args: readonly string[]
): Promise<{ code: number; out: string; said: string }> {
  let out = "";
  let said = "";
  const terminal: Terminal = {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  };
  const commands = [checkCommand];
  const code = await runCommandLine(["check", ...args], terminal, commands);
  return { code, out, said };
}

function fixture(name: string): string {
  const path = `../testing/check/fixtures/${name}`;
  return fileURLToPath(new URL(path, import.meta.url));
}

test("coracle check names the write at which a crash loses data, and how to repeat it", async () => {
  const folder = temporaryFolder();
  const [json, written] = [join(folder, "a.json"), join(folder, "a_test.ts")];
  const [first, second] = ["first", "second"].map((name) =>
    writeText(
      folder,
      `${name}.yaml`,
      JSON.stringify({
        apiVersion: "test.coracle.dev/v1",
        kind: "Keeper",
        metadata: { name },
        spec: { size: 1 },
      }),
    )
  );
  const examples = `${first},${second}`;
  const from = fixture("copier_old.ts");
  const { code, out, said } = await check(
    fixture("keeper.ts"),
    ...["--examples", examples, "--only", "crash", "--plans", "6"],
    ...["--workers", "1", "--json", json, "--write-test", written],
    ...["--export", "operator", "--from", from],
  );
  assert.equal(code, 1, said + out);
  const { findings, plans }: CheckReport = JSON.parse(
    readFileSync(json, "utf8"),
  );
  assert.ok(plans > 5);
  const found = findings.find(({ plan }) => plan.includes("/crash:"));
  assert.equal(found?.oracle, "end-state", out);
  const [, name] =
    /^ConfigMap default\/(first|second) has another data\.kept after/
      .exec(found.title) ?? [];
  assert.ok(name !== undefined, found.title);
  assert.equal(found.writes[0], `delete ConfigMap default/${name}`);
  assert.match(
    found.diff,
    /- +\.data\.kept: "then 2"\n\+ +\.data\.kept: "first true"/,
  );
  assert.match(found.sequence, />>> +the operator is killed/);
  assert.match(found.mermaid, /^sequenceDiagram\n/);
  const test = readFileSync(written, "utf8");
  for (
    const line of [
      'import { checkOperator } from "@coracle/dev";',
      'import assert from "node:assert/strict";',
      'import { test } from "node:test";',
    ]
  ) assert.ok(test.includes(`\n${line}\n`), line);
  assert.ok(test.includes(`replay: "${found.plan}"`), test);
  assert.match(test, /^ {2}export: "operator",$/m);
  const [, old = ""] =
    /^ {2}from: new URL\("(.*)", import\.meta\.url\)\.href,$/m
      .exec(test) ?? [];
  assert.equal(fileURLToPath(new URL(old, pathToFileURL(written))), from);

  // The command that repeats it names what its plans depend on.
  assert.ok(
    found.replay.includes(
      ` --examples ${examples} --export operator --from ${from} --replay `,
    ),
    out,
  );
  const args = found.replay.replaceAll("'", "").split(" ").slice(3);
  const again = await check(...args);
  assert.equal(again.code, 1, again.said);
  assert.ok(again.out.toLowerCase().includes(found.title.toLowerCase()));
  assert.match(again.out, /1 scenario with [1-9]\d* writes and [1-9]/);
});

test("coracle check keeps to its budget, and says what it left out", async () => {
  const { code, out } = await check(
    fixture("keeper.ts"),
    "--budget",
    "1ms",
    "--workers",
    "1",
  );
  assert.equal(code, 2, out);
  assert.match(out, /^0 plans ran; /);
  assert.match(out, /\nNo plan ran, so .* give a bigger --budget\.\n$/);
  const [, all, left] = /has (\d+) scen[^]*\n(\d+) scenarios did not run/
    .exec(out) ?? [];
  assert.equal(Number(left), Number(all) - 1, out);
  const searched = await check(
    fixture("keeper.ts"),
    "--exhaustive",
    ...["--budget", "1ms", "--workers", "1"],
  );
  assert.match(searched.out, /^[\d,]+ schedules of .* were searched before/);
});

test("coracle check finds nothing in a correct operator", async () => {
  // It calls another service, whose answers are in a file beside it.
  const written = join(temporaryFolder(), "a_test.ts");
  const { code, out, said } = await check(
    fixture("caller.ts"),
    ...["--only", "crash,conflict", "--workers", "1", "--write-test", written],
  );
  assert.equal(code, 0, out + said);
  assert.doesNotMatch(out, /Nothing answered/);
  assert.match(
    out,
    /^[1-9]\d* plans ran \(crash \d+, .*\nNothing was found\.\n$/s,
  );
  assert.equal(existsSync(written), false);
});

test("coracle check needs answers of other services that a plan asks for", async () => {
  const alone = fixture("unanswered.ts");
  const unanswered = await check(alone, "--budget", "1ms", "--workers", "1");
  assert.match(
    unanswered.out,
    /^Nothing answered PUT http:\/\/tickets\.test\/: the option externals can/m,
  );
  const folder = temporaryFolder();
  const loading = await check(
    writeText(folder, "loading.ts", 'await fetch("http://tickets.test/");'),
  );
  assert.equal(loading.code, 2);
  assert.match(
    loading.said,
    /^Cannot load .*loading\.ts: Cannot send GET http:\/\/tickets\.test\/: .* by the option externals[^]*loading\.ts:1/,
  );
  writeText(folder, "alone.check.ts", "export default { fetch: 1 };");
  const wrong = await check(writeText(folder, "alone.ts", ""));
  assert.equal(wrong.code, 2);
  assert.match(
    wrong.said,
    /^Cannot read .*alone\.check\.ts: its default export must be an object with externals, .*: received fetch\n$/,
  );
});

test("coracle check takes definitions of others among the examples", async () => {
  const folder = temporaryFolder();
  const file = fixture("foreign_kind.ts");
  const missing = await check(file);
  assert.equal(missing.code, 2);
  assert.equal(
    missing.said,
    "Cannot check the operator: others define its kind sample.coracle.dev/v1 Cell, so give the CustomResourceDefinition among the examples\n",
  );

  const cell = kindFromCrd({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "cells.sample.coracle.dev" },
    spec: {
      group: "sample.coracle.dev",
      scope: "Namespaced",
      names: { kind: "Cell", plural: "cells" },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { type: "object", properties: { mind: TEXT } },
              status: { type: "object", properties: { mind: TEXT } },
            },
          },
        },
      }],
    },
  });
  const definition = writeText(
    folder,
    "crd.yaml",
    JSON.stringify(crdManifest(cell)),
  );
  const { code, out, said } = await check(
    file,
    ...["--examples", definition, "--only", "crash", "--plans", "2"],
    ...["--workers", "1", "--json", "-"],
  );
  assert.equal(code, 0, said);
  const report: CheckReport = JSON.parse(out);
  assert.ok(report.plans <= 2);
  assert.ok(report.coverage.writes > 0);
  assert.ok(report.coverage.scenarios > 3, "the mind is changed");
});

test("coracle check names the signal that has ended a run", async () => {
  const killed = writeText(
    temporaryFolder(),
    "killed.mjs",
    `import process from "node:process";
export * from "${fixture("copier.ts")}";
if (process.argv[1].includes("check_worker")) {
  process.kill(process.pid, "SIGKILL");
}
`,
  );
  const { code, said } = await check(killed, "--plans", "1", "--workers", "1");
  assert.equal(code, 2, said);
  assert.match(said, /^Cannot run a plan: the process .* ended \(SIGKILL\)/);
});

test("coracle check explains what it cannot use, with exit code 2", async () => {
  const copier = fixture("copier.ts");
  const text = writeText(temporaryFolder(), "a.yaml", "kind: A\n");
  const empty = writeText(temporaryFolder(), "empty.ts", "export {};\n");
  const library = (path: string) => new URL(`../../${path}`, import.meta.url);
  const builtIn = writeText(
    temporaryFolder(),
    "policies.mjs",
    `import { Operator } from "${library("mod.ts")}";
import { Namespace } from "${library("core/kinds/mod.ts")}";
export const operator = new Operator();
operator.register(Namespace, { reconcile() {} });
`,
  );
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[builtIn], /give examples, such as in a YAML file beside it of the same/],
    [["missing.ts"], /^Cannot load missing\.ts: there is no such file/],
    [
      [copier, "--only", "crush"],
      /received "crush" \(did you mean "crash"\?\)/,
    ],
    [[copier, "--only", "zz"], /received "zz", of crash, stale, /],
    [
      [copier, "--only", "constructor"],
      /received "constructor", of crash, stale, /,
    ],
    [
      [copier, "--plans", "0"],
      /--plans: it must be a positive integer: received "0"/,
    ],
    [[copier, "--budget", "soon"], /budget.*received "soon"/],
    [[copier, "--require", "half"], /from 0% to 100%: received "half"/],
    [[copier, "--require", "101%"], /from 0% to 100%: received "101%"/],
    [
      [copier, "--examples", text],
      /each of its documents must be an object with apiVersion/,
    ],
    [[copier, "--replay", "crash"], /^Cannot read the plan: /],
    [
      [copier, "--replay", "life/crush:a=1"],
      /no such perturbation: received "crush"/,
    ],
    [
      [copier, "--replay", "death/none"],
      /its scenario must be one of life, .*received "death"/,
    ],
    [[empty], /no operator: .* by --export: received no exports/],
    [
      [copier, "--export", "nope"],
      /--export must name an Operator .*received nope, of no exports/,
    ],
  ];
  for (const [args, message] of wrong) {
    const { code, out, said } = await check(...args);
    assert.equal(code, 2, `${args}: ${said}`);
    assert.equal(out, "");
    assert.match(said, message);
  }
});
