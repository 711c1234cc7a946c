import assert from "node:assert/strict";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { UsageError } from "../../dev/cli/command.ts";
import { serveOn } from "../../dev/cli/embedded_server.ts";
import {
  aborted,
  makeFolder,
  portOf,
  writeOutput,
  writeSecretFile,
} from "../../dev/cli/serving.ts";
import { runCommand } from "../support/child_process.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";

test("portOf accepts port numbers only", () => {
  assert.equal(portOf({}), 0);
  assert.equal(portOf({ port: "0" }), 0);
  assert.equal(portOf({ port: "65535" }), 65_535);
  for (const port of ["65536", "-1", "1e3", "0x10", "80a", " 80"]) {
    assert.throws(() => portOf({ port }), UsageError);
  }
});

test("writeSecretFile replaces a file with one that only its owner may read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-test-"));
  try {
    const file = join(folder, "kubeconfig");
    await writeFile(file, "old", { mode: 0o644 });
    await writeSecretFile(file, "new");
    assert.equal(await readFile(file, "utf8"), "new");
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(folder), ["kubeconfig"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("writeSecretFile names a file it cannot write and leaves no draft", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-test-"));
  try {
    const file = join(folder, "missing", "kubeconfig");
    await assert.rejects(writeSecretFile(file, "text"), (error: Error) => {
      assert(
        error.message.startsWith(
          `Cannot write ${file}: its folder must exist`,
        ),
      );
      return true;
    });
    assert.deepEqual(await readdir(folder), []);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("serveOn reports a port in use, also if the code is in the cause", async () => {
  const taken = Object.assign(new Error("listen"), { code: "EADDRINUSE" });
  for (const error of [taken, new Error("Cannot start", { cause: taken })]) {
    await assert.rejects(
      serveOn(8080, () => Promise.reject(error)),
      /^Error: Cannot serve on port 8080: another process listens there; --port 0 selects any free port$/,
    );
  }
  const other = new Error("Cannot start: something else");
  await assert.rejects(serveOn(8080, () => Promise.reject(other)), other);
});

test("aborted resolves when its signal aborts or has aborted", async () => {
  const controller = new AbortController();
  const waiting = aborted(controller.signal);
  controller.abort();
  await waiting;
  await aborted(controller.signal);
});

test("writeSecretFile leaves no draft beside what it cannot replace", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-test-"));
  try {
    await writeFile(join(folder, "file"), "");
    await mkdir(join(folder, "kubeconfig", "taken"), { recursive: true });
    await assert.rejects(writeSecretFile(join(folder, "kubeconfig"), "text"));
    assert.deepEqual((await readdir(folder)).sort(), ["file", "kubeconfig"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("makeFolder creates folders, and names one that the system denies", async () => {
  const folder = join(temporaryFolder(), "a", "b");
  await makeFolder(folder);
  await makeFolder(folder);
  assert.ok((await stat(folder)).isDirectory());
  // Node's recursive mkdir does not end there.
  const denied = "/proc/coracle/a/b";
  await assert.rejects(
    makeFolder(denied),
    /^UsageError: Cannot write to \/proc\/coracle\/a\/b: .*received E/,
  );
});

test("writeOutput and writeSecretFile refuse what is no file, without waiting", async () => {
  const folder = temporaryFolder();
  const pipe = join(folder, "pipe");
  await runCommand(["mkfifo", pipe]);
  const cases = [[pipe, "a FIFO"], [folder, "a folder"]] as const;
  for (const write of [writeOutput, writeSecretFile]) {
    for (const [path, received] of [...cases, ["/dev/null", "a device"]]) {
      await assert.rejects(write(path as string, "text"), {
        name: "UsageError",
        message:
          `Cannot write ${path}: it must be a file: received ${received}`,
      });
    }
  }
  assert.deepEqual(await readdir(folder), ["pipe"]);
  const file = join(folder, "file");
  await writeOutput(file, "text");
  assert.equal(await readFile(file, "utf8"), "text");
});
