import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fromCommand } from "../../../workflows/apply/command.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const folder = temporaryFolder();

/** Command that runs a program in JavaScript, by the runtime of the test. */
function script(
  name: string,
  text: string,
): [program: string, ...args: string[]] {
  const file = writeText(folder, `${name}.mjs`, text);
  return "Deno" in globalThis
    ? [process.execPath, "run", "--allow-all", file]
    : [process.execPath, file];
}

test("The objects that a command prints are read, without a shell", async () => {
  const command = script(
    "print",
    `let input = "";
for await (const chunk of process.stdin) input += chunk;
const data = { input, argument: process.argv[2], variable: process.env.SET_NAME };
console.log(JSON.stringify({
  apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data,
}));`.replace(/^/, 'import process from "node:process";\n'),
  );
  const argument = "$(id); `id` && *";
  const [object] = await fromCommand([...command, argument], {
    input: "values: {}",
    env: { SET_NAME: "web" },
  });
  assert.deepEqual(object?.["data"], {
    input: "values: {}",
    argument,
    variable: "web",
  });
});

test("A command that fails is named with what it said, not its arguments", async () => {
  const command = script(
    "fail",
    `console.error("first line\\nno \\u001b[31mchart found");
import process from "node:process";
process.exit(3);`,
  );
  await assert.rejects(
    fromCommand([...command, "--password=secret"]),
    (error: Error) =>
      /^Cannot run ".*": it failed: received exit code 3: first line no \\u\{1b\}\[31mchart found$/
        .test(error.message) && !error.message.includes("secret"),
  );
});

test("A command that hangs is killed at its time limit and by its signal", async () => {
  const command = script("hang", "setInterval(() => {}, 1_000);");
  await assert.rejects(
    fromCommand(command, { timeout: 50 }),
    /it did not end within 50 ms$/,
  );
  const reason = new Error("The run was aborted");
  const ending = new AbortController();
  const running = fromCommand(command, { signal: ending.signal });
  ending.abort(reason);
  await assert.rejects(running, reason);
});

test("A command that prints too much is killed", async () => {
  const command = script(
    "flood",
    'for (;;) await new Promise((done) => process.stdout.write("#".repeat(1_000), done));'
      .replace(/^/, 'import process from "node:process";\n'),
  );
  await assert.rejects(
    fromCommand(command, { maxOutput: "10Ki" }),
    /it printed more than 10240 bytes$/,
  );
});

test("A command that is missing, or prints no objects, is refused", async () => {
  await assert.rejects(
    fromCommand(["coracle-no-such-program"]),
    /^Error: Cannot run "coracle-no-such-program": it is not installed: received \w+$/,
  );
  const command = script("chat", 'console.log("Hello");');
  await assert.rejects(
    fromCommand(command),
    /Cannot read the output of ".*", object 1: it must be an object: received "Hello"$/,
  );
  await assert.rejects(
    // @ts-expect-error: a shell is no option
    fromCommand(command, { shell: true }),
    /shell/,
  );
});
