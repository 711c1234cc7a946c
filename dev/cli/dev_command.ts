import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { AuditEvent } from "../apiserver/request_handler.ts";
import type { ApiServer } from "../apiserver/server.ts";
import { Client } from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import { applyCrd } from "@coracle/operator/internal";
import { RequestRecord } from "../testing/request_record.ts";
import type { Command } from "./command.ts";
import { type DevAccount, missingRights, userOf } from "./dev_rights.ts";
import { type DevRun, runDev, uncaughtErrors } from "./dev_run.ts";
import { objectsOf } from "./dev_objects.ts";
import { definitionsOf } from "./definitions.ts";
import { nameOf, RIGHTS_FLAGS } from "./manifests_command.ts";
import { recordedRequests } from "./operator_manifests.ts";
import { fileReplaced, losesReplacedFiles } from "./replaced_files.ts";
import { runAsMain, startMain } from "./main_process.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import { DATA_FLAG, startServer } from "./embedded_server.ts";
import { RUNTIME } from "./runtime.ts";
import {
  linkFileOf,
  listOf,
  portOf,
  temporaryFolder,
  textOf,
  writeSecretFile,
} from "./serving.ts";

/** Time that a process has to end, in milliseconds. */
const STOP_TIMEOUT_MS = RUNTIME === "deno" ? 3_000 : 12_000;

export const devCommand: Command = {
  name: "dev",
  operands: "FILE",
  count: [1, 1],
  summary: "run an operator file against the embedded API server",
  description:
    "Runs an operator file with an API server of its own: no cluster is needed or\n" +
    "changed. It installs the kinds of the operator, and prints each run and its\n" +
    "cause, and each deletion, until Ctrl-C. Pods run on a simulated node, without\n" +
    "containers. The operator has the rights that coracle manifests prints for it; a\n" +
    "missing one is reported with the rule to add.",
  flags: {
    "watch": "restart the operator when its code changes",
    "debug": "log at debug level",
    "crd FILE…":
      "YAML with the CustomResourceDefinitions of others, to install first",
    "apply PATH…":
      "YAML file, or folder of such files, with objects to create at the start",
    ...EXPORT_FLAG,
    "port N": "port of the API server; by default any free port",
    "kubeconfig FILE":
      "kubeconfig file to write, for kubectl; removed at the end",
    ...DATA_FLAG,
    "record FILE":
      "file to record requests in, for --recorded; the operator has all rights",
    ...RIGHTS_FLAGS,
    "admin": "run the operator with all rights",
  },
  async run({ flags, operands, terminal }) {
    const [file = ""] = operands;
    await findOperatorFile(file);
    const exported = textOf(flags, "export");
    if (exported !== undefined) {
      // A file that runs its operator itself has no exports until it ends.
      const options = { export: exported, operators: true };
      await runAsMain({ file, task: "describe", options });
    }
    const crd = listOf(flags, "crd");
    const definitions = await definitionsOf(crd);
    const apply = listOf(flags, "apply");
    for (const path of apply) await objectsOf(path);
    const port = portOf(flags);
    const record = textOf(flags, "record");
    const account: DevAccount = {
      name: nameOf(file),
      admin: flags["admin"] === true || record !== undefined,
      manages: listOf(flags, "manages"),
      recorded: listOf(flags, "recorded"),
    };
    recordedRequests(account.recorded);
    const interrupts = terminal.interrupts();
    const folder = await temporaryFolder();
    const named = textOf(flags, "kubeconfig");
    const kubeconfig = named ?? join(folder, "kubeconfig");
    const link = linkFileOf(kubeconfig);
    let isWritten = false;
    // The kubeconfig contains a token, so it goes however the process ends.
    const cleanUp = () => {
      rmSync(folder, { recursive: true, force: true });
      if (!isWritten) return;
      for (const file of [kubeconfig, link]) rmSync(file, { force: true });
    };
    process.on("exit", cleanUp);
    const uncaught = uncaughtErrors(terminal);
    try {
      const server: ApiServer = await startServer({
        port,
        data: textOf(flags, "data"),
        audit: record === undefined
          ? missingRights(account, {
            say: terminal.say,
            resources: () => server.client.resources(),
          })
          : recorder(record, account),
        simulate: true,
      });
      const { linkedOperators } = await import("./window/operator_link.ts");
      const { serveWindow } = await import("./window/window_server.ts");
      const window = await serveWindow({
        source: linkedOperators(link),
        port: 0,
        faults: server.faults,
      });
      try {
        await install(definitions, server);
        await writeSecretFile(kubeconfig, server.kubeconfig);
        isWritten = true;
        const operatorKubeconfig = join(folder, "operator");
        await writeSecretFile(
          operatorKubeconfig,
          server.kubeconfigFor({ name: userOf(account) }),
        );
        process.env["KUBECONFIG"] = operatorKubeconfig;
        const watch = flags["watch"] === true;
        const run: DevRun = {
          kubeconfig,
          operatorKubeconfig,
          account,
          debug: flags["debug"] === true,
          watch,
          export: exported,
          apply,
          crd,
          greeted: join(folder, "greeted"),
          link,
          window: window.url,
        };
        const code = watch ? undefined : await runDev(file, run, {
          terminal,
          failed: uncaught.promise,
        });
        return code ?? await runInChild(file, run, { watch, interrupts });
      } finally {
        await window.close();
        await server.stop();
      }
    } finally {
      cleanUp();
      process.off("exit", cleanUp);
      uncaught.remove();
    }
  },
};

