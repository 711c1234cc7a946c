import { parseKey } from "../core/api/object_key.ts";
import type { ObjectHistory } from "../core/controller/controller.ts";
import type { RecordedRun } from "../core/controller/run_history.ts";
import { type Command, UsageError } from "./command.ts";

const DEFAULT_URL = "http://127.0.0.1:8080";
/** What an operator that can be asked is made with. */
const PROBES = "probes: { port: 8080, debug: true }";
/** How long an operator may take to answer, in milliseconds. */
const TIMEOUT = 10_000;

/** `coracle why`: the last runs of an object, from a running operator. */
export const whyCommand: Command = {
  name: "why",
  operands: "NAMESPACE/NAME",
  count: [1, 1],
  summary: "tell why an object was reconciled, from a running operator",
  description:
    "Asks an operator for the last runs of an object: why they happened, what they\n" +
    "wrote and how they ended. The operator must serve probes with debug: true, such\n" +
    `as new Operator({ ${PROBES} }); kubectl port-forward\n` +
    "reaches one in a cluster.",
  flags: [{
    name: "url",
    value: "URL",
    help: `where its probes are (${DEFAULT_URL})`,
  }],
  async run({ flags, operands, terminal }) {
    const [object = ""] = operands;
    parseKey(object);
    const url = String(flags["url"] ?? DEFAULT_URL);
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
      throw new UsageError(
        `Cannot run why: --url must be a URL such as ${DEFAULT_URL}: received "${url}"`,
        "why",
      );
    }
    for (const history of await ask(url, object)) {
      terminal.out(historyText(history));
    }
    return 0;
  },
};

async function ask(
  url: string,
  object: string,
): Promise<readonly ObjectHistory[]> {
  const target = new URL("/debug/why", url);
  target.searchParams.set("object", object);
  let response: Response;
  try {
    response = await fetch(target, { signal: AbortSignal.timeout(TIMEOUT) });
  } catch (error) {
    throw new UsageError(
      `Cannot ask the operator at ${url}: it must be running, and have been made with ${PROBES}: received ${
        reason(error)
      }`,
      "why",
    );
  }
  const histories: unknown = await response.json().catch(() => undefined);
  if (!Array.isArray(histories)) {
    throw new UsageError(
      `Cannot ask the operator at ${url}: it must have been made with ${PROBES}: received status ${response.status} and no runs`,
      "why",
    );
  }
  if (histories.length > 0) return histories;
  throw new UsageError(
    `Cannot tell why ${object} was reconciled: no controller of the operator knows it: received no history`,
    "why",
  );
}

/** Why nothing answered; runtimes hide the reason in the cause. */
function reason(error: unknown): string {
  const { message = String(error), cause } = error as Error;
  if (!(cause instanceof Error)) return message;
  const { code } = cause as { readonly code?: string };
  return cause.message || code || message;
}

function historyText(history: ObjectHistory): string {
  const { controller, object, known, running, aborted, attempt, exhausted } =
    history;
  const notes = [
    ...(known ? [] : ["gone"]),
    ...(running ? ["running now"] : []),
    ...(aborted === undefined ? [] : [
      `asked to end ${
        Math.round(aborted.ago / 1_000)
      } s ago because of ${aborted.because}`,
    ]),
    ...(exhausted
      ? ["no retry is left"]
      : attempt > 0
      ? [`retry ${attempt}`]
      : []),
  ];
  const head = `${controller} ${object}${
    notes.length > 0 ? ` (${notes.join(", ")})` : ""
  }\n`;
  return head + history.runs.map(runText).join("");
}

function runText(run: RecordedRun): string {
  const { at, step, cause, outcome, duration, waited, writes } = run;
  const lines = [
    `  ${at}  ${step}: ${outcome} in ${Math.round(duration)} ms after waiting ${
      Math.round(waited)
    } ms`,
    `    because  ${cause}${run.attempt > 0 ? `, retry ${run.attempt}` : ""}`,
    ...writes.map((write) => `    wrote    ${write}`),
    ...(run.workflow === undefined ? [] : [`    workflow ${run.workflow}`]),
    ...(run.error === undefined ? [] : [`    failed   ${run.error}`]),
    ...(run.next === undefined ? [] : [`    next     ${run.next}`]),
  ];
  return `${lines.join("\n")}\n`;
}
