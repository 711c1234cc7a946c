/**
 * Preloaded module of a process whose main module is an operator file: carries
 * out the task of the process, for files that create operators only as the main
 * module.
 *
 * @module
 */
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { UsageError } from "./command.ts";
import { beginDev } from "./dev_run.ts";
import { mainTask } from "./main_process.ts";
import { describeModule } from "./operator_file.ts";
import { loadMainModule } from "./operator_module.ts";
import { printable, printableTerminal } from "./printable.ts";
import { processTerminal } from "./terminal.ts";

const given = mainTask();
if (given?.task === "describe") {
  const module = loadMainModule(given.file, { runs: false });
  void describeModule(module, given.options)
    .catch((error) => {
      if (!(error instanceof UsageError)) throw error;
      return { refused: error.message };
    })
    .then((answer) =>
      writeFile(given.answer ?? "", JSON.stringify(answer), { mode: 0o600 })
    )
    .catch((error) =>
      void process.stderr.write(printable(`${error?.stack ?? error}\n`))
    )
    .finally(() => process.exit());
} else if (given?.task === "dev") {
  void beginDev(
    given.file,
    given.run,
    printableTerminal(processTerminal()),
  );
}
