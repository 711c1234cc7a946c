/**
 * Program that changes objects in a journal without end and prints the number of
 * each change once it is acknowledged: `journal_writer.ts FILE`.
 *
 * @module
 */
import { writeSync } from "node:fs";
import process from "node:process";
import { FileJournal } from "../../../dev/apiserver/storage/file_journal.ts";
import { Store } from "../../../dev/apiserver/storage/store.ts";
import { plainDefinition } from "../support/plain_kinds.ts";

const definition = plainDefinition({ plural: "widgets", kind: "Widget" });
const store = new Store();
const [path = ""] = process.argv.slice(2);
store.attach(new FileJournal(path, store, { minRewriteBytes: 4_000 }));
for (let number = 1;; number++) {
  const name = `w${number % 7}`;
  store.put(definition, {
    kind: "Widget",
    apiVersion: "v1",
    metadata: { namespace: "a", name, uid: name },
    number,
  });
  acknowledge(number);
}

/** Prints a number; waits while the pipe is full because its reader is busy. */
function acknowledge(number: number): void {
  for (;;) {
    try {
      writeSync(1, `${number}\n`);
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
