/**
 * Kills processes that write snapshots at random moments, and checks that the next
 * one misses no event, has none twice, and shows no wrong object.
 *
 * Usage: `npm run test:kills -- [--rounds N]`, 500 rounds by default.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "../../../support/child_process.ts";
import { stateOf } from "../../../support/fake_watch_call.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { commandLine } from "../../../support/command_line.ts";
import { inTime } from "../../../support/in_time.ts";
import type { Seen } from "./killed_watcher.ts";

const PROGRAM = fileURLToPath(new URL("killed_watcher.ts", import.meta.url));
/** Objects that change, and how large they are. */
const OBJECTS = 40;
const LARGEST = 20_000;
/** Limit for a line of a process, in milliseconds: others may use the machine. */
const LINE_LIMIT_MS = 300_000;

/** What the rounds have shown. */
export interface KillReport {
  readonly rounds: number;
  /** Rounds that began with a snapshot. */
  readonly warm: number;
}

/**
 * Kills one process after another while it writes.
 *
 * @param rounds Number of processes.
 * @param random Numbers from 0 to below 1.
 * @throws {Error} If a process has seen something wrong.
 */
export async function killWatchers(
  rounds: number,
  random: () => number,
): Promise<KillReport> {
  const folder = mkdtempSync(join(tmpdir(), "coracle-kill-"));
  const server = await FakeWatchServer.start();
  let warm = 0;
  const change = () => {
    const key = `one/${Math.floor(random() * OBJECTS)}`;
    if (random() < 0.2) server.delete(key);
    else server.put(key, { padding: Math.floor(random() * LARGEST) });
  };
  try {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 20; i++) change();
      const last = `two/last-${round}`;
      const child = start(server.url, folder, last);
      try {
        const lines = createInterface({ input: child.stdout as never })
          [Symbol.asyncIterator]();
        const line = async () =>
          (await inTime("a line of the process", lines.next(), LINE_LIMIT_MS))
            .value as string;
        const bookmarks = setInterval(() => server.bookmark(), 20);
        assert.equal(await line(), "ready");
        clearInterval(bookmarks);
        for (let i = 0; i < 50; i++) {
          change();
          if (i % 10 === 0) await new Promise(setImmediate);
        }
        server.delete(`two/last-${round - 1}`);
        server.put(last);
        const seen = JSON.parse(await line()) as Seen;
        if (seen.isWarm) warm++;
        check(seen, server);
        // It writes all the time: the moment is within a write, or between two.
        for (
          const until = performance.now() + 30 * random();
          performance.now() < until;
        ) {
          change();
          await new Promise(setImmediate);
        }
      } finally {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) {
          await once(child, "exit");
        }
      }
    }
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return { rounds, warm };
}

function start(url: string, folder: string, last: string): ChildProcess {
  const isDeno = "Deno" in globalThis;
  const flags = isDeno ? ["run", "-A", "--no-check"] : [];
  return spawn(process.execPath, [...flags, PROGRAM, url, folder, last], {
    env: childEnvironment(),
    stdio: ["pipe", "pipe", "inherit"],
  });
}

function check(seen: Seen, server: FakeWatchServer): void {
  assert.deepEqual(seen.faults, []);
  assert.deepEqual(seen.told, server.state);
  assert.deepEqual(stateOf(seen.objects), server.state);
  for (const object of seen.objects) {
    const { namespace, name } = object.metadata;
    assert.deepEqual(object, server.get(`${namespace}/${name}`));
  }
}

if (import.meta.main) {
  const { integer } = commandLine("kill watchers", {
    rounds: { type: "string" },
  });
  const rounds = integer("rounds", 1) ?? 500;
  const { warm } = await killWatchers(rounds, Math.random);
  process.stdout.write(
    `${rounds} processes were killed, ${warm} began with a snapshot: no event was missed or told twice\n`,
  );
}
