import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import {
  jsonLogger,
  type Logger,
  type LogLevel,
} from "@coracle/operator/client";
import { lostLogLines, stackText } from "../../core/logger.ts";
import { runCommand } from "../support/child_process.ts";
import { runtimeCommand } from "../support/program.ts";

const PROGRAM = fileURLToPath(new URL("logging_program.ts", import.meta.url));

/** Runs the program with its standard error redirected by a shell. */
async function logTo(
  redirection: string,
  limit: number,
): Promise<{ readonly written: number; readonly lost: number }> {
  const { code, stdout, stderr } = await runCommand([
    "sh",
    "-c",
    redirection,
    "sh",
    ...runtimeCommand(),
    PROGRAM,
    String(limit),
  ]);
  assert.equal(code, 0, stderr);
  assert.notEqual(stdout, "", "the process has not ended before its work");
  return JSON.parse(stdout);
}

test("jsonLogger survives a full disk, and counts the lines that are lost", async () => {
  const isMissing = await access("/dev/full").then(() => false, () => true);
  if (isMissing) return; // Only Linux has a disk that is always full.
  const { written, lost } = await logTo('exec "$@" 2>/dev/full', 100);
  assert.equal(written, 11);
  assert.equal(lost, 11);
});

test("jsonLogger survives a reader that goes away, and counts what is lost", async () => {
  const { written, lost } = await logTo(
    'exec 3>&1; { "$@" 2>&1 1>&3 3>&-; } | true',
    1_000,
  );
  assert.ok(lost >= 11 && lost <= written, `${lost} of ${written}`);
});

test("jsonLogger loses no line that can be written to standard error", async () => {
  const { written, lost } = await logTo('exec "$@" 2>/dev/null', 50);
  assert.deepEqual({ written, lost }, { written: 60, lost: 0 });
  const { stderr } = await runCommand([...runtimeCommand(), PROGRAM, "5"]);
  const lines = stderr.trimEnd().split("\n").filter((line) =>
    line.startsWith("{")
  );
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).number),
    Array.from({ length: 15 }, (_, index) => index + 1),
  );
});

test("jsonLogger catches what an async function rejects, and counts it", async () => {
  const before = lostLogLines();
  const write = () => Promise.reject(new Error("The disk is full"));
  jsonLogger({ write: write as never }).info("Lost");
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(lostLogLines(), before + 1);
});

function withLines(
  options: Parameters<typeof jsonLogger>[0] = {},
): { readonly log: Logger; readonly lines: () => unknown[] } {
  const lines: string[] = [];
  const log = jsonLogger({
    write: (line) => lines.push(line),
    wallTime: () => 0,
    ...options,
  });
  return { log, lines: () => lines.map((line) => JSON.parse(line)) };
}

const time = "1970-01-01T00:00:00.000Z";

test("jsonLogger writes time, level, message and fields, own ones over the context's", () => {
  const { log, lines } = withLines();
  const inner = log.with({ controller: "web", key: "a" });
  inner.info("Reconciled", { key: "b", duration: 12 });
  log.info("Stopped");
  assert.deepEqual(lines(), [
    {
      time,
      level: "info",
      message: "Reconciled",
      controller: "web",
      key: "b",
      duration: 12,
    },
    { time, level: "info", message: "Stopped" },
  ]);
});

test("jsonLogger writes the levels from its own on", () => {
  const levels: LogLevel[] = ["debug", "info", "warn", "error"];
  for (const [index, level] of levels.entries()) {
    const { log, lines } = withLines({ level });
    for (const at of levels) log[at]("A line");
    assert.deepEqual(
      lines().map((line) => (line as { level: LogLevel }).level),
      levels.slice(index),
    );
  }
});

test("jsonLogger refuses a level that there is not", () => {
  assert.throws(
    () => jsonLogger({ level: "verbose" as LogLevel }),
    /Cannot make a logger: "level" must be one of debug, info, warn, error: received "verbose"/,
  );
});

