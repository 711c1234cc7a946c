import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import type { Terminal } from "@coracle/dev/cli";
import { crdCommand } from "../../dev/cli/crd_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { runCommand } from "../support/child_process.ts";
import { coracle } from "../support/program.ts";

async function crd(
  ...operands: readonly string[]
): Promise<{ code: number; out: string; said: string }> {
  let out = "";
  let said = "";
  const terminal: Terminal = {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  };
  const paths = operands.map((operand) =>
    /\.\w+$/.test(operand)
      ? fileURLToPath(new URL(`fixtures/${operand}`, import.meta.url))
      : operand
  );
  const code = await runCommandLine(["crd", ...paths], terminal, [crdCommand]);
  return { code, out, said };
}

function names(yaml: string): readonly unknown[] {
  return parseAllDocuments(yaml).map((document) =>
    document.getIn(["metadata", "name"])
  );
}

test("coracle crd prints each exported kind once", async () => {
  const { code, out, said } = await crd("kinds.ts");
  assert.equal(said, "");
  assert.equal(code, 0);
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
  assert.match(out, /^ +seats:\n +type: integer\n +minimum: 1$/m);
});

test("coracle crd finds kinds that are only registered, in a file given twice", async () => {
  const { code, out, said } = await crd("registers.ts", "registers.ts");
  assert.equal(code, 0, said);
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
});

test("coracle crd prints a kind that several files share once", async () => {
  const { out } = await crd("kinds.ts", "again.ts");
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
});

test("coracle crd names the exports of a file without kinds", async () => {
  const { code, out, said } = await crd("nothing.ts");
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(
    said,
    /^Cannot print the definitions of .*nothing\.ts: it defines no kind: .*received exports answer\n/,
  );
  assert.match(
    (await crd("main_only.ts")).said,
    /^Cannot read .*main_only\.ts: as a program it failed; a function "operator"/,
  );
});

test("coracle crd ends when a pipe has taken all that it prints", async () => {
  const file = "../../../examples/gallery/cron_job.ts";
  const { out } = await crd(file);
  assert(out.length > 131_072, "more than fits in a pipe");
  const command = coracle("crd", "examples/gallery/cron_job.ts").join(" ");
  // A shell reads byte by byte, so that the pipe is full for a while.
  const slow = `while IFS= read -r line; do printf '%s\\n' "$line"; done`;
  const { stdout } = await runCommand(["sh", "-c", `${command} | ${slow}`]);
  assert.equal(stdout, out);
});

test("coracle crd says nothing when its reader has gone", async () => {
  const command = coracle("crd", "tests/cli/fixtures/kinds.ts").join(" ");
  const { stderr } = await runCommand(["sh", "-c", `${command} | true`]);
  assert.equal(stderr, "");
});

test("coracle crd says that all kinds of an operator are built in", async () => {
  const { code, said } = await crd("built_in.ts");
  assert.equal(code, 2);
  assert.match(
    said,
    /it defines no kind, all that its operator uses are built in or defined by others: received ConfigMap, Secret\n/,
  );
});

test("coracle crd says which rules cost more than a server allows", async () => {
  const { code, out, said } = await crd("costly.ts");
  assert.equal(code, 1);
  assert.deepEqual(names(out), ["crowds.test.coracle.dev"]);
  assert.match(
    said,
    /^The server will refuse crowds\.test\.coracle\.dev: spec\..*x-kubernetes-validations\[0\]\.rule: Forbidden: estimated rule cost exceeds budget by factor of/,
  );
});

test("coracle crd distinguishes a missing file from one that is not a module", async () => {
  assert.match(
    (await crd("nothign.ts")).said,
    /there is no such file: received .*nothign\.ts \(did you mean "nothing\.ts"\?\)/,
  );
  assert.match((await crd(".")).said, /it is not a file: received /);
  assert.match(
    (await crd("../../../README.md")).said,
    /an operator is a JavaScript or TypeScript module: received /,
  );
});

test("coracle crd names the file that throws, and the place in it", async () => {
  const { code, said } = await crd("throws.ts");
  assert.equal(code, 1);
  assert.match(
    said,
    /^Cannot load \S*throws\.ts: the file itself is broken\n {4}at .*throws\.ts:1\b.*\n$/,
  );
});

test("coracle crd writes where the versions of a kind are converted", async () => {
  const { code, out, said } = await crd(
    "--service",
    "sea/fleet",
    "versions.ts",
  );
  assert.equal(
    said,
    "An annotation of hulls.test.coracle.dev keeps v1 → v1beta1: spec.colour.\n",
  );
  assert.equal(code, 0);
  const [definition] = parseAllDocuments(out);
  assert.deepEqual(definition?.toJS().spec.conversion, {
    strategy: "Webhook",
    webhook: {
      clientConfig: {
        service: {
          namespace: "sea",
          name: "fleet",
          port: 443,
          path: "/convert",
        },
      },
      conversionReviewVersions: ["v1"],
    },
  });
});

test("coracle crd refuses conversions without a Service, or that break", async () => {
  const bare = await crd("versions.ts");
  assert.deepEqual([bare.code, bare.out], [2, ""]);
  assert.match(bare.said, /write --service NAMESPACE\/NAME of the Service/);
  const wrong = await crd("--service", "sea", "versions.ts");
  assert.match(wrong.said, /--service: it must be such as shop-system\/shop/);
  const broken = await crd("--service", "sea/fleet", "broken_versions.ts");
  assert.equal(broken.code, 1);
  assert.match(
    broken.said,
    /^The conversion of rafts.test.coracle.dev must lose nothing: v1beta1 → v1 fails: up of v1beta1 has thrown Error: no length/m,
  );
});

test("coracle crd explains where each rule is enforced", async () => {
  const { said } = await crd("--explain", "policies.ts", "costly.ts");
  assert.match(
    said,
    /^v1 ConfigMap, ValidatingAdmissionPolicy own\.test\.coracle\.dev\n {2}policy: the definition of its kind is not the operator's; from Kubernetes 1\.30 on\n/m,
  );
  assert.match(
    said,
    /^test\.coracle\.dev\/v1 Crowd, spec\S*: .*\n {2}CEL rule: it compares values/m,
  );
});

test("coracle crd prints policies, and since when they work", async () => {
  const { code, out, said } = await crd("policies.ts");
  assert.equal(code, 0);
  assert.deepEqual(
    parseAllDocuments(out).map((document) => document.get("kind")),
    ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
  );
  assert.equal(
    said,
    "ValidatingAdmissionPolicy own.test.coracle.dev works from Kubernetes 1.30 on.\n",
  );
});
