import { rmSync } from "node:fs";
import { join } from "node:path";
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
import { OperatorProcess, runWatched } from "./dev_watch.ts";
import { runAsMain, startMain } from "./main_process.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import { DATA_FLAG, startServer } from "./embedded_server.ts";
import {
  linkFileOf,
  listOf,
  portOf,
  temporaryFolder,
  textOf,
  writeSecretFile,
} from "./serving.ts";

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
        const run: DevRun = {
          kubeconfig,
          operatorKubeconfig,
          account,
          debug: flags["debug"] === true,
          export: exported,
          apply,
          crd,
          greeted: join(folder, "greeted"),
          link,
          window: window.url,
        };
        if (flags["watch"] === true) {
          return await runWatched(file, run, { interrupts, terminal });
        }
        const code = await runDev(file, run, {
          terminal,
          failed: uncaught.promise,
        });
        return code ?? await runInChild(file, run, interrupts);
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

/** Runs a file as the main module of a process; returns its exit code. */
async function runInChild(
  file: string,
  run: DevRun,
  interrupts: AbortSignal,
): Promise<number> {
  const child = new OperatorProcess(
    await startMain({ task: "dev", file, run }),
  );
  const stop = () => child.end(interrupts.reason);
  interrupts.addEventListener("abort", stop, { once: true });
  if (interrupts.aborted) stop();
  const code = await child.exited;
  interrupts.removeEventListener("abort", stop);
  return interrupts.aborted ? 0 : code ?? 1;
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
