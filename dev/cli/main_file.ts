/**
 * Preloaded module of a process whose main module is an operator file: carries
 * out the task of the process, for files that create operators only as the main
 * module.
 *
 * @module
 */
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { keepCompiledModules } from "./compile_cache.ts";
import { followLoads } from "./loaded_files.ts";

keepCompiledModules();
followLoads();
const { UsageError } = await import("./command.ts");
const { mainTask } = await import("./main_process.ts");
const { loadMainModule } = await import("./operator_module.ts");
const { printable, printableTerminal } = await import("./printable.ts");

const given = mainTask();
if (given?.task === "describe") {
  const { describeModule } = await import("./operator_file.ts");
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
  const { beginDev } = await import("./dev_run.ts");
  const { processTerminal } = await import("./terminal.ts");
  const { file, run } = given;
  let turn;
  if (given.preload !== undefined) {
    const { DevTurn } = await import("./dev_turn.ts");
    turn = await DevTurn.next(given.preload);
  }
  void beginDev(file, run, printableTerminal(processTerminal()), turn);
}
