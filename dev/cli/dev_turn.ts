/**
 * Turns of the processes that run an operator file one after the other, as it
 * changes, in `coracle dev --watch`: what the command and they say to each other.
 *
 * @module
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { OperatorHandle } from "@coracle/operator/core";
import { loadedFiles } from "./loaded_files.ts";

/** What the command says to a process. */
export type Order =
  /** Load the file. */
  | { readonly order: "run" }
  /** Start the operators: the previous ones have stopped their controllers. */
  | { readonly order: "start" }
  /** Stop the controllers, and go on to answer webhooks. */
  | { readonly order: "leave" }
  /** End: another process has taken over, and has these policies. */
  | { readonly order: "end"; readonly policies: readonly string[] };

/** What a process says to the command. */
export type Report =
  /** The modules of the framework are loaded. */
  | { readonly report: "ready" }
  /** The file is loaded, and an operator is to start. */
  | { readonly report: "loaded" }
  | { readonly report: "left" }
  /** The operators have started; their policies. */
  | { readonly report: "started"; readonly policies: readonly string[] }
  /** The file cannot run while the previous process has its port. */
  | { readonly report: "occupied" }
  /** Files that the process has loaded. */
  | { readonly report: "files"; readonly files: readonly string[] };

/** Interval of reports about files that are loaded later, in milliseconds. */
const FILES_MS = 500;

/** Turn of this process to run the operators of a file. */
export class DevTurn {
  readonly #orders = {
    run: Promise.withResolvers<void>(),
    start: Promise.withResolvers<void>(),
    leave: Promise.withResolvers<void>(),
    end: Promise.withResolvers<readonly string[]>(),
  };
  readonly #reported: Set<string> = new Set();
  /** Operators that have only their webhooks left. */
  readonly #left: Map<OperatorHandle, () => void> = new Map();
  #isLoaded = false;
  #ended: Promise<void> | undefined;

  /**
   * Waits with the modules of the framework loaded, until the file is to be run.
   *
   * @param preload Files of the framework that the previous process has loaded.
   */
  static async next(preload: readonly string[]): Promise<DevTurn> {
    const turn = new DevTurn();
    process.on("message", (order: Order) => {
      if (order.order === "end") turn.#orders.end.resolve(order.policies);
      else turn.#orders[order.order].resolve();
    });
    // Nothing is left to stop in order: the API server has ended, too.
    process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
    await import("@coracle/operator");
    for (const file of preload) {
      // deno-lint-ignore coracle/literal-import -- the previous process names them
      await import(pathToFileURL(file).href).catch(() => {});
    }
    turn.#reportFiles();
    report({ report: "ready" });
    await turn.#orders.run.promise;
    // The end of the operators ends the process.
    process.channel?.unref();
    setInterval(() => turn.#reportFiles(), FILES_MS).unref();
    return turn;
  }

  /** Waits until the operators of before have stopped their controllers. */
  async begin(): Promise<void> {
    if (!this.#isLoaded) {
      this.#isLoaded = true;
      this.#reportFiles();
      report({ report: "loaded" });
    }
    // The file may have nothing else to wait for.
    process.channel?.ref();
    await this.#orders.start.promise;
    process.channel?.unref();
  }

  /** Whether the file has been loaded, and an operator is to start. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** Reports that the operators have started. */
  started(operators: readonly OperatorHandle[]): void {
    this.#reportFiles();
    const policies = operators.flatMap(({ settings }) =>
      settings.policies ?? []
    ).map(({ policy }) => policy.metadata.name);
    report({ report: "started", policies });
  }

  /** Reports that a port of the file is in use, before this process ends. */
  async occupied(): Promise<void> {
    await new Promise<void>((sent) => report({ report: "occupied" }, sent));
  }

  /**
   * Stops the operators when another process is to take over; resolves when it has.
   *
   * @param operators Returns the operators.
   * @param ended Promise that resolves when the command ends.
   */
  async handOver(
    operators: () => readonly OperatorHandle[],
    ended: Promise<void>,
  ): Promise<void> {
    await this.#orders.leave.promise;
    process.channel?.ref();
    this.#ended = ended;
    const stops = operators().map(async (operator) => {
      const left = new Promise<void>((resolve) =>
        this.#left.set(operator, resolve)
      );
      const stopped = operator.stop();
      await Promise.race([left, stopped]);
      return { stopped };
    });
    const left = await Promise.all(stops);
    report({ report: "left" });
    await Promise.all(left.map(({ stopped }) => stopped));
    await Promise.race([this.#orders.end.promise, ended]);
  }

  /** Waits while an operator has only its webhooks left, as its host does. */
  async leaving(
    operator: OperatorHandle,
  ): Promise<readonly string[] | undefined> {
    if (this.#ended === undefined) return undefined;
    this.#left.get(operator)?.();
    return await Promise.race([
      this.#orders.end.promise,
      this.#ended.then(() => undefined),
    ]);
  }

  #reportFiles(): void {
    const files = [...loadedFiles()].filter((file) =>
      !this.#reported.has(file)
    );
    if (files.length === 0) return;
    for (const file of files) this.#reported.add(file);
    report({ report: "files", files });
  }
}

/** Sends a report, unless the command has ended. */
function report(report: Report, sent: () => void = () => {}): void {
  process.send?.(report, undefined, undefined, () => sent());
}
