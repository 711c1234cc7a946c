/**
 * Locks a data file for as long as the process runs, for a test.
 *
 * @module
 */
import process from "node:process";
import { lockJournal } from "../../../dev/apiserver/storage/file_journal.ts";

const [path = ""] = process.argv.slice(2);
try {
  await lockJournal(path);
  process.stdout.write("locked\n");
} catch (error) {
  process.stdout.write(`${(error as Error).message}\n`);
}
setInterval(() => {}, 60_000);
