import assert from "node:assert/strict";
import { test } from "node:test";
import { readArguments } from "../../dev/cli/arguments.ts";
import type { Command } from "../../dev/cli/command.ts";
import { UsageError } from "../../dev/cli/command.ts";

const SERVE: Command = {
  name: "serve",
  operands: "",
  count: [0, 0],
  summary: "serve",
  description: "Serves.",
  required: ["port"],
  flags: {
    "port N": "where",
    "data FILE": "what",
    "quiet": "say less",
  },
  run: () => Promise.resolve(0),
};
const SHOW: Command = {
  ...SERVE,
  name: "show",
  operands: "FILE…",
  count: [1, 2],
  required: ["port"],
  flags: {},
};
const COMMANDS = [SERVE, SHOW];

function refusal(args: readonly string[]): string {
  try {
    readArguments(args, COMMANDS);
  } catch (error) {
    assert(error instanceof UsageError);
    return error.message;
  }
  assert.fail(`accepted: ${args.join(" ")}`);
}

test("readArguments accepts both forms of flags anywhere after the command", () => {
  for (
    const args of [
      ["serve", "--port", "80", "--quiet", "--data=x y"],
      ["serve", "--data", "x y", "--quiet", "--port=80"],
    ]
  ) {
    const request = readArguments(args, COMMANDS);
    assert(request.action === "run");
    assert.deepEqual({ ...request.flags }, {
      port: "80",
      quiet: true,
      data: "x y",
    });
    assert.equal(request.command, SERVE);
  }
});

test("readArguments takes arguments after -- as operands", () => {
  const request = readArguments(["show", "a.ts", "--", "--b.ts"], COMMANDS);
  assert(request.action === "run");
  assert.deepEqual(request.operands, ["a.ts", "--b.ts"]);
});

test("readArguments recognizes all forms of help and version", () => {
  for (const args of [[], ["--help"], ["-h"], ["help"]]) {
    assert.deepEqual(readArguments(args, COMMANDS), {
      action: "help",
      command: undefined,
    });
  }
  for (const args of [["help", "show"], ["show", "--help"], ["show", "-h"]]) {
    assert.deepEqual(readArguments(args, COMMANDS), {
      action: "help",
      command: SHOW,
    });
  }
  const request = readArguments(["serve", "--help"], COMMANDS);
  assert.deepEqual(request, { action: "help", command: SERVE });
  for (const args of [["--version"], ["-V"]]) {
    assert.deepEqual(readArguments(args, COMMANDS), { action: "version" });
  }
});

test("readArguments errors name the valid values", () => {
  assert.match(
    refusal(["sevre"]),
    /one of serve, show: received "sevre" \(did you mean "serve"\?\)$/,
  );
  assert.match(refusal(["zzzzzz"]), /received "zzzzzz"$/);
  assert.match(refusal(["foam"]), /received "foam"$/, "too far from show");
  assert.match(
    refusal(["serve", "--prot", "1"]),
    /knows --port, --data, --quiet: received --prot \(did you mean "--port"\?\)$/,
  );
  assert.match(refusal(["show", "-x", "a"]), /knows no flags: received -x$/);
  assert.match(refusal(["serve"]), /--port is missing: write --port N$/);
  assert.match(refusal(["serve", "--port"]), /takes a value: write --port N$/);
  assert.match(refusal(["serve", "--port="]), /takes a value/);
  assert.match(
    refusal(["serve", "--port=1", "--quiet=2"]),
    /--quiet takes no value: received "2"$/,
  );
  assert.match(
    refusal(["serve", "--port=1", "x"]),
    /takes no operands: received "x"$/,
  );
  assert.match(refusal(["show"]), /takes FILE…: received nothing$/);
  assert.match(refusal(["show", "a", "b", "c"]), /received "a" "b" "c"$/);
});

test("readArguments rejects names of inherited object properties", () => {
  assert.match(refusal(["serve", "--__proto__=1"]), /received --__proto__/);
  assert.match(refusal(["serve", "--constructor"]), /received --constructor/);
  assert.match(refusal(["constructor"]), /received "constructor"/);
});

test("readArguments takes the last value of a flag, as it is written", () => {
  const request = readArguments(
    ["serve", "--port=1", "--data= x ", "--port", "2"],
    COMMANDS,
  );
  assert(request.action === "run");
  assert.deepEqual({ ...request.flags }, { port: "2", data: " x " });
  assert.match(
    refusal(["serve", "--help=all"]),
    /--help takes no value: received "all"$/,
  );
});
