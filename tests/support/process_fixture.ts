import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { Chronicle } from "./chronicle.ts";
import { Gadget } from "./operator_fixture.ts";
import { Program, runtimeCommand } from "./program.ts";
import { RunJournal } from "./run_journal.ts";
import { temporaryFolder } from "./temporary_folder.ts";
import { until } from "./until.ts";

/** Milliseconds that one step may take on a busy machine. */
const STEP_LIMIT_MS = 40_000;

/** API server, processes that run an operator on it, and their writes. */
export class ProcessFixture {
  readonly server: ApiServer;
  readonly chronicle: Chronicle;
  readonly journal: RunJournal;
  readonly #folder: string;
  readonly #programs: Map<string, Program> = new Map();

  private constructor(server: ApiServer, folder: string) {
    this.server = server;
    this.#folder = folder;
    this.chronicle = new Chronicle(server);
    this.journal = new RunJournal(this.#journalPath);
  }

  static async start(): Promise<ProcessFixture> {
    const server = await ApiServer.start();
    const folder = temporaryFolder();
    await writeFile(join(folder, "kubeconfig"), server.kubeconfig, {
      mode: 0o600,
    });
    await installCrd(server.client, Gadget);
    return new ProcessFixture(server, folder);
  }

  /** Creates gadgets. */
  async create(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.server.client.create(Gadget, {
        metadata: { namespace: "default", name },
        spec: { value: "first" },
      });
    }
  }

  /** Starts a process under an identity. */
  run(
    file: string,
    identity: string,
    env: Readonly<Record<string, string>> = {},
  ): void {
    const command = [...runtimeCommand(), file];
    const program = new Program(command, {
      env: {
        KUBECONFIG: join(this.#folder, "kubeconfig"),
        JOURNAL: this.#journalPath,
        IDENTITY: identity,
        ...env,
      },
    });
    this.#programs.set(identity, program);
  }

  /** Waits until the output of a process matches. */
  async says(identity: string, pattern: RegExp): Promise<void> {
    await this.#program(identity).says(pattern, STEP_LIMIT_MS);
  }

  /** Stops a process by SIGSTOP. */
  freeze(identity: string): void {
    this.#program(identity).signal("SIGSTOP");
    this.journal.noteStop(identity);
  }

  /** Continues a stopped process. */
  thaw(identity: string): void {
    this.#program(identity).signal("SIGCONT");
  }

  /** Kills a process. */
  async kill(identity: string): Promise<void> {
    await this.#program(identity).end("SIGKILL");
    this.journal.noteStop(identity);
  }

  /** Ends a process by SIGTERM. @returns Its exit code. */
  end(identity: string): Promise<number> {
    return this.#program(identity).end("SIGTERM");
  }

  /** Waits until a process has written four times from now on. */
  async writesAgain(who: string): Promise<void> {
    const before = this.chronicle.writesOf(who);
    await this.until(
      `${who} writes`,
      () => this.chronicle.writesOf(who) > before + 3,
    );
  }

  /** Waits for a condition; the error has the output of the processes. */
  async until(what: string, condition: () => boolean): Promise<void> {
    try {
      await until(what, condition, { within: STEP_LIMIT_MS });
    } catch (error) {
      const programs = [...this.#programs.values()];
      const states = programs.map((program) => program.describe());
      throw new Error(`${(error as Error).message}\n${states.join("\n")}`, {
        cause: error,
      });
    }
  }

  async stop(): Promise<void> {
    for (const program of this.#programs.values()) await program.kill();
    await this.chronicle.end();
    await this.server.stop();
  }

  get #journalPath(): string {
    return join(this.#folder, "journal");
  }

  #program(identity: string): Program {
    const program = this.#programs.get(identity);
    if (program === undefined) throw new Error(`No process ${identity}`);
    return program;
  }
}

/** Defines a test of operators in processes of their own. */
export function processScenario(
  title: string,
  play: (fixture: ProcessFixture) => Promise<void>,
): void {
  test(title, async () => {
    const fixture = await ProcessFixture.start();
    try {
      await play(fixture);
    } finally {
      await fixture.stop();
    }
  });
}
