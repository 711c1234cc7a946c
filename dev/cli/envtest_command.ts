import { chmod } from "node:fs/promises";
import { join, resolve } from "node:path";
import process from "node:process";
import { controllerSwitch } from "../apiserver/controllers/controller_names.ts";
import type { Command } from "./command.ts";
import { envtestScripts } from "./envtest/scripts.ts";
import type { EnvtestSettings } from "./envtest/etcd_stand_in.ts";
import { programFile, RUNTIME, runtimeFlags } from "./runtime.ts";
import { listOf, makeFolder, writeOutput } from "./serving.ts";

/** Flags that reduce the memory of Node: small young generation, one thread. */
const MEMORY_FLAGS = ["--max-semi-space-size=1", "--v8-pool-size=1"];

/**
 * Command line of the process that stands in for etcd, on this process'
 * runtime.
 */
function serverCommand(settings: EnvtestSettings): readonly string[] {
  return [
    process.execPath,
    ...RUNTIME === "node" ? MEMORY_FLAGS : [],
    ...runtimeFlags(),
    programFile("envtest/etcd"),
    JSON.stringify(settings),
  ];
}

export const envtestCommand: Command = {
  name: "envtest",
  operands: "DIR",
  count: [1, 1],
  summary: "write etcd and kube-apiserver for KUBEBUILDER_ASSETS",
  description:
    "Writes the programs etcd, kube-apiserver and kubectl into a folder, for tests with\n" +
    "controller-runtime's envtest and others that start a control plane of these\n" +
    "programs: they run the embedded API server and take the same flags. As in\n" +
    "envtest, no controllers run unless selected. kubectl runs that of the path.",
  flags: {
    "controllers NAME…":
      "controllers to run, as in kube-controller-manager; none by default",
    "simulate": "run pods on a simulated node, without containers",
  },
  async run({ flags, operands, terminal }) {
    if (process.platform === "win32") {
      throw new Error(
        "Cannot write the programs of envtest: they are shell scripts, which Windows does not run",
      );
    }
    if (RUNTIME === "bun") {
      throw new Error(
        "Cannot write the programs of envtest with Bun: its servers do not show client certificates, by which envtest's users are known; run the command with Node or Deno",
      );
    }
    const folder = resolve(operands[0] ?? "");
    const controllers = listOf(flags, "controllers");
    controllerSwitch(controllers);
    const command = serverCommand({
      controllers,
      simulate: flags["simulate"] === true,
    });
    await makeFolder(folder);
    for (
      const [name, text] of Object.entries(envtestScripts({ folder, command }))
    ) {
      const file = join(folder, name);
      await writeOutput(file, text);
      await chmod(file, 0o755);
    }
    terminal.say(`Wrote etcd, kube-apiserver and kubectl of Kubernetes 1.37\n`);
    terminal.out(
      `export KUBEBUILDER_ASSETS='${folder.replaceAll("'", "'\\''")}'\n`,
    );
    return 0;
  },
};
