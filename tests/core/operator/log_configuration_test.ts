import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import type { Logger } from "@coracle/operator/client";
import {
  jsonLogger,
  leveledLogger,
  unfailingLogger,
} from "../../../core/logger.ts";
import {
  LogConfiguration,
  type LogOptionSettings,
} from "../../../core/operator/log_configuration.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import { until } from "../../support/until.ts";

/** Logger on a clock that the test sets, and its lines. */
function loggedLines() {
  const lines: string[] = [];
  const time = { now: 0 };
  const logger = unfailingLogger(jsonLogger({
    write: (line) => lines.push(line),
    wallTime: () => time.now,
  }));
  return { lines, logger, time };
}

function configured(
  logger: Logger,
  settings: Partial<LogOptionSettings>,
  clock = new VirtualClock(),
): LogConfiguration {
  return new LogConfiguration({
    settings: {
      level: undefined,
      format: undefined,
      sampling: Infinity,
      directory: undefined,
      ...settings,
    },
    logger,
    clock,
  });
}

/** Messages of lines in JSON. */
const messages = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line).message);

test("the option log sets the level of a logger and of those made from it", () => {
  const { lines, logger } = loggedLines();
  const child = logger.with({ controller: "a" });
  child.debug("before");
  new Operator({ logger, log: { level: "debug" } });
  child.debug("after");
  assert.deepEqual(messages(lines), ["after"]);
  new Operator({ logger: child, log: { level: "error" } });
  child.warn("left out");
  logger.error("last");
  assert.deepEqual(messages(lines), ["after", "last"]);
  const other = jsonLogger({ write: (line) => lines.push(line) });
  new Operator({ logger: other.with({ app: "a" }), log: { level: "debug" } });
  other.debug("another");
  assert.equal(messages(lines).at(-1), "another");
});

test("the environment overrides the option log", () => {
  const { lines, logger } = loggedLines();
  process.env["CORACLE_OPERATOR_LOG_LEVEL"] = "warn";
  process.env["CORACLE_OPERATOR_LOG_FORMAT"] = "text";
  try {
    new Operator({ logger, log: { level: "debug" } });
  } finally {
    delete process.env["CORACLE_OPERATOR_LOG_LEVEL"];
    delete process.env["CORACLE_OPERATOR_LOG_FORMAT"];
  }
  logger.info("left out");
  logger.warn("kept");
  assert.deepEqual(lines, ["1970-01-01T00:00:00.000Z WARN kept"]);
  process.env["CORACLE_OPERATOR_LOG_LEVEL"] = "loud";
  try {
    assert.throws(() => new Operator(), /CORACLE_OPERATOR_LOG_LEVEL.*"loud"/);
  } finally {
    delete process.env["CORACLE_OPERATOR_LOG_LEVEL"];
  }
});

test("lines in the form text are one each, whatever their values are", () => {
  const { lines, logger } = loggedLines();
  configured(logger, { format: "text" });
  logger.error("Failed\nagain", {
    object: "default/a",
    because: "no room",
    count: 2,
    list: [1, "b"],
    gone: undefined,
    forged: "x\n1970 INFO fine",
    "a b": 'a="1"',
  });
  assert.deepEqual(lines, [
    '1970-01-01T00:00:00.000Z ERROR "Failed\\nagain" object=default/a ' +
    'because="no room" count=2 list=[1,"b"] ' +
    'forged="x\\n1970 INFO fine" a b="a=\\"1\\""',
  ]);
});

test("sampling writes the first lines of a second, and counts the others", () => {
  const { lines, logger, time } = loggedLines();
  configured(logger, { sampling: 2 });
  for (let turn = 0; turn < 5; turn++) logger.info("same");
  logger.info("other");
  logger.warn("same");
  time.now = 999;
  logger.info("same");
  time.now = 1_000;
  logger.info("same");
  assert.deepEqual(
    lines.map((line) => {
      const { time: _, ...rest } = JSON.parse(line);
      return Object.values(rest).join(" ");
    }),
    [
      "info same",
      "info same",
      "info other",
      "warn same",
      "info Log lines were left out same 4",
      "info same",
    ],
  );
});

test("a directory changes the log while the operator runs, also by a symlink", async () => {
  const clock = new VirtualClock();
  const { lines, logger } = loggedLines();
  const folder = temporaryFolder();
  // As the kubelet mounts a ConfigMap, and replaces its content.
  const mount = (version: string, files: Record<string, string>) => {
    const data = join(folder, version);
    mkdirSync(data);
    for (const [name, text] of Object.entries(files)) {
      writeText(data, name, text);
    }
    symlinkSync(version, join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "..data"));
  };
  mount("..1", { level: "info\n" });
  symlinkSync("..data/level", join(folder, "level"));
  symlinkSync("..data/format", join(folder, "format"));
  symlinkSync("..data/sampling", join(folder, "sampling"));
  const configuration = configured(logger, { directory: folder }, clock);
  const seen = (text: string) =>
    until(text, async () => {
      await clock.advance(5_000);
      return lines.some((line) => line.includes(text));
    });
  try {
    await configuration.start();
    logger.debug("left out");
    assert.deepEqual(lines, []);
    mount("..2", { level: "debug", sampling: "100" });
    rmSync(join(folder, "..1"), { recursive: true });
    await seen("settings of the log have changed");
    logger.debug("seen");
    assert.deepEqual(messages(lines), [
      "The settings of the log have changed",
      "seen",
    ]);
    assert.deepEqual(
      (({ time: _, ...rest }) => rest)(JSON.parse(lines[0] ?? "")),
      {
        level: "info",
        logLevel: "debug",
        message: "The settings of the log have changed",
        format: "json",
        sampling: 100,
        because: folder,
      },
    );
    mount("..3", { level: "error" });
    await seen('"logLevel":"error"');
    mount("..4", { level: "loud" });
    await seen("settings of the log stay as they are");
    const { level, error } = JSON.parse(lines.at(-1) ?? "");
    assert.equal(level, "error", "no level leaves it out");
    const path = join(folder, "level");
    const wanted = "debug, info, warn, error";
    assert.ok(
      error.includes(`${path} must be one of ${wanted}: received "loud"`),
      error,
    );
    logger.error("still seen");
    assert.equal(messages(lines).at(-1), "still seen");
    mount("..5", { format: "text", level: "info" });
    await seen("logLevel=info");
  } finally {
    configuration.stop();
  }
  assert.equal(clock.pendingTimers, 0);
});

test("SIGUSR2 switches to the level debug, and back", async () => {
  if (process.platform === "win32") return; // It has no such signals.
  // The test runner of Node asks for a report at this signal.
  if (process.report) process.report.reportOnSignal = false;
  const { lines, logger } = loggedLines();
  const remove = configured(logger, { level: "warn" }).onSignal();
  try {
    for (const isDebugged of [true, false]) {
      process.kill(process.pid, "SIGUSR2");
      await until(`the level is switched, ${isDebugged}`, () => {
        lines.length = 0;
        logger.debug("shown");
        return (lines.length > 0) === isDebugged;
      });
    }
    logger.warn("kept");
    assert.deepEqual(messages(lines), ["kept"]);
  } finally {
    remove();
  }
});

test("a logger of another library keeps its settings, and says so", () => {
  const seen: string[] = [];
  const logger = leveledLogger("info", (_level, message) => {
    seen.push(message);
  });
  configured(logger, { level: "debug" });
  logger.debug("left out");
  assert.equal(seen.length, 1);
  assert.match(seen[0] ?? "", /^The option log has no effect/);
});