test("jsonLogger writes the stack of an error only at level error", () => {
  const { log, lines } = withLines();
  const error = Object.assign(new Error("no route"), { token: "s3cret" });
  log.warn("Will try again", { error });
  log.error("Gave up", { error });
  const [warned, failed] = lines() as { error: string }[];
  assert.equal(warned?.error, "Error: no route");
  assert.match(failed?.error ?? "", /^Error: no route\n\s+at /);
  assert.doesNotMatch(JSON.stringify(lines()), /s3cret/);
});

test("stackText has the stacks of the errors that an error is made of", () => {
  const one = (text: string) => {
    const error = new Error(text);
    error.stack = `Error: ${text}\n    at ${text}.ts:1:1`;
    return error;
  };
  const inner = new AggregateError([one("b"), "text"], "inner");
  inner.stack = "AggregateError: inner\n    at inner.ts:1:1";
  inner.errors.push(inner);
  const outer = new AggregateError([one("a"), inner], "outer");
  outer.stack = "AggregateError: outer\n    at outer.ts:1:1";
  assert.equal(
    stackText(outer),
    `AggregateError: outer
    at outer.ts:1:1
  of Error: a
    at a.ts:1:1
  of AggregateError: inner
    at inner.ts:1:1
  of Error: b
    at b.ts:1:1`,
  );
  const many = new AggregateError(Array.from({ length: 9 }, () => one("c")));
  assert.equal(stackText(many).match(/of Error: c/g)?.length, 5);
});

test("jsonLogger writes a line whatever its fields are", () => {
  const { log, lines } = withLines();
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  log.info("Odd", { big: 2n ** 64n, circle, fine: 1 });
  const [line] = lines() as Record<string, unknown>[];
  assert.equal(line?.["big"], "18446744073709551616");
  assert.equal(line?.["fine"], 1);
  assert.equal(line?.["message"], "Odd");
});

test("jsonLogger writes the system error that a failed fetch only has as its cause", () => {
  const { log, lines } = withLines();
  const refused = Object.assign(new Error("connect ECONNREFUSED 192.0.2.1:1"), {
    code: "ECONNREFUSED",
  });
  const nested = new Error("Cannot connect", { cause: refused });
  const failed = new TypeError("fetch failed", { cause: nested });
  const quoted = new Error("Cannot parse", { cause: new SyntaxError("pa55") });
  const several = new TypeError("fetch failed", {
    cause: Object.assign(new AggregateError([refused]), { code: "EALL" }),
  });
  const refusedByFetch = new TypeError("fetch failed", {
    cause: new Error("bad port"),
  });
  for (const error of [failed, quoted, several, refusedByFetch]) {
    log.warn("Failed", { error });
  }
  log.error("Failed", { error: failed });
  const [first, second, third, port, last] = lines() as { error: string }[];
  assert.equal(
    first?.error,
    "TypeError: fetch failed: connect ECONNREFUSED 192.0.2.1:1",
  );
  assert.equal(second?.error, "Error: Cannot parse");
  assert.equal(third?.error, "TypeError: fetch failed: EALL");
  assert.equal(port?.error, "TypeError: fetch failed: bad port");
  assert.match(
    last?.error ?? "",
    /^TypeError: fetch failed\n[^]*\n {2}caused by connect ECONNREFUSED/,
  );
});

test("jsonLogger refuses options that there are not, or of another type", () => {
  const make = jsonLogger as (options?: unknown) => unknown;
  assert.throws(() => make({ lvl: "debug" }), {
    name: "TypeError",
    message:
      'Cannot read the options of jsonLogger(): there is no option "lvl", only level, write, wallTime: received lvl',
  });
  assert.throws(() => make({ write: "stdout" }), /"write" must be a function/);
  assert.throws(() => make(null), /they must be an object: received null/);
});

test("A logger writes an error or a text that is given in place of fields", () => {
  const { log, lines } = withLines();
  const warn = log.warn as (message: string, fields: unknown) => void;
  warn("Failed", new Error("why"));
  warn("Failed", "why");
  assert.deepEqual(lines(), [
    { time, level: "warn", message: "Failed", error: "Error: why" },
    { time, level: "warn", message: "Failed", value: "why" },
  ]);
});
