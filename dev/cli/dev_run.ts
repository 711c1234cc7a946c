import { access, writeFile } from "node:fs/promises";
import { relative, resolve } from "node:path";
import process from "node:process";
import {
  ApiError,
  Client,
  type Kind,
  loadConfig,
  systemClock,
  untyped,
} from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import {
  type CrdManifest,
  crdManifest,
  type DefinedKind,
  installCrd,
} from "@coracle/operator/crd";
import {
  apiVersionOf,
  CRD_KIND,
  isDefinedKind,
  isResolved,
  kindText,
  logsUnawaited,
  type OperatorHooks,
  replaceHost,
  unawaitedRequest,
} from "@coracle/operator/internal";
import { shellText } from "../testing/shell_text.ts";
import { builtInKinds } from "./operator_description.ts";
import { applyObjects } from "./dev_objects.ts";
import { type DevAccount, grantRights } from "./dev_rights.ts";
import { type CommandTerminal, reportError, type Terminal } from "./command.ts";
import {
  isGuarded,
  loadMainModule,
  loadOperatorModule,
  noOperatorError,
  type OperatorModule,
  selectOperators,
} from "./operator_module.ts";
import { newlyRequired } from "./newly_required.ts";
import { readableLogger } from "./readable_log.ts";
import type { DevTurn } from "./dev_turn.ts";
import { aborted } from "./serving.ts";
import { LatestLines, serveLink } from "./window/operator_link.ts";

/** Settings of a run of a file's operators against a server; plain data. */
export interface DevRun {
  /** Kubeconfig with all rights. */
  readonly kubeconfig: string;
  /** Kubeconfig of the operators. */
  readonly operatorKubeconfig: string;
  /** Service account of the operators. */
  readonly account: DevAccount;
  /** Whether to log at debug level. */
  readonly debug: boolean;
  /** Value of `--export`. */
  readonly export: string | undefined;
  /** Values of `--apply`. */
  readonly apply: readonly string[];
  /** Values of `--crd`. */
  readonly crd: readonly string[];
  /** File that marks a printed greeting, across restarts. */
  readonly greeted: string;
  /**
   * File in which the page of `coracle dev` finds the addresses of the
   * operators.
   */
  readonly link: string;
  /** URL of the page of `coracle dev`. */
  readonly window: string;
}

/**
 * Imports a file and runs its operators until the user ends them or one fails.
 *
 * @returns The exit code; undefined if the file creates operators only as the main
 * module.
 */
export async function runDev(
  file: string,
  run: DevRun,
  deps: Pick<RunDeps, "terminal" | "failed">,
): Promise<number | undefined> {
  return await runOperators(
    (options) => loadOperatorModule(file, options),
    { ...run, ...deps, file },
  );
}

/**
 * Runs the operators of the main module, and ends the process. Must be called
 * before the main module is evaluated.
 */
export async function beginDev(
  file: string,
  run: DevRun,
  terminal: CommandTerminal,
  turn?: DevTurn,
): Promise<void> {
  const code = await runOperators(
    (options) => Promise.resolve(loadMainModule(file, options)),
    { ...run, file, terminal, turn, failed: uncaughtErrors(terminal).promise },
  ).catch(async (error) => {
    if (isOccupied(error)) await turn?.occupied();
    return reportError(error, terminal, { name: "dev" });
  });
  process.exit(code ?? 1);
}

/** Environment of the operators. */
interface RunDeps extends DevRun {
  readonly file: string;
  readonly terminal: CommandTerminal;
  /** Promise that rejects on the first unhandled error. */
  readonly failed: Promise<never>;
  /** Turn of this process; undefined without others before or after it. */
  readonly turn?: DevTurn | undefined;
}

/** Whether an error says that a port is in use. */
function isOccupied(error: unknown): boolean {
  const { code, cause } = Object(error) as {
    readonly code?: unknown;
    readonly cause?: unknown;
  };
  return code === "EADDRINUSE" || cause !== undefined && isOccupied(cause);
}

