import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiServer } from "../../apiserver/server.ts";
import type { Client } from "../../core/client/client.ts";
import { Program, runtimeCommand } from "./program.ts";

/** Example that runs as a program, with its cluster. */
export interface RunningExample {
  /** Process of the example. */
  readonly program: Program;
  /** Of an administrator of the cluster. */
  readonly client: Client;
  /** The path of the kubeconfig that the example uses. */
  readonly kubeconfig: string;
}

/**
 * The body of a test that runs an example as a file of its own against an
 * embedded API server, and ends it as a cluster would.
 *
 * @param file The example, from the root of the checkout.
 * @param body The test.
 * @param env Variables that the example reads.
 */
export function withExample(
  file: string,
  body: (example: RunningExample) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): () => Promise<void> {
  return async () => {
    const folder = await mkdtemp(join(tmpdir(), "coracle-example-"));
    const server = await ApiServer.start({ port: 0, simulate: true });
    try {
      const kubeconfig = join(folder, "kubeconfig");
      await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
      const program = new Program([...runtimeCommand(), file], {
        env: { ...env, KUBECONFIG: kubeconfig },
      });
      try {
        await program.says(/Operator started/);
        await body({ program, client: server.client, kubeconfig }).catch(
          (error) => {
            throw new Error(program.describe(), { cause: error });
          },
        );
        const code = await program.end("SIGTERM");
        if (code !== 0) throw new Error(program.describe());
      } finally {
        await program.kill();
      }
    } finally {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  };
}
