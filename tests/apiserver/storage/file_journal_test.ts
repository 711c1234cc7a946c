import assert from "node:assert/strict";
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { UntypedObject } from "@coracle/operator/client";
import {
  FileJournal,
  lockJournal,
  readJournal,
} from "../../../dev/apiserver/storage/file_journal.ts";
import { Store } from "../../../dev/apiserver/storage/store.ts";
import { Program, runtimeCommand } from "../../support/program.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";
import { plainDefinition } from "../support/plain_kinds.ts";

const definition = plainDefinition({ plural: "widgets", kind: "Widget" });

function widget(name: string, value: unknown): UntypedObject {
  return {
    kind: "Widget",
    apiVersion: "v1",
    metadata: { namespace: "a", name, uid: name },
    value,
  };
}

/** Journals that a test leaves open, as a server that is killed does. */
const opened: FileJournal[] = [];

function leftOpen(
  ...given: ConstructorParameters<typeof FileJournal>
): FileJournal {
  const journal = new FileJournal(...given);
  opened.push(journal);
  return journal;
}

function inFolder(work: (path: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "journal-"));
  try {
    work(join(folder, "data"));
  } finally {
    // Windows removes no folder with an open file.
    for (const journal of opened.splice(0)) journal.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

test("FileJournal persists every change without being closed", () => {
  inFolder((path) => {
    const store = new Store();
    store.attach(leftOpen(path, store));
    store.put(definition, widget("x", "first"));
    store.put(definition, widget("x", "line\nbreak \u2028"));
    store.delete(store.put(definition, widget("y", 1)));
    const content = readJournal(path);
    assert.equal(content?.revision, store.revision);
    assert.deepEqual(content?.objects.map(({ object }) => object.value), [
      "line\nbreak \u2028",
    ]);
    assert.equal(content?.objects[0]?.object.metadata.resourceVersion, "3");
  });
});

test("readJournal ignores an incomplete last line", () => {
  inFolder((path) => {
    const store = new Store();
    const journal = new FileJournal(path, store);
    store.attach(journal);
    store.put(definition, widget("x", 1));
    journal.close();
    appendFileSync(path, '{"revision":99,"group":"","plural":"wid');
    const content = readJournal(path);
    assert.equal(content?.revision, 2);
    assert.equal(content?.objects.length, 1);
  });
});

test("readJournal names a malformed line", () => {
  inFolder((path) => {
    const store = new Store();
    new FileJournal(path, store).close();
    appendFileSync(path, "rubbish\n{}\n");
    assert.throws(
      () => readJournal(path),
      /Cannot read .*: line 2 must be the JSON of a change$/,
    );
  });
});

test("readJournal returns undefined if there is no file", () => {
  inFolder((path) => assert.equal(readJournal(path), undefined));
});

test("FileJournal starts with current objects only, readable by its owner", () => {
  inFolder((path) => {
    const store = new Store();
    for (let value = 0; value < 50; value++) {
      store.put(definition, widget("x", value));
    }
    new FileJournal(path, store).close();
    assert.equal(readFileSync(path, "utf8").trim().split("\n").length, 2);
    // Windows has no modes of files.
    if (process.platform !== "win32") {
      assert.equal(statSync(path).mode & 0o077, 0);
    }
    assert.equal(readJournal(path)?.revision, store.revision);
  });
});

/** Objects of a file, as names. */
function namesIn(path: string): (string | undefined)[] {
  return (readJournal(path)?.objects ?? []).map(({ object }) =>
    object.metadata.name
  );
}

test("FileJournal keeps the write that makes a rewrite due", () => {
  inFolder((path) => {
    const store = new Store();
    store.attach(leftOpen(path, store, { minRewriteBytes: 2_000 }));
    for (let index = 0; index < 100; index++) {
      store.put(definition, widget(`x-${index % 3}`, index));
      const content = readJournal(path);
      assert.equal(content?.revision, store.revision);
      assert.equal(
        content?.objects.find(({ object }) =>
          object.metadata.name === `x-${index % 3}`
        )?.object.value,
        index,
      );
    }
    assert.ok(statSync(path).size < 3_000, "it was rewritten");
  });
});

/** `writeSync` with room for a number of bytes only. */
function limitedRoom(): { left: number; write: typeof writeSync } {
  const room = {
    left: Infinity,
    write: ((
      file: number,
      bytes: Uint8Array,
      offset: number,
      length: number,
      position: number,
    ) => {
      if (room.left === 0) throw new Error("ENOSPC");
      const part = Math.min(length, room.left);
      room.left -= part;
      return writeSync(file, bytes, offset, part, position);
    }) as typeof writeSync,
  };
  return room;
}

test("FileJournal drops the part of a line for which there was no room", () => {
  inFolder((path) => {
    const store = new Store();
    const room = limitedRoom();
    const { write } = room;
    store.attach(leftOpen(path, store, { write }));
    store.put(definition, widget("before", 1));
    room.left = 1_000;
    const long = widget("lost", "long".repeat(1_000));
    for (let index = 0; index < 3; index++) {
      assert.throws(() => store.put(definition, long), /ENOSPC/);
    }
    assert.deepEqual(namesIn(path), ["before"]);
    room.left = Infinity;
    store.put(definition, widget("after", 1));
    store.put(definition, widget("later", 1));
    assert.deepEqual(namesIn(path), ["before", "after", "later"]);
    assert.equal(readJournal(path)?.revision, store.revision);
  });
});

test("FileJournal goes on with its file while there is no room for another", () => {
  inFolder((path) => {
    const store = new Store();
    const journal = leftOpen(path, store, { minRewriteBytes: 2_000 });
    store.attach(journal);
    mkdirSync(`${path}.new`);
    for (let index = 0; index < 100; index++) {
      store.put(definition, widget("x", index));
      assert.equal(readJournal(path)?.objects[0]?.object.value, index);
    }
    const { size } = statSync(path);
    rmSync(`${path}.new`, { recursive: true });
    for (let index = 0; index < 30; index++) {
      store.put(definition, widget("x", index));
    }
    assert.ok(statSync(path).size < size, "it was rewritten");
    assert.equal(readJournal(path)?.objects[0]?.object.value, 29);
  });
});

test("FileJournal closes its file to replace it, and goes on if it cannot", () => {
  inFolder((path) => {
    const store = new Store();
    let refused = 0;
    let isBusy = false;
    store.attach(leftOpen(path, store, {
      minRewriteBytes: 2_000,
      rename(from, to) {
        if (isBusy) {
          refused++;
          throw Object.assign(new Error("EPERM"), { code: "EPERM" });
        }
        renameSync(from, to);
      },
    }));
    isBusy = true;
    for (let index = 0; index < 100; index++) {
      store.put(definition, widget("x", index));
      assert.equal(readJournal(path)?.objects[0]?.object.value, index);
    }
    assert.ok(refused > 0);
    assert.equal(existsSync(`${path}.new`), false);
    const { size } = statSync(path);
    isBusy = false;
    for (let index = 0; index < 30; index++) {
      store.put(definition, widget("x", index));
    }
    assert.ok(statSync(path).size < size, "it was rewritten");
    assert.equal(readJournal(path)?.objects[0]?.object.value, 29);
  });
});

test("FileJournal leaves no part of a new file for which there was no room", () => {
  inFolder((path) => {
    const store = new Store();
    const room = limitedRoom();
    const { write } = room;
    room.left = 5;
    assert.throws(() => new FileJournal(path, store, { write }), /ENOSPC/);
    assert.equal(existsSync(`${path}.new`), false);
  });
});

test("readJournal takes an empty file for a new one", () => {
  inFolder((path) => {
    writeFileSync(path, "");
    assert.equal(readJournal(path), undefined);
  });
});

test("readJournal refuses a file that no server wrote, without quoting it", () => {
  const head = '{"revision":2}\n';
  const change = '{"revision":3,"group":"","plural":"widgets"';
  const cases: [text: string, line: number][] = [
    ["a line of notes that has no end", 1],
    ["password: secret\n", 1],
    ["5\n", 1],
    ["null\n", 1],
    ["[]\n", 1],
    ["{}\n", 1],
    ['{"revision":"zz"}\n', 1],
    ['{"revision":1.5}\n', 1],
    ['{"revision":2}', 1],
    [`${head}null\n`, 2],
    [`${head}{"revision":3}\n`, 2],
    [`${head}${change}}\n`, 2],
    [`${head}${change},"deleted":5}\n`, 2],
    [`${head}${change},"object":{}}\n`, 2],
    [`${head}${change},"object":{"metadata":{"name":7}}}\n`, 2],
  ];
  inFolder((path) => {
    for (const [text, line] of cases) {
      writeFileSync(path, text);
      assert.throws(
        () => readJournal(path),
        (error) =>
          error instanceof SyntaxError &&
          error.message.startsWith(
            `Cannot read ${path}: line ${line} must be `,
          ),
        text,
      );
      assert.equal(readFileSync(path, "utf8"), text);
    }
  });
});

test("lockJournal lets one server use a file, whatever is tried at once", async () => {
  const path = join(temporaryFolder(), "data");
  const tries = await Promise.allSettled(
    Array.from({ length: 8 }, () => lockJournal(path)),
  );
  const [unlock, ...others] = tries.flatMap((one) =>
    one.status === "fulfilled" ? [one.value] : []
  );
  assert.equal(others.length, 0);
  await assert.rejects(
    lockJournal(path),
    /^Error: Cannot use .*data: another server uses it and has locked .*data\.lock$/,
  );
  unlock?.();
  unlock?.();
  const next = await lockJournal(path);
  unlock?.();
  await assert.rejects(lockJournal(path), /another server uses it/);
  next();
});

test("lockJournal keeps other processes away until its process is killed", async () => {
  const path = join(temporaryFolder(), "data");
  const command = [
    ...runtimeCommand(),
    fileURLToPath(new URL("journal_locker.ts", import.meta.url)),
    path,
  ];
  const holder = new Program(command);
  try {
    await holder.says(/locked/);
    await assert.rejects(lockJournal(path), /another server uses it/);
    await holder.kill();
    // What the file says does not matter, such as an ID that two containers have.
    const rivals = [1, 2, 3].map(() => new Program(command));
    try {
      const said = await Promise.all(
        rivals.map((rival) => rival.says(/locked|another server/)),
      );
      const [locked, ...others] = said.filter(([text]) => text === "locked");
      assert.equal(locked?.[0], "locked");
      assert.equal(others.length, 0);
    } finally {
      await Promise.all(rivals.map((rival) => rival.kill()));
    }
    (await lockJournal(path))();
  } finally {
    await holder.kill();
  }
});

test("lockJournal says why a file cannot be locked", async () => {
  const folder = temporaryFolder();
  await assert.rejects(
    lockJournal(join(folder, "missing", "data")),
    /^Error: Cannot use .*data: .*data\.lock cannot be locked: unable to open/,
  );
});

test("a closed journal refuses changes, and writes to no other file", () => {
  inFolder((path) => {
    const store = new Store();
    const journal = new FileJournal(path, store);
    store.attach(journal);
    journal.close();
    const other = openSync(`${path}.other`, "w+");
    try {
      assert.throws(() => store.put(definition, widget("a", 1)), /was stopped/);
      assert.equal(readFileSync(`${path}.other`, "utf8"), "");
    } finally {
      closeSync(other);
    }
    journal.close();
  });
});
