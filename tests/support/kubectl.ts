import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import type { CommandResult } from "./child_process.ts";
import { runCommand } from "./child_process.ts";

/** Reason why tests with kubectl are skipped; false where it is installed. */
export const NO_KUBECTL: string | false =
  spawnSync("kubectl", ["version", "--client"]).status === 0
    ? false
    : "kubectl is not installed";

/** Runs kubectl as a user would, in one namespace of one cluster. */
export class Kubectl {
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  readonly #cache: string;
  readonly namespace: string;

  /**
   * @param kubeconfig The path of the kubeconfig.
   * @param namespace The namespace that commands are about.
   * @param options.cache A folder for what it learns of the server.
   */
  constructor(
    kubeconfig: string,
    namespace: string,
    options: { readonly cache: string },
  ) {
    this.kubeconfig = kubeconfig;
    this.#cache = options.cache;
    this.namespace = namespace;
  }

  /**
   * Runs a command and expects it to succeed.
   *
   * @param command The command and its arguments, apart by spaces.
   * @param rest Further arguments, such as patches, taken as they are.
   * @returns What it printed.
   */
  async run(command: string, ...rest: readonly string[]): Promise<string> {
    return (await this.#expect(0, command, rest)).stdout;
  }

  /** Runs a command with a text as its standard input, such as `apply -f -`. */
  async feed(input: string, command: string): Promise<string> {
    return (await this.#expect(0, command, [], input)).stdout;
  }

  /** Runs a command that must fail. @returns Its error output. */
  async fails(command: string, ...rest: readonly string[]): Promise<string> {
    return (await this.#expect(1, command, rest)).stderr;
  }

  /** Runs a command that reads a text and must be refused. */
  async feedFails(input: string, command: string): Promise<string> {
    return (await this.#expect(1, command, [], input)).stderr;
  }

  /** Runs a command and gives back how it ended. */
  result(
    command: string,
    rest: readonly string[] = [],
    input?: string,
  ): Promise<CommandResult> {
    // It ends before a collection of its garbage would pay.
    const env = { GOGC: "off" };
    return runCommand(this.command(command, rest), {
      ...{ input, env, limit: 30_000 },
    });
  }

  /** Full command, for those that run until they are ended. */
  command(command: string, rest: readonly string[] = []): readonly string[] {
    return [
      "kubectl",
      `--kubeconfig=${this.kubeconfig}`,
      `--cache-dir=${this.#cache}`,
      `--namespace=${this.namespace}`,
      ...command.split(" "),
      ...rest,
    ];
  }

  async #expect(
    code: number,
    command: string,
    rest: readonly string[],
    input?: string,
  ): Promise<CommandResult> {
    const result = await this.result(command, rest, input);
    const { stdout, stderr } = result;
    assert.equal(result.code, code, `kubectl ${command}\n${stdout}${stderr}`);
    return result;
  }
}
