import { existsSync } from "node:fs";
import process from "node:process";
import { parseKey } from "@coracle/operator/client";
import type { ObjectHistory, RecordedRun } from "@coracle/operator/core";
import { isJsonObject } from "@coracle/operator/internal";
import { type Command, type FlagValues, UsageError } from "./command.ts";
import { describeFile } from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { printableLine } from "./printable.ts";
import { linkFileOf, textOf } from "./serving.ts";

/** Default address of an operator's probes. */
const DEFAULT_URL = "http://127.0.0.1:8080";
/** Option of operators that allows the command. */
export const PROBES = "probes: { port: 8080, debug: true }";
/** Flag `--url`, of the commands that ask a running operator. */
export const URL_FLAG: Command["flags"] = {
  "url URL":
    `URL of the operator's probes (default ${DEFAULT_URL}, or the port of FILE)`,
};
/** Time limit for the answer of an operator, in milliseconds. */
const TIMEOUT_MS = 10_000;

export const whyCommand: Command = {
  name: "why",
  operands: "[FILE] NAMESPACE/NAME",
  count: [1, 2],
  summary: "show the last runs of an object, from a running operator",
  description:
    "Prints the last runs of an object with their cause, writes and outcome. The\n" +
    `operator must be created with ${PROBES},\n` +
    "unless coracle dev runs it and KUBECONFIG is what dev printed.\n" +
    "Use kubectl port-forward for an operator in a cluster. FILE is the file of the\n" +
    "operator, from which the port of its probes is taken.",
  flags: { ...EXPORT_FLAG, ...URL_FLAG },
  async run({ flags, operands, terminal }) {
    const object = operands.at(-1) ?? "";
    try {
      parseKey(object);
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
    const file = operands.length > 1 ? operands[0] : undefined;
    const histories = textOf(flags, "url") === undefined &&
        await askDeveloped(object) ||
      await askProbes(
        await probesUrl("why", flags, file),
        object,
      ) as readonly ObjectHistory[];
    if (histories.length === 0) throw unknownObject(object);
    for (const history of histories) terminal.out(historyText(history));
    return 0;
  },
};

/**
 * Runs of an object in the operators of `coracle dev` for the current
 * kubeconfig; undefined without such operators.
 */
async function askDeveloped(
  object: string,
): Promise<readonly ObjectHistory[] | undefined> {
  const link = linkFileOf(process.env["KUBECONFIG"] ?? "");
  if (!existsSync(link)) return undefined;
  const { linkedOperators } = await import("./window/operator_link.ts");
  const { histories } = await linkedOperators(link).object(object);
  return histories as readonly ObjectHistory[];
}

/**
 * URL of an operator's probes: the value of `--url`, else the address in its
 * file, else the default.
 *
 * @throws {UsageError} If it is not a URL, or the operator of the file has no
 * such probes.
 */
export async function probesUrl(
  command: string,
  flags: FlagValues,
  file: string | undefined,
): Promise<string> {
  const url = textOf(flags, "url") ??
    (file === undefined
      ? DEFAULT_URL
      : await urlOf(file, textOf(flags, "export")));
  if (/^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url;
  throw new UsageError(
    `Cannot run ${command}: --url must be a URL such as ${DEFAULT_URL}: received "${url}"`,
  );
}

/** URL of the probes of the operator of a file. */
async function urlOf(file: string, name: string | undefined): Promise<string> {
  const found = await describeFile(file, { export: name, operators: true });
  const probes = found.operators.map(({ settings }) => settings.probes)
    .find((options) => options?.debug === true && options.port !== 0);
  if (probes !== undefined) return `http://127.0.0.1:${probes.port}`;
  throw new UsageError(
    `Cannot ask the operator of ${file}: it must be created with ${PROBES}; write --url URL if the port is another`,
  );
}

/**
 * Asks the probes of an operator for its state, or for the runs of an object.
 *
 * @throws {UsageError} If they do not answer with it.
 */
export async function askProbes(
  url: string,
  object?: string,
): Promise<unknown> {
  const isState = object === undefined;
  const target = new URL(url);
  // The URL may have a path, as below that of kubectl proxy.
  target.pathname = `${target.pathname.replace(/\/+$/, "")}/debug/${
    isState ? "state" : "why"
  }`;
  if (!isState) target.searchParams.set("object", object);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(target, { signal }).catch((error) => {
    throw new UsageError(
      `Cannot ask the operator at ${url}: it must be running and created with ${PROBES}, or run by coracle dev whose KUBECONFIG is set: ${
        reason(error)
      }`,
    );
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (isState ? isJsonObject(answer) : Array.isArray(answer)) return answer;
  throw new UsageError(
    `Cannot ask the operator at ${url}: it must be created with ${PROBES}: received status ${response.status} and no ${
      isState ? "state" : "runs"
    }`,
  );
}

function unknownObject(object: string): UsageError {
  return new UsageError(
    `Cannot show the runs of ${object}: no controller of the operator knows it${
      object.includes("/")
        ? ": it must exist, be of a kind that one reconciles, and match its selectors and namespaces"
        : `; write NAMESPACE/NAME for an object of a namespaced kind, such as default/${object}`
    }`,
  );
}

/** Reason of a failed request; runtimes put it in the cause. */
function reason(error: unknown): string {
  const { message = String(error), cause } = error as Error;
  if (!(cause instanceof Error)) return message;
  const { code } = cause as { readonly code?: string };
  return cause.message || code || message;
}

/** Runs of an object, each on some lines. */
export function historyText(history: ObjectHistory): string {
  const { controller, object, known, attempt, exhausted } = history;
  const { runningFor, aborted, scheduled } = history;
  const notes = [
    ...(known ? [] : ["deleted"]),
    ...(runningFor === undefined ? [] : [`running for ${seconds(runningFor)}`]),
    ...(aborted === undefined
      ? []
      : [`aborted ${seconds(aborted.ago)} ago because of ${aborted.because}`]),
    ...(exhausted
      ? ["retries exhausted"]
      : attempt > 0
      ? [`retry ${attempt}`]
      : []),
    ...(scheduled === undefined ? [] : [`scheduled at ${scheduled}`]),
  ];
  const head = `${controller} ${object}${
    notes.length > 0 ? ` (${notes.join(", ")})` : ""
  }`;
  return linesText([head]) + history.runs.map(runText).join("");
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

function runText(run: RecordedRun): string {
  const { at, step, cause, outcome, duration, waited, writes } = run;
  const lines: readonly string[] = [
    `  ${at}  ${step}: ${outcome} in ${Math.round(duration)} ms after waiting ${
      Math.round(waited)
    } ms`,
    `    because  ${cause}${run.attempt > 0 ? `, retry ${run.attempt}` : ""}`,
    ...writes.map((write) => `    wrote    ${write}`),
    ...(step === "nothing"
      ? ["    waits    for finalizers of others, as it is being deleted"]
      : []),
    ...(run.workflow === undefined ? [] : [`    workflow ${run.workflow}`]),
    ...(run.error === undefined ? [] : [`    failed   ${run.error}`]),
    ...(run.next === undefined ? [] : [`    next     ${run.next}`]),
  ];
  return linesText(lines);
}

/** Lines of text; a line break in an object or error does not split one. */
function linesText(lines: readonly string[]): string {
  return lines.map((line) => `${printableLine(line)}\n`).join("");
}
