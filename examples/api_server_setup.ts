/**
 * Global setup of vitest and jest: one embedded API server for all test files, whose
 * kubeconfig is in the environment.
 *
 * @module
 */

import { ApiServer } from "@coracle/dev/apiserver";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

let server: ApiServer;
let folder: string;

export async function setup(): Promise<void> {
  server = await ApiServer.start();
  folder = await mkdtemp(join(tmpdir(), "api-server-"));
  const file = join(folder, "kubeconfig");
  await writeFile(file, server.kubeconfig, { mode: 0o600 });
  process.env["KUBECONFIG"] = file;
}

export async function teardown(): Promise<void> {
  await server.stop();
  await rm(folder, { recursive: true });
}
