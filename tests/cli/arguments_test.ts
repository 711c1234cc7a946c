import assert from "node:assert/strict";
import { test } from "node:test";
import { readArguments } from "../../dev/cli/arguments.ts";
import { type Command, flagsOf, UsageError } from "../../dev/cli/command.ts";
import { COMMANDS as LISTED } from "../../dev/cli/commands.ts";

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
    "crd FILE…": "which",
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

function refusal(
  args: readonly string[],
  commands: readonly Command[] = COMMANDS,
): string {
  try {
    readArguments(args, commands);
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
    /knows --port, --data, --quiet, --crd: received --prot \(did you mean "--port"\?\)$/,
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

test("readArguments takes the value of a flag as it is written", () => {
  const request = readArguments(["serve", "--data= x ", "--port=1"], COMMANDS);
  assert(request.action === "run");
  assert.deepEqual({ ...request.flags }, { port: "1", data: " x " });
  assert.match(
    refusal(["serve", "--help=all"]),
    /--help takes no value: received "all"$/,
  );
});

test("readArguments collects a list and refuses to repeat another flag", () => {
  const request = readArguments(
    ["serve", "--port=1", "--crd", "a", "--crd=b, c,", "--crd", "d"],
    COMMANDS,
  );
  assert(request.action === "run");
  assert.deepEqual(request.flags["crd"], ["a", "b", "c", "d"]);
  assert.match(
    refusal(["serve", "--port=1", "--port", "2"]),
    /^Cannot run serve: --port may be given only once: received "1" and "2"$/,
  );
  assert.match(
    refusal(["serve", "--port=1", "--quiet", "--quiet"]),
    /--quiet may be given only once$/,
  );
  for (const value of ["", ",", " , "]) {
    assert.match(
      refusal(["serve", "--port=1", `--crd=${value}`]),
      /--crd takes a value: write --crd FILE…$/,
    );
  }
});

test("Each flag of each command keeps what is repeated, or is refused by name", () => {
  for (const command of LISTED) {
    const required = (command.required ?? []).map((name) => `--${name}=0`);
    const operands = Array(command.count[0]).fill("a");
    for (const { name, value, isList } of flagsOf(command)) {
      const others = required.filter((flag) => !flag.startsWith(`--${name}=`));
      const twice = value === undefined
        ? [`--${name}`, `--${name}`]
        : [`--${name}=a`, `--${name}=b`];
      const args = [command.name, ...others, ...twice, ...operands];
      if (isList) {
        const request = readArguments(args, LISTED);
        assert(request.action === "run");
        assert.deepEqual(request.flags[name], ["a", "b"], name);
      } else {
        assert.match(
          refusal(args, LISTED),
          new RegExp(`^Cannot run ${command.name}: --${name} may be given`),
        );
      }
    }
  }
  const lists = LISTED.flatMap((command) =>
    flagsOf(command).filter(({ isList }) => isList)
      .map(({ name }) => `${command.name} --${name}`)
  );
  assert.deepEqual(lists, [
    "dev --crd",
    "dev --apply",
    "dev --manages",
    "dev --recorded",
    "manifests --manages",
    "manifests --recorded",
    "manifests --env",
    "apiserver --controllers",
    "envtest --controllers",
    "check --examples",
    "check --only",
    "plan --namespace",
    "plan --allow-fetch",
    "plan --fail-on",
    "plan --show",
    "snapshot --namespace",
    "snapshot --kind",
    "snapshot --keep",
  ]);
});
