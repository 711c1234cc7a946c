import type { Command } from "./command.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { aborted, portOf } from "./serving.ts";
import { askProbes, PROBES, probesUrl, URL_FLAG } from "./why_command.ts";

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
  flags: {
    ...EXPORT_FLAG,
    ...URL_FLAG,
    "port N": "port of the page; by default any free port",
  },
  async run({ flags, operands, terminal }) {
    const url = await probesUrl("ui", flags, operands[0]);
    const port = portOf(flags);
    await askProbes(url);
    const interrupts = terminal.interrupts();
    const { serveWindow } = await import("./window/window_server.ts");
    const window = await serveWindow({
      port,
      source: {
        state: async () => [await askProbes(url)],
        object: async (key) => ({
          histories: await askProbes(url, key) as readonly unknown[],
        }),
      },
    });
    terminal.out(`Open ${window.url} in a browser. Ctrl-C ends it.\n`);
    await aborted(interrupts);
    await window.close();
    return 0;
  },
};