async function runOperators(
  load: (
    options: Omit<OperatorHooks, "made">,
  ) => Promise<OperatorModule>,
  deps: RunDeps,
): Promise<number | undefined> {
  const { file, terminal, kubeconfig, debug, turn } = deps;
  // The API server may be in the process that has started this one.
  const release = replaceHost({ webhooks: { besideServer: true } });
  const interrupts = terminal.interrupts();
  const lines = new LatestLines();
  const logger = readableLogger({
    write(text) {
      lines.add(text);
      terminal.draw(text);
    },
    colors: terminal.colors,
    level: debug ? "debug" : "info",
  });
  const starting: OperatorHandle[] = [];
  const started = new Set<OperatorHandle>();
  let link: ReturnType<typeof serveLink> | undefined;
  const showOnPage = () =>
    serveLink({
      operators: () => starting,
      lines,
      kubeconfig,
      file: deps.link,
    });
  // The main module may be evaluated while the configuration is read.
  const loading = load({
    runs: true,
    logger,
    async starting(operator) {
      starting.push(operator);
      await turn?.begin();
      await (link ??= showOnPage());
      const kinds = operator.controllers.flatMap((controller) => [
        controller.kind,
        ...controller.secondaryKinds,
        ...controller.readOnlyKinds,
      ]);
      const client = new Client(await loadConfig({ kubeconfig }));
      try {
        for (const kind of new Set<Kind>(kinds)) {
          if (!isDefinedKind(kind)) continue;
          await warnOfStored(client, kind, terminal);
          // One that the operator converts follows when it can be called for that.
          if (kind.conversion !== undefined) continue;
          await installCrd(client, kind, { logger });
        }
        for (const { kind: one, isJob } of operator.controllers) {
          if (isJob || isDefinedKind(one)) continue;
          const { group, version, kind } = one;
          const served = untyped({ group, version, kind });
          await client.resolve(served).catch((error) => {
            if (!ApiError.is(error) || !error.isNotFound) throw error;
            terminal.say(
              `Others define ${
                kindText(served)
              }: coracle dev --crd FILE installs its CustomResourceDefinition.\n`,
            );
          });
        }
        await grantRights(client, starting, deps.account);
      } finally {
        await client.close();
      }
    },
    async converting(kinds, conversion) {
      const client = new Client(await loadConfig({ kubeconfig }));
      try {
        for (const kind of kinds) {
          if (!isDefinedKind(kind)) continue;
          await installCrd(client, kind, { logger, conversion });
        }
      } finally {
        await client.close();
      }
    },
    started(operator) {
      started.add(operator);
      if (started.size === 1) void greet(operator, deps);
      if (started.size === starting.length) turn?.started(starting);
    },
    ...turn && { leaving: (operator) => turn.leaving(operator) },
  });
  // A file that fails before that is reported below.
  loading.then(({ exports }) => exports.catch(() => {}), () => {});
  const client = new Client(
    await loadConfig({ kubeconfig: deps.operatorKubeconfig }),
    { logger },
  );
  const module = await loading;
  const ended = aborted(interrupts);
  // A file that starts its operators itself is done when they have stopped.
  const ran = module.exports.then(async () => {
    const { operators, received } = await selectOperators(
      module,
      deps.export,
      { client, clock: systemClock, logger, namespaces: "all" },
    );
    if (operators.length === 0) {
      if (!module.isMain && await isGuarded(file)) return undefined;
      throw noOperatorError(file, received);
    }
    const waiting = operators.filter((operator) => !started.has(operator));
    await Promise.all(waiting.map((operator) => operator.start()));
    if (waiting.length > 0) await ended;
    return 0;
  }).catch((error) => {
    // An operator that is stopped during its start fails.
    if (interrupts.aborted) return 0;
    throw error;
  });
  try {
    const over = [ended, ...turn ? [turn.handOver(() => starting, ended)] : []];
    const done = Promise.race(over).then(() => 0);
    return await Promise.race([done, ran, deps.failed]);
  } finally {
    module.release();
    release();
    await Promise.all(module.operators.map((operator) => operator.stop()));
    await client.close();
    await (await link)?.close();
  }
}

/** Warns of fields that the stored objects of a kind may lack. */
async function warnOfStored(
  client: Client,
  kind: DefinedKind,
  { say }: Terminal,
): Promise<void> {
  const definition = crdManifest(kind);
  const { name } = definition.metadata;
  const earlier: object | undefined = await client.find(CRD_KIND, { name });
  for (const text of newlyRequired(definition, earlier as CrdManifest)) {
    say(`${text}\n`);
  }
}

/** Handler of unhandled errors, whose promise rejects on the first one. */
export function uncaughtErrors({ say }: Terminal): {
  readonly promise: Promise<never>;
  remove(): void;
} {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {}); // Awaited later.
  const rejected = (error: unknown) => {
    const text = unawaitedRequest(error);
    if (text === undefined) reject(error);
    // An operator that runs logs it.
    else if (!logsUnawaited()) say(`${text}: ${error}\n`);
  };
  process.on("uncaughtException", reject);
  process.on("unhandledRejection", rejected);
  return {
    promise,
    remove() {
      process.off("uncaughtException", reject);
      process.off("unhandledRejection", rejected);
    },
  };
}

/** Prints the commands to type into a second terminal, on the first start. */
async function greet(operator: OperatorHandle, deps: RunDeps): Promise<void> {
  const { file, kubeconfig, greeted, terminal } = deps;
  try {
    await writeFile(greeted, "", { flag: "wx" });
  } catch {
    return; // Greeted before a restart.
  }
  for (const path of deps.apply) await applyObjects(path, deps);
  const sample = file.replace(/\.[cm]?[jt]sx?$/, ".yaml");
  const { apply, crd } = deps;
  const hasSample = apply.length === 0 &&
    !crd.some((path) => resolve(path) === resolve(sample)) &&
    await access(sample).then(() => true, () => false);
  const kind = operator.controllers.filter(({ isJob }) => !isJob)
    .map((controller) => controller.kind).find(isResolved);
  const lines = [`export KUBECONFIG=${shellText(resolve(kubeconfig))}`];
  if (hasSample) {
    lines.push(`kubectl apply -f ${shellText(relative("", sample))}`);
  }
  if (kind !== undefined) {
    const name = await kubectlName(kind);
    if (!hasSample) {
      // By its group, "batch.example.com" would be taken for a field of "batch".
      const version = name === kind.plural
        ? ""
        : ` --api-version=${apiVersionOf(kind)}`;
      lines.push(`kubectl explain ${kind.plural}${version}`);
    }
    lines.push(`kubectl get ${name} --watch`);
  }
  terminal.out([
    `\nThe operator of ${file} is running. In a second terminal:\n`,
    ...lines.map((line) => `  ${line}`),
    ...operator.controllers.flatMap(drawnWorkflow),
    `\nIn a browser: ${deps.window}`,
    "\nPress Ctrl-C to end it.\n\n",
  ].join("\n"));
}

/** Plural for kubectl, with the group if a built-in kind has the plural. */
async function kubectlName(
  { group, plural }: Kind & { readonly plural: string },
): Promise<string> {
  const isTaken = (await builtInKinds()).some((other) =>
    other.plural === plural && other.group !== group
  );
  return isTaken ? `${plural}.${group}` : plural;
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