async function install(
  definitions: readonly CrdManifest[],
  { transport }: ApiServer,
): Promise<void> {
  const client = new Client({ transport });
  for (const definition of definitions) await applyCrd(client, definition, {});
}

/** Options for starting and ending a process. */
interface ChildOptions {
  readonly watch: boolean;
  readonly interrupts: AbortSignal;
}

/**
 * Runs a file as the main module of a child process, again after each change of
 * it, and returns the exit code of the process that ends by itself.
 */
async function runInChild(
  file: string,
  run: DevRun,
  options: ChildOptions,
): Promise<number> {
  for (;;) {
    const code = await runOnce(file, run, options);
    if (code !== undefined) return code;
  }
}

/**
 * Runs a file as the main module of a process.
 *
 * @returns The exit code; undefined if the process must be started again.
 */
async function runOnce(
  file: string,
  run: DevRun,
  { watch, interrupts }: ChildOptions,
): Promise<number | undefined> {
  const ended = new AbortController();
  const replaced = watch && losesReplacedFiles()
    ? fileReplaced(dirname(file), ended.signal)
    : Promise.resolve(false);
  const child = await startMain({ task: "dev", file, run }, { watch });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const kill = () => {
    // On Deno child.kill() kills only once.
    if (child.pid !== undefined) process.kill(child.pid, "SIGKILL");
  };
  // A second signal ends this process by exit().
  process.once("exit", kill);
  const end = () => {
    child.kill("SIGTERM");
    timer = setTimeout(kill, STOP_TIMEOUT_MS);
  };
  const stop = () => {
    // At a terminal, Ctrl-C has reached the child as well.
    const { reason } = interrupts;
    if (reason !== "SIGINT" || !process.stdin.isTTY) child.kill("SIGTERM");
    // Deno's watcher survives the signal that its program handles.
    timer ??= setTimeout(kill, STOP_TIMEOUT_MS);
  };
  interrupts.addEventListener("abort", stop, { once: true });
  if (interrupts.aborted) stop();
  let again = false;
  replaced.then((isReplaced) => {
    if (!isReplaced || interrupts.aborted) return;
    again = true;
    end();
  }, () => {}); // A folder that cannot be watched is left to the runtime.
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => {
        if (interrupts.aborted) resolve(0);
        else resolve(again ? undefined : code ?? 1);
      });
    });
  } finally {
    ended.abort();
    clearTimeout(timer);
    interrupts.removeEventListener("abort", stop);
    process.off("exit", kill);
  }
}

/** Audit function that adds the requests of the operators to a file. */
export function recorder(
  file: string,
  account: DevAccount,
): (event: AuditEvent) => void {
  const record = new RequestRecord(file);
  return ({ verb, group, subresource, namespace, user, status, ...event }) => {
    if (event.resource === "" || user !== userOf(account)) return;
    const resource = [event.resource, subresource].filter(Boolean).join("/");
    const request = {
      verb,
      group,
      resource,
      namespace: namespace || undefined,
    };
    record.add(request, status);
  };
}
