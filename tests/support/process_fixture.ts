import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "../../apiserver/server.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import { Chronicle } from "./chronicle.ts";
import { Gadget } from "./operator_fixture.ts";
import { Program, runtimeCommand } from "./program.ts";
import { RunJournal } from "./run_journal.ts";
import { temporaryFolder } from "./temporary_folder.ts";
import { until } from "./until.ts";

/** How long something may take on a busy machine, in milliseconds. */
const WITHIN = 40_000;

/** An API server, programs that run an operator on it, and what they wrote. */
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

  /** Makes gadgets, and gives their names. */
  async create(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.server.client.create(Gadget, {
        metadata: { namespace: "default", name },
        spec: { value: "first" },
      });
    }
  }

  /** Starts a process that goes by a name. */
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

  /** Has a process stand still. */
  freeze(identity: string): void {
    this.#program(identity).signal("SIGSTOP");
    this.journal.noteStop(identity);
  }

  /** Has a process go on. */
  thaw(identity: string): void {
    this.#program(identity).signal("SIGCONT");
  }

  /** Ends a process in the midst of its work. */
  async kill(identity: string): Promise<void> {
    await this.#program(identity).end("SIGKILL");
    this.journal.noteStop(identity);
  }

  /** Ends a process in order; gives its exit code. */
  end(identity: string): Promise<number> {
    return this.#program(identity).end("SIGTERM");
  }

  /** Waits until somebody has written several times from now on. */
  async writesAgain(who: string): Promise<void> {
    const before = this.chronicle.writesOf(who);
    await this.until(
      `${who} writes`,
      () => this.chronicle.writesOf(who) > before + 3,
    );
  }

  /** Waits until something is so; says what the programs wrote if it is not. */
  async until(what: string, condition: () => boolean): Promise<void> {
    try {
      await until(what, condition, { within: WITHIN });
    } catch (error) {
      const programs = [...this.#programs.values()];
      const states = programs.map((program) => program.describe());
      throw new Error(states.join("\n"), { cause: error });
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

/** A test of operators in processes of their own. */
export function processScenario(
  title: string,
  play: (fixture: ProcessFixture) => Promise<void>,
): void {
  test(title, { timeout: 180_000 }, async () => {
    const fixture = await ProcessFixture.start();
    try {
      await play(fixture);
    } finally {
      await fixture.stop();
    }
  });
}
