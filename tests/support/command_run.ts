import process from "node:process";
import { runCommandLine } from "../../dev/cli/main.ts";
import { until } from "./until.ts";

/**
 * Command of the command line that runs in this process, with its output, and the
 * methods of a `Program`. It changes the environment until it has ended, so its
 * test has a process of its own, and runs one at a time.
 */
export class CommandRun {
  readonly #args: readonly string[];
  readonly #interrupts: AbortController = new AbortController();
  readonly #done: Promise<void>;
  #output = "";
  #code: number | undefined;

  /** Starts it. @param env Variables that are set until it has ended. */
  constructor(
    args: readonly string[],
    { env = {} }: { readonly env?: Readonly<Record<string, string>> } = {},
  ) {
    this.#args = args;
    this.#done = this.#run(env);
  }

  /** Output so far. */
  get output(): string {
    return this.#output;
  }

  async #run(env: Readonly<Record<string, string>>): Promise<void> {
    const before = { ...process.env };
    Object.assign(process.env, env);
    const write = (text: string) => void (this.#output += text);
    try {
      this.#code = await runCommandLine(this.#args, {
        colors: false,
        out: write,
        say: write,
        interrupts: () => this.#interrupts.signal,
      });
    } catch (error) {
      this.#output += String((error as Error).stack);
      this.#code = -1;
    } finally {
      for (const name of Object.keys(process.env)) {
        if (!(name in before)) delete process.env[name];
      }
      Object.assign(process.env, before);
    }
  }

  /** Waits until its output matches. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    return await until(`coracle says ${pattern}`, () => {
      const found = pattern.exec(this.#output);
      if (found === null && this.#code !== undefined) {
        throw new Error(this.describe());
      }
      return found;
    }).catch((error: unknown) => {
      throw new Error(this.describe(), { cause: error });
    });
  }

  /** Interrupts it, as Ctrl-C does. @returns Its exit code. */
  async end(): Promise<number> {
    this.#interrupts.abort("SIGINT");
    return await this.ended();
  }

  /** Waits until it has ended by itself. @returns Its exit code. */
  async ended(): Promise<number> {
    await until("coracle ends", () => this.#code !== undefined)
      .catch((error: unknown) => {
        throw new Error(this.describe(), { cause: error });
      });
    await this.#done;
    return this.#code ?? -1;
  }

  /** Ends it after a test that may have failed. */
  async kill(): Promise<void> {
    this.#interrupts.abort("SIGINT");
    await this.#done;
  }

  /** Command, state and the end of its output, for errors. */
  describe(): string {
    const state = this.#code === undefined
      ? "still runs"
      : `ended with ${this.#code}`;
    return `coracle ${this.#args.join(" ")} ${state}, having written:\n${
      this.#output.slice(-8_000)
    }`;
  }
}
