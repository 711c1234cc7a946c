import { type Command, type FlagValues, UsageError } from "./command.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { aborted, portOf, textOf } from "./serving.ts";
import { askProbes, PROBES, probesUrl, URL_FLAG } from "./why_command.ts";
import type { WindowSource } from "./window/window_server.ts";

export const uiCommand: Command = {
  name: "ui",
  operands: "[FILE]",
  count: [0, 1],
  summary: "show a running operator, or recorded runs, in the browser",
  description:
    "Serves a page on this machine that shows a running operator: its controllers,\n" +
    "objects, runs, workflows and memory. It changes nothing. The operator must be\n" +
    `created with ${PROBES}. Use kubectl\n` +
    "port-forward for an operator in a cluster. FILE is the file of the operator,\n" +
    "from which the port of its probes is taken. With --recording it shows the runs\n" +
    "of a recording instead. Ends with Ctrl-C.",
  flags: {
    ...EXPORT_FLAG,
    ...URL_FLAG,
    "recording FILE": "recording of runs to show, as coracle replay reads it",
    "port N": "port of the page; by default any free port",
  },
  async run({ flags, operands, terminal }) {
    const port = portOf(flags);
    const source = await sourceOf(flags, operands[0]);
    const interrupts = terminal.interrupts();
    const { serveWindow } = await import("./window/window_server.ts");
    const window = await serveWindow({ port, source });
    terminal.out(`Open ${window.url} in a browser. Ctrl-C ends it.\n`);
    await aborted(interrupts);
    await window.close();
    return 0;
  },
};

async function sourceOf(
  flags: FlagValues,
  file: string | undefined,
): Promise<WindowSource> {
  const recording = textOf(flags, "recording");
  if (recording === undefined) {
    const url = await probesUrl("ui", flags, file);
    await askProbes(url);
    return {
      state: async () => [await askProbes(url)],
      object: async (key) => ({
        histories: await askProbes(url, key) as readonly unknown[],
      }),
    };
  }
  const given = file ?? textOf(flags, "url") ?? textOf(flags, "export");
  if (given !== undefined) {
    throw new UsageError(
      `Cannot use --recording with a running operator: received ${given}`,
    );
  }
  const { readRecording } = await import("../testing/replay/read_recording.ts");
  const { recordedSource } = await import("./recorded_histories.ts");
  return recordedSource(await readRecording(recording));
}
