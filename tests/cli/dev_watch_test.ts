import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import {
  createJob,
  operatorFile,
  places,
} from "../support/dev_operator_file.ts";
import { coracle, Program } from "../support/program.ts";
import { writeText } from "../support/temporary_folder.ts";
import {
  admitsWith,
  freePort,
  LAMPS,
  startWatched,
  WITHIN,
} from "../support/watched_lamps.ts";

test("coracle dev --watch follows a file that is written, broken and replaced", async () => {
  const { dev, file, kubeconfig, isEmpty, textWith, write } = startWatched(
    LAMPS,
  );
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: one/, WITHIN);
    client = new Client(await loadConfig({ kubeconfig }));
    await admitsWith("one", client);
    write(`${textWith("two")}\nconst three = ;\n`);
    await dev.says(/Unexpected|expected/i, WITHIN);
    assert.match(dev.output, /op\.ts:\d+/);
    await dev.says(/The previous operator goes on/, WITHIN);
    await createJob(kubeconfig, "b");
    await dev.says(/default\/b .*debug: one/, WITHIN);
    await admitsWith("one", client);
    write(textWith("two"));
    await dev.says(/default\/a .*debug: two/, WITHIN);
    await admitsWith("two", client);
    // The operator has the rights that it needs, and owns its definition.
    assert.doesNotMatch(dev.output, /may not|warn:|Others define/);
    // As an editor does that writes another file first.
    for (const word of ["three", "four"]) {
      const draft = textWith(word);
      renameSync(writeText(dirname(file), `${word}.txt`, draft), file);
      await dev.says(new RegExp(`default/a .*debug: ${word}`), WITHIN);
    }
    assert.equal(await dev.end("SIGINT"), 0, dev.describe());
    assert.equal(dev.output.match(/Press Ctrl-C/g)?.length, 1);
    assert.ok(isEmpty());
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch first ends an operator whose file has a port", async () => {
  const port = await freePort();
  const { dev, kubeconfig, textWith, write } = startWatched(`
import { createServer } from "node:http";
createServer().listen(${port}, "127.0.0.1");
${LAMPS}`);
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    client = new Client(await loadConfig({ kubeconfig }));
    await admitsWith("one", client);
    write(textWith("two"));
    await dev.says(/has the port, so it is ended first/, WITHIN);
    await admitsWith("two", client);
    write(textWith("three"));
    await admitsWith("three", client);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.equal(dev.output.match(/has the port/g)?.length, 1);
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch that is ended lets its runs end", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  const file = operatorFile(`
    export function operator(options) {
      const operator = new Operator(options);
      const reconcile = async () => {
        const asked = new Promise((resolve) => process.once("SIGTERM", resolve));
        console.log("begun");
        await asked;
        await new Promise((resolve) => setTimeout(resolve, 500));
        console.log("finished");
      };
      operator.register(CronJob, { reconcile });
      return operator;
    }
  `);
  const dev = new Program(
    coracle("dev", "--watch", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    await createJob(kubeconfig, "a");
    await dev.says(/begun/, WITHIN);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.match(dev.output, /finished/);
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev --watch that is ended twice leaves no process", async () => {
  const { folder, kubeconfig, isEmpty } = places();
  // It goes on after the first signal, until its watcher is gone.
  const file = operatorFile(`
    process.on("SIGTERM", () => console.log("told"));
    const { ppid } = process;
    export function operator(options) {
      setInterval(() => process.ppid === ppid || process.exit(), 50);
      const operator = new Operator(options);
      const reconcile = () => {
        console.log("begun");
        return new Promise(() => {});
      };
      operator.register(CronJob, { reconcile });
      return operator;
    }
  `);
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    await createJob(kubeconfig, "a");
    // Without a run in progress the first signal ends it.
    await dev.says(/begun/, WITHIN);
    process.kill(dev.pid, "SIGTERM");
    await dev.says(/told/, WITHIN);
    // A process that is left would keep the output open.
    assert.equal(await dev.end("SIGTERM"), 130, dev.describe());
    assert.ok(isEmpty());
  } finally {
    await dev.kill();
  }
});

test("coracle dev --watch that is killed leaves no process", async () => {
  const { folder, kubeconfig } = places();
  const file = operatorFile("export const operator = make;");
  const dev = new Program(
    coracle("dev", "--watch", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    // A process that is left would keep the output open.
    await dev.end("SIGKILL");
  } finally {
    await dev.kill();
  }
});
