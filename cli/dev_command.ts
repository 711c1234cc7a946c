import { access, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { isResolved } from "../core/api/kind.ts";
import type { OperatorHandle } from "../core/operator/development.ts";
import type { Command, Terminal } from "./command.ts";
import {
  findOperatorFile,
  loadOperatorModule,
  requireOperator,
} from "./operator_module.ts";
import { readableLogger } from "./readable_log.ts";
import { serverIdentity } from "./server_identity.ts";
import {
  aborted,
  portOf,
  serveOn,
  textOf,
  writeSecretFile,
} from "./serving.ts";

/** `coracle dev`: runs an operator file against the embedded API server. */
export const devCommand: Command = {
  name: "dev",
  operands: "FILE",
  count: [1, 1],
  summary: "run an operator file against the embedded API server",
  description:
    "Runs an operator file with an API server of its own: no cluster is needed or\n" +
    "changed. It prints each run and its cause until Ctrl-C. Deployments become\n" +
    "ready without running pods.",
  flags: [
    {
      name: "port",
      value: "N",
      help: "port of the API server; by default any free port",
    },
    {
      name: "kubeconfig",
      value: "FILE",
      help: "kubeconfig file to write, for kubectl",
    },
    {
      name: "data",
      value: "FILE",
      help:
        "file that keeps the objects and the server's identity over restarts",
    },
    { name: "verbose", help: "log at debug level" },
  ],
  async run({ flags, operands, terminal }) {
    const [file = ""] = operands;
    await findOperatorFile(file);
    const port = portOf(flags, "dev", 0);
    const interrupts = terminal.interrupts();
    const folder = await mkdtemp(join(tmpdir(), "coracle-"));
    const kubeconfig = textOf(flags, "kubeconfig") ??
      join(folder, "kubeconfig");
    const { ApiServer } = await import("../apiserver/server.ts");
    try {
      const data = textOf(flags, "data");
      const identity = await serverIdentity(data);
      const server = await serveOn(
        port,
        () => ApiServer.start({ ...identity, port, data, simulate: true }),
      );
      try {
        await writeSecretFile(kubeconfig, server.kubeconfig);
        process.env["KUBECONFIG"] = kubeconfig;
        return await runOperators(file, interrupts, {
          terminal,
          kubeconfig,
          verbose: flags["verbose"] === true,
        });
      } finally {
        await server.stop();
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** Environment of the operators of a file. */
interface DevDeps {
  readonly terminal: Terminal;
  readonly kubeconfig: string;
  readonly verbose: boolean;
}

/** Runs the operators of a file until the user ends them or the file fails. */
async function runOperators(
  file: string,
  interrupts: AbortSignal,
  { terminal, kubeconfig, verbose }: DevDeps,
): Promise<number> {
  const logger = readableLogger({
    write: terminal.say,
    colors: terminal.colors,
    level: verbose ? "debug" : "info",
  });
  const started = new Set<OperatorHandle>();
  const module = await loadOperatorModule(file, {
    runs: true,
    logger,
    operatorStarted(operator) {
      started.add(operator);
      if (started.size > 1) return;
      void greeting(file, operator, kubeconfig).then(terminal.say);
    },
  });
  const ended = aborted(interrupts);
  // A file that starts its operators itself is done when they have stopped.
  const ran = module.exports.then(async (exports) => {
    await requireOperator(module, exports);
    const waiting = module.operators.filter((operator) =>
      !started.has(operator)
    );
    await Promise.all(waiting.map((operator) => operator.start()));
    if (waiting.length > 0) await ended;
  });
  try {
    await Promise.race([ended, ran]);
  } finally {
    await Promise.all(module.operators.map((operator) => operator.stop()));
  }
  return 0;
}

/** Commands to type into a second terminal. */
async function greeting(
  file: string,
  operator: OperatorHandle,
  kubeconfig: string,
): Promise<string> {
  const sample = file.replace(/\.[cm]?[jt]sx?$/, ".yaml");
  const hasSample = await access(sample).then(() => true, () => false);
  const kind = operator.controllers.map((controller) => controller.kind)
    .find(isResolved);
  const lines = [`export KUBECONFIG=${kubeconfig}`];
  if (hasSample) lines.push(`kubectl apply -f ${relative("", sample)}`);
  if (kind !== undefined) {
    if (!hasSample) lines.push(`kubectl explain ${kind.plural}.spec`);
    lines.push(`kubectl get ${kind.plural} --watch`);
  }
  return [
    `\nThe operator of ${file} is running. In a second terminal:\n`,
    ...lines.map((line) => `  ${line}`),
    ...operator.controllers.flatMap(drawnWorkflow),
    "\nPress Ctrl-C to end it.\n\n",
  ].join("\n");
}

/** Workflow of a controller as a Mermaid diagram. */
function drawnWorkflow(
  { name, settings }: OperatorHandle["controllers"][number],
): readonly string[] {
  const drawing = settings.workflow?.toMermaid?.();
  if (drawing === undefined) return [];
  const lines = drawing.trimEnd().split("\n").map((line) => `  ${line}`);
  return [`\nThe workflow of ${name} as a Mermaid diagram:\n`, ...lines];
}
