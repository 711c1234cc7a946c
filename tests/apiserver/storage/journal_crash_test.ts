import assert from "node:assert/strict";
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  FileJournal,
  type JournalContent,
  readJournal,
} from "../../../dev/apiserver/storage/file_journal.ts";
import { Store } from "../../../dev/apiserver/storage/store.ts";
import { Program, runtimeCommand } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { plainDefinition } from "../support/plain_kinds.ts";

const definition = plainDefinition({ plural: "widgets", kind: "Widget" });

function folder(): { readonly path: string } & Disposable {
  const at = mkdtempSync(join(tmpdir(), "journal-"));
  return {
    path: join(at, "data"),
    [Symbol.dispose]: () => rmSync(at, { recursive: true, force: true }),
  };
}

/** Values of the objects by name. */
type State = Readonly<Record<string, unknown>>;

function stateOf(content: JournalContent | undefined): State {
  const entries = (content?.objects ?? []).map(({ object }) =>
    [object.metadata.name, object["number"]] as const
  );
  return Object.fromEntries(entries.toSorted());
}

/** State after a change of the workload, which puts or deletes one of four objects. */
function next(state: State, number: number): State {
  const name = `w${number % 4}`;
  const { [name]: before, ...others } = state;
  const isDeleted = number % 5 === 0 && before !== undefined;
  return Object.fromEntries(
    Object.entries(isDeleted ? others : { ...others, [name]: number })
      .toSorted(),
  );
}

/** Makes a change of the workload. */
function change(store: Store, state: State, number: number): void {
  const name = `w${number % 4}`;
  if (!(name in next(state, number))) {
    const stored = store.collectionOf(definition).get(`a/${name}`);
    assert.ok(stored);
    store.delete(stored);
    return;
  }
  store.put(definition, {
    kind: "Widget",
    apiVersion: "v1",
    metadata: { namespace: "a", name, uid: name },
    number,
  });
}

/** `writeSync` of a process that ends in the middle of its n-th write. */
function endingWrite(writes: number, share: number): typeof writeSync {
  let count = 0;
  return ((
    file: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ) => {
    if (count++ < writes) {
      return writeSync(file, bytes, offset, length, position);
    }
    const part = count === writes + 1 ? Math.floor(length * share) : 0;
    writeSync(file, bytes, offset, part, position);
    throw new Error("ended");
  }) as typeof writeSync;
}

test("FileJournal loses no acknowledged write if it ends at any write", () => {
  using place = folder();
  let rewrites = 0;
  for (let writes = 1; writes <= 90; writes++) {
    const path = `${place.path}-${writes}`;
    const store = new Store();
    const write = endingWrite(writes, writes % 3 / 2);
    const journal = new FileJournal(path, store, {
      minRewriteBytes: 900,
      write,
    });
    store.attach(journal);
    let state: State = {};
    let size = statSync(path).size;
    let number = 1;
    try {
      for (;; number++) {
        change(store, state, number);
        state = next(state, number);
        if (statSync(path).size < size) rewrites++;
        size = statSync(path).size;
      }
    } catch (error) {
      assert.match(String(error), /ended/);
    }
    journal.close();
    const content = readJournal(path);
    // A change that was written whole is kept, though nobody heard of it.
    const isWhole = content?.revision !== store.revision;
    assert.deepEqual(
      stateOf(content),
      isWhole ? next(state, number) : state,
      `after ${writes} writes`,
    );
  }
  assert.ok(rewrites > 50, `${rewrites} rewrites`);
});

test("FileJournal loses no acknowledged write if its process is killed", async () => {
  using place = folder();
  const program = fileURLToPath(
    new URL("./journal_writer.ts", import.meta.url),
  );
  for (const [index, least] of [1, 40, 300, 900].entries()) {
    const path = `${place.path}-${index}`;
    const writer = new Program([...runtimeCommand(), program, path]);
    await until("enough changes are acknowledged", () => {
      assert.equal(writer.code, undefined, writer.describe());
      return writer.output.split("\n").length > least;
    }, { every: 1 });
    await writer.end("SIGKILL");
    const last = Number(writer.output.trimEnd().split("\n").at(-1));
    const numbers = Object.values(stateOf(readJournal(path))).map(Number);
    const newest = Math.max(...numbers);
    // One more change may have been written without an acknowledgement.
    assert.ok(newest === last || newest === last + 1, `${newest} of ${last}`);
    const expected = Array.from(
      { length: Math.min(7, newest) },
      (_, before) => newest - before,
    );
    assert.deepEqual(numbers.toSorted((a, b) => b - a), expected);
    // The next server starts with what was left, a half-written file included.
    const store = new Store();
    new FileJournal(path, store).close();
  }
});

test("readJournal takes a file cut at any byte, or names its first line", () => {
  using place = folder();
  const { path } = place;
  const store = new Store();
  store.attach(new FileJournal(path, store));
  const states: State[] = [{}];
  const ends = [statSync(path).size];
  for (let number = 1; number <= 12; number++) {
    const state = states.at(-1) ?? {};
    change(store, state, number);
    states.push(next(state, number));
    ends.push(statSync(path).size);
  }
  const bytes = readFileSync(path);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    writeFileSync(path, bytes.subarray(0, cut));
    const whole = ends.findLastIndex((end) => end <= cut);
    if (cut === 0) assert.equal(readJournal(path), undefined);
    else if (whole < 0) {
      assert.throws(
        () => readJournal(path),
        /^SyntaxError: Cannot read .*: line 1 must be the JSON \{"revision": NUMBER\} of a data file of coracle$/,
      );
    } else assert.deepEqual(stateOf(readJournal(path)), states[whole]);
  }
});
