import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { runCli, type Terminal } from "@coracle/dev/cli";
import type { Command } from "../../dev/cli/command.ts";
import { UsageError } from "../../dev/cli/command.ts";
import { checkNodeVersion, runCommandLine } from "../../dev/cli/main.ts";
import { processTerminal } from "../../dev/cli/terminal.ts";
import packageJson from "../../package.json" with { type: "json" };
import { VERSION } from "../../dev/cli/version.ts";
import { runCommand } from "../support/child_process.ts";
import { coracle } from "../support/program.ts";

function recordingTerminal(): Terminal & { printed: string; said: string } {
  return {
    printed: "",
    said: "",
    colors: false,
    out(text) {
      this.printed += text;
    },
    say(text) {
      this.said += text;
    },
    interrupts: () => new AbortController().signal,
  };
}

function command(run: Command["run"]): Command {
  return {
    name: "go",
    operands: "[WHERE]",
    count: [0, 1],
    summary: "go somewhere",
    description: "Goes somewhere.",
    flags: { fast: "go fast" },
    run,
  };
}

test("runCommandLine runs a command and returns its exit code", async () => {
  const terminal = recordingTerminal();
  const go = command(({ flags, operands }) => {
    assert.equal(flags["fast"], true);
    assert.deepEqual(operands, ["home"]);
    return Promise.resolve(7);
  });
  const code = await runCommandLine(["go", "home", "--fast"], terminal, [go]);
  assert.equal(code, 7);
});

test("runCommandLine prints help and version to the standard output", async () => {
  const terminal = recordingTerminal();
  const go = command(() => Promise.resolve(1));
  assert.equal(await runCommandLine(["--version"], terminal, [go]), 0);
  assert.equal(terminal.printed, `coracle ${VERSION}\n`);
  assert.equal(await runCommandLine(["help"], terminal, [go]), 0);
  assert.match(terminal.printed, /\n {2}go \[WHERE\] {2}go somewhere\n/);
  assert.equal(await runCommandLine(["help", "go"], terminal, [go]), 0);
  assert.match(terminal.printed, /Usage: coracle go \[--fast\] \[WHERE\]\n/);
  assert.match(terminal.printed, /\n {2}--fast {2}go fast\n/);
  assert.equal(terminal.said, "");
});

test("runCommandLine distinguishes a wrong command line from a failure", async () => {
  const outcomes: readonly (readonly [unknown, number, RegExp])[] = [
    [
      new UsageError("Cannot go: no"),
      2,
      /^Cannot go: no\nSee coracle help go\n$/,
    ],
    [
      new Error("Cannot go: the road is closed"),
      1,
      /^Cannot go: the road is closed\n$/,
    ],
    [
      new TypeError("x is not a function"),
      1,
      /^TypeError: x is not a function\n\s+at /,
    ],
    ["thrown text", 1, /^thrown text\n$/],
    [new UsageError("Cannot go", "stay"), 2, /\nSee coracle help stay\n$/],
  ];
  for (const [error, expected, said] of outcomes) {
    const terminal = recordingTerminal();
    const go = command(() => Promise.reject(error));
    assert.equal(await runCommandLine(["go"], terminal, [go]), expected);
    assert.match(terminal.said, said);
    assert.equal(terminal.printed, "");
  }
});

test("The command line names the Node that it needs instead of failing later", () => {
  const [, oldest = ""] = /^>=(.*)$/.exec(packageJson.engines.node) ?? [];
  for (const node of [`${oldest}.0`, "24.0.0", "30.1.2"]) {
    checkNodeVersion({ node });
  }
  checkNodeVersion({ node: "20.0.0", deno: "2.9.5" });
  checkNodeVersion({ node: "20.0.0", bun: "1.4.5" });
  for (const node of ["22.18.0", "20.20.2"]) {
    assert.throws(() => checkNodeVersion({ node }), {
      message:
        `Cannot run coracle: it needs Node ${oldest} or later, Deno or Bun: received Node ${node}`,
    });
  }
});

test("runCommandLine leads to the help of the command that it could not read", async () => {
  const terminal = recordingTerminal();
  const go = command(() => Promise.resolve(0));
  assert.equal(await runCommandLine(["go", "--slow"], terminal, [go]), 2);
  assert.match(terminal.said, /^Cannot run go: .*\nSee coracle help go\n$/);
  terminal.said = "";
  assert.equal(await runCommandLine(["stay"], terminal, [go]), 2);
  assert.match(terminal.said, /\nSee coracle help\n$/);
});

test("The help of a command has its flags in a column, required ones as they are", async () => {
  const terminal = recordingTerminal();
  const go: Command = {
    ...command(() => Promise.resolve(0)),
    operands: "",
    required: ["to"],
    flags: { "to PLACE": "where to", fast: "go fast" },
  };
  assert.equal(await runCommandLine(["go", "--help"], terminal, [go]), 0);
  assert.equal(
    terminal.printed,
    `Goes somewhere.

Usage: coracle go --to PLACE [--fast]

  --to PLACE  where to
  --fast      go fast
`,
  );
  const still = { ...go, required: [], flags: {} };
  terminal.printed = "";
  assert.equal(await runCommandLine(["help", "go"], terminal, [still]), 0);
  assert.equal(terminal.printed, "Goes somewhere.\n\nUsage: coracle go\n");
});

test("runCli writes to the terminal of its options, and checks its arguments", async () => {
  const terminal = recordingTerminal();
  assert.equal(await runCli(["--version"], { terminal }), 0);
  assert.equal(terminal.printed, `coracle ${VERSION}\n`);
  await assert.rejects(
    runCli("--version" as unknown as string[], { terminal }),
    /^TypeError: .*runCli\(\)/,
  );
});

test("runCommandLine escapes control characters in all text of a command", async () => {
  const terminal = recordingTerminal();
  const hostile = "a\tb\n\x1b]8;;http://x\x07c\x9b2J\r\x7fd";
  const shown = "a\tb\n\\u001b]8;;http://x\\u0007c\\u009b2J\\u000d\\u007fd";
  const go = command(({ terminal }) => {
    terminal.out(hostile);
    terminal.say(hostile);
    terminal.draw("\x1b[1m");
    return Promise.reject(new Error(`Cannot go: ${hostile}`));
  });
  assert.equal(await runCommandLine(["go"], terminal, [go]), 1);
  assert.equal(terminal.printed, shown);
  assert.equal(terminal.said, `${shown}\x1b[1mCannot go: ${shown}\n`);
  const report = JSON.stringify({ title: "\x9b\x7f" });
  const print = command(({ terminal }) => {
    terminal.out(report);
    return Promise.resolve(0);
  });
  terminal.printed = "";
  await runCommandLine(["go"], terminal, [print]);
  assert.deepEqual(JSON.parse(terminal.printed), JSON.parse(report));
});

test("A command whose output cannot be written to the end fails", async () => {
  if (process.platform !== "linux") return;
  const command = ["sh", "-c", '"$@" > /dev/full', "sh", ...coracle("help")];
  const { code, stderr } = await runCommand(command);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /ENOSPC|[Nn]o space left/);
});

test("processTerminal listens for errors of the streams only once", () => {
  processTerminal();
  const streams = [process.stdout, process.stderr];
  const counts = () => streams.map((stream) => stream.listenerCount("error"));
  const before = counts();
  for (let round = 0; round < 20; round++) processTerminal();
  assert.deepEqual(counts(), before);
});
