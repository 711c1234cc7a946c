import { type Command, UsageError } from "./command.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { aborted, portOf } from "./serving.ts";
import { PROBES, probesUrl, reason, URL_FLAG } from "./why_command.ts";

/** Time limit for an answer of the operator, in milliseconds. */
const TIMEOUT_MS = 5_000;

export const uiCommand: Command = {
  name: "ui",
  operands: "[FILE]",
  count: [0, 1],
  summary: "show a running operator in the browser",
  description:
    "Serves a page on this machine that shows a running operator: its controllers,\n" +
    "objects, runs, workflows and memory. It changes nothing. The operator must be\n" +
    `created with ${PROBES}. Use kubectl\n` +
    "port-forward for an operator in a cluster. FILE is the file of the operator,\n" +
    "from which the port of its probes is taken. Ends with Ctrl-C.",
  flags: [EXPORT_FLAG, URL_FLAG, {
    name: "port",
    value: "N",
    help: "port of the page; by default any free port",
  }],
  async run({ flags, operands, terminal }) {
    const url = await probesUrl("ui", flags, operands[0]);
    const port = portOf(flags);
    await ask(url);
    const interrupts = terminal.interrupts();
    const { serveWindow } = await import("./window/window_server.ts");
    const window = await serveWindow({
      port,
      source: {
        state: async () => [await ask(url)],
        object: async (key) => ({
          histories: await ask(url, key) as readonly unknown[],
        }),
      },
    });
    terminal.out(`Open ${window.url} in a browser. Ctrl-C ends it.\n`);
    await aborted(interrupts);
    await window.close();
    return 0;
  },
};

/** Reads the state of the operator, or of one object, from its probes. */
async function ask(url: string, object?: string): Promise<unknown> {
  const target = new URL(
    object === undefined ? "/debug/state" : "/debug/why",
    url,
  );
  if (object !== undefined) target.searchParams.set("object", object);
  const refuse = (why: string) =>
    new UsageError(
      `Cannot show the operator at ${url}: it must be running and created with ${PROBES}: ${why}`,
    );
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(target, { signal }).catch((error) => {
    throw refuse(reason(error));
  });
  const answer = await response.json().catch(() => undefined);
  if (typeof answer === "object") return answer;
  throw refuse(`received status ${response.status} and no state`);
}
