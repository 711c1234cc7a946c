import assert from "node:assert/strict";
import { test } from "node:test";
import { readableLogger } from "../../dev/cli/readable_log.ts";

function logged(
  colors: boolean,
): { lines: string[]; log: ReturnType<typeof readableLogger> } {
  const lines: string[] = [];
  const log = readableLogger({
    write: (text) => lines.push(text),
    colors,
    wallTime: () => Date.UTC(2026, 0, 1, 10, 31, 7, 250),
  });
  return { lines, log };
}

test("readableLogger prints the object, then the message and the cause", () => {
  const { lines, log } = logged(false);
  log.with({ object: "default/hello", controller: "webpage" })
    .info("Reconciled", { cause: "modified", duration: 12 });
  log.info("Stopping", { because: "SIGTERM", text: "two words", count: 1 });
  assert.deepEqual(lines, [
    "10:31:07.250  webpage default/hello  Reconciled  (modified, 12 ms)\n",
    '10:31:07.250  Stopping  (SIGTERM) text="two words" count=1\n',
  ]);
});

test("readableLogger finds the object in the fields of a message", () => {
  const { lines, log } = logged(false);
  const fields = { kind: "WebPage", uid: "1", resourceVersion: "2" };
  log.with(fields).info("Seen", { namespace: "default", name: "hello" });
  log.info("Seen", { name: "node-1" });
  assert.deepEqual(lines, [
    "10:31:07.250  default/hello  Seen\n",
    "10:31:07.250  node-1  Seen\n",
  ]);
});

test("readableLogger prints levels other than info and hides debug", () => {
  const { lines, log } = logged(false);
  log.debug("Hidden");
  log.warn("Slow", { fields: { a: [1] }, gone: undefined });
  assert.deepEqual(lines, ['10:31:07.250  warn: Slow  fields={"a":[1]}\n']);
});

test("readableLogger prints stack traces only at level error", () => {
  const { lines, log } = logged(false);
  const error = new Error("broken");
  error.stack = "Error: broken\n  at here";
  log.warn("Failed", { error });
  log.error("Failed", { error });
  assert.deepEqual(lines, [
    '10:31:07.250  warn: Failed  error="Error: broken"\n',
    "10:31:07.250  error: Failed\n    Error: broken\n      at here\n",
  ]);
});

test("readableLogger prints the stack of a first failure below its line", () => {
  const { lines, log } = logged(false);
  log.warn("Failed", { error: "broken", stack: "Error: broken\n  at here" });
  assert.deepEqual(lines, [
    "10:31:07.250  warn: Failed  error=broken\n    Error: broken\n      at here\n",
  ]);
});

test("readableLogger uses colours only if allowed", () => {
  const { lines, log } = logged(true);
  log.error("Failed");
  assert.deepEqual(lines, [
    "\x1b[2m10:31:07.250\x1b[0m  \x1b[31merror: Failed\x1b[0m\n",
  ]);
});

test("readableLogger quotes values with quotes, and warns in yellow", () => {
  const { lines, log } = logged(true);
  log.warn("Slow", { text: 'a"b' });
  assert.deepEqual(lines, [
    '\x1b[2m10:31:07.250\x1b[0m  \x1b[33mwarn: Slow\x1b[0m  \x1b[2mtext="a\\"b"\x1b[0m\n',
  ]);
});

test("readableLogger quotes an empty value, and says what caused a warning", () => {
  const { lines, log } = logged(false);
  const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  log.warn("Slow", {
    text: "",
    error: new TypeError("fetch failed", { cause }),
  });
  assert.deepEqual(lines, [
    '10:31:07.250  warn: Slow  text="" error="TypeError: fetch failed: refused"\n',
  ]);
});

test("readableLogger prints debug lines if asked, and each detail", () => {
  const lines: string[] = [];
  const log = readableLogger({
    write: (text) => void lines.push(text),
    colors: false,
    level: "debug",
    wallTime: () => 0,
  });
  log.debug("Seen", { cause: "modified", because: "timeout", duration: 0 });
  assert.deepEqual(lines, [
    "00:00:00.000  debug: Seen  (modified, timeout, 0 ms)\n",
  ]);
});

test("readableLogger escapes control characters in each part of a line", () => {
  for (const colors of [false, true]) {
    const { lines, log } = logged(colors);
    const error = new Error("broken \x9b2J");
    error.stack = "Error: broken \x9b2J\n  at \x1b[2Jhere";
    log.with({ controller: "a\x1b[1m", object: "b\x9b" }).error("c\x07\nd", {
      cause: "e\x7f",
      text: "f\x85",
      plain: "\x9b2J",
      list: ["g\x90"],
      error,
    });
    const [text = ""] = lines;
    // deno-lint-ignore no-control-regex -- the logger's own colours
    const shown = colors ? text.replaceAll(/\x1b\[(?:[012]|31)m/g, "") : text;
    assert.equal(
      shown,
      "10:31:07.250  a\\u001b[1m b\\u009b  error: c\\u0007\\nd" +
        '  (e\\u007f) text=f\\u0085 plain=\\u009b2J list=["g\\u0090"]\n' +
        "    Error: broken \\u009b2J\n      at \\u001b[2Jhere\n",
    );
  }
});

test("readableLogger writes a value that JSON cannot express as its type", () => {
  const { lines, log } = logged(false);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  log.info("Seen", { circle, big: { count: 1n }, list: [1] });
  assert.deepEqual(lines, [
    '10:31:07.250  Seen  circle="[object Object]" big="[object Object]" list=[1]\n',
  ]);
});
