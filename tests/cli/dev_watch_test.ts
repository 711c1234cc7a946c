import assert from "node:assert/strict";
import { readFileSync, renameSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { basename, dirname } from "node:path";
import process from "node:process";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { untyped } from "../../core/api/kind.ts";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { coracle, Program } from "../support/program.ts";
import { writeText } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";
import {
  createJob,
  GROUP,
  operatorFile,
  places,
} from "../support/dev_operator_file.ts";

/** Limit for a command that is stuck, in milliseconds. */
const WITHIN = 60_000;

/** A kind that its operator validates, defaults and converts. */
const LAMPS = `
const Lamp = defineKind({
  group: names.group,
  version: "v2",
  kind: "Lamp",
  spec: z.object({ note: z.string().optional(), power: z.string() }),
  versions: [{
    name: "v1",
    spec: z.object({ note: z.string().optional(), watts: z.int() }),
    up: ({ spec: { watts, ...rest } }) => ({
      spec: { ...rest, power: watts + " W" },
    }),
    down: ({ spec: { power, ...rest } }) => ({
      spec: { ...rest, watts: parseInt(power) },
    }),
  }],
});
export const operator = () => {
  const operator = make(typeof options === "undefined" ? {} : options);
  operator.register(Lamp, { reconcile() {} }, {
    admission: {
      failurePolicy: "Fail",
      default(lamp) {
        lamp.spec.note ??= "one";
        return lamp;
      },
      validate: ({ spec }) => spec.power === "0 W" ? deny("one") : undefined,
    },
  });
  return operator;
};`;

/** A port that nothing uses. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** Asks for the creation of a lamp, without storing it; returns its spec. */
async function create(
  client: Client,
  version: "v1" | "v2",
  spec: object,
): Promise<object> {
  const kind = untyped({ group: GROUP, version, kind: "Lamp" });
  const object = {
    metadata: { name: "a", namespace: "default" },
    spec,
  } as UntypedObject;
  const made = await client.create(kind, object, { dryRun: true });
  return (made as UntypedObject).spec as object;
}

/** Waits until objects are denied, defaulted and converted with a word. */
async function admitsWith(word: string, client: Client): Promise<void> {
  let why: unknown;
  await until(`lamps are admitted with "${word}"`, async () => {
    try {
      const made = await create(client, "v2", { power: "1 W" });
      assert.deepEqual(made, { power: "1 W", note: word });
      const denied = new RegExp(`denied the request: ${word}`);
      await assert.rejects(create(client, "v2", { power: "0 W" }), denied);
      // Converted for the handlers, and back.
      const old = await create(client, "v1", { watts: 9 });
      assert.deepEqual(old, { watts: 9, note: word });
      return true;
    } catch (error) {
      why = error; // The previous operator answers.
      return false;
    }
  }, { within: WITHIN }).catch(() => {
    throw why;
  });
}

/** Answers to requests that an operator must deny, until a promise settles. */
async function answersUntil(
  client: Client,
  done: Promise<void>,
): Promise<readonly string[]> {
  const answers: string[] = [];
  let isDone = false;
  const asking = (async () => {
    do {
      const answer = create(client, "v1", { watts: 0 });
      answers.push(await answer.then(() => "allowed", String));
    } while (!isDone);
  })();
  await done.finally(() => isDone = true);
  await asking;
  return answers;
}

/** Runs a file with coracle dev --watch, in which "one" stands for a word. */
function start(text: string) {
  const { folder, kubeconfig, isEmpty } = places();
  // A timer of the file, or a socket, must not keep it from being started.
  const made = operatorFile(`setInterval(() => {}, 9_000);\n${text}`);
  const original = readFileSync(made, "utf8");
  const file = writeText(dirname(made), "op.ts", original);
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  return {
    dev,
    file,
    kubeconfig,
    isEmpty,
    textWith: (word: string) => original.replaceAll('"one"', `"${word}"`),
    write: (text: string) =>
      void writeText(dirname(file), basename(file), text),
  };
}

test("coracle dev --watch follows a file that is written, broken and replaced", async () => {
  const { dev, file, kubeconfig, isEmpty, textWith, write } = start(LAMPS);
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

test("coracle dev --watch admits without a gap while its file changes", async () => {
  const port = await freePort();
  // Both processes need the port and the Lease.
  const options = JSON.stringify({
    probes: { port, host: "127.0.0.1" },
    leaderElection: { name: "lamps" },
  });
  const { dev, kubeconfig, textWith, write } = start(
    `const options = ${options};\n${LAMPS}`,
  );
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    const asking = client = new Client(await loadConfig({ kubeconfig }));
    await createJob(kubeconfig, "a");
    await admitsWith("one", asking);
    for (const word of ["two", "three"]) {
      const seen = answersUntil(asking, admitsWith(word, asking));
      write(textWith(word));
      const wrong = (await seen).filter((one) => !/denied the r/.test(one));
      assert.deepEqual(wrong, [], dev.describe());
      await dev.says(new RegExp(`default/a .*debug: ${word}`), WITHIN);
    }
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.doesNotMatch(dev.output, /EADDRINUSE|AddrInUse|warn:/);
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch ends with the last of quick edits", async () => {
  const { dev, kubeconfig, textWith, write } = start(LAMPS);
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    client = new Client(await loadConfig({ kubeconfig }));
    for (let at = 0; at < 5; at++) {
      const changes = () => dev.output.match(/ has changed/g)?.length ?? 0;
      const before = changes();
      write(textWith(`edit-${at}`));
      await until("the edit is seen", () => changes() > before);
    }
    await admitsWith("edit-4", client);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: edit-4/, WITHIN);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    // One operator alone has seen the object.
    assert.doesNotMatch(dev.output, /default\/a .*debug: (?!edit-4)/);
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch removes the admission that an edit takes away", async () => {
  const { dev, kubeconfig, textWith, write } = start(LAMPS);
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    const asking = client = new Client(await loadConfig({ kubeconfig }));
    await admitsWith("one", asking);
    write(textWith("one").replace(/admission: \{[^]*?\n {4}\},\n/, ""));
    await until("lamps are admitted by nobody", async () => {
      const made = await create(asking, "v2", { power: "0 W" }).catch(String);
      return typeof made === "object" && !("note" in made);
    });
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch first ends an operator whose file has a port", async () => {
  const port = await freePort();
  const { dev, kubeconfig, textWith, write } = start(`
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
