import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { UntypedObject } from "../../../core/api/object.ts";
import {
  FileJournal,
  readJournal,
} from "../../../apiserver/storage/file_journal.ts";
import { Store } from "../../../apiserver/storage/store.ts";
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

function inFolder(work: (path: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "journal-"));
  try {
    work(join(folder, "data"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("FileJournal persists every change without being closed", () => {
  inFolder((path) => {
    const store = new Store();
    store.attach(new FileJournal(path, store));
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
      /Cannot read .*: line 2 must be JSON/,
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
    assert.equal(statSync(path).mode & 0o077, 0);
    assert.equal(readJournal(path)?.revision, store.revision);
  });
});
