import type { Recording } from "../testing/replay/read_recording.ts";
import type { Command, FlagValues } from "./command.ts";
import { UsageError } from "./command.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import { progressLine } from "./plan_cluster.ts";
import { recordedHistories } from "./recorded_histories.ts";
import { replayText } from "./replay_text.ts";
import { requireOutput, textOf, writeOutput } from "./serving.ts";
import { historyText } from "./why_command.ts";

export const replayCommand: Command = {
  name: "replay",
  operands: "RECORDING [FILE]",
  count: [1, 2],
  summary: "repeat the recorded runs of an operator, and show what differs",
  description:
    "Repeats the runs of a recording with the operator of FILE, on a virtual clock\n" +
    "and without a cluster: each run reads what it read then, and gets the answers\n" +
    "of then. Shows the first request that differs, because the operator is another\n" +
    "one or has a state that no object has. Without FILE it shows the recorded runs.\n" +
    'Operators record with record: { path: "/var/lib/operator/runs" }. Several parts\n' +
    "of a sink may be put together with cat. Exit code 0: all requests are equal,\n" +
    "2: runs differ, 1: the replay failed, or no run could be repeated to its end.",
  flags: {
    "object NAMESPACE/NAME": "only the runs of this object",
    "first": "end with the first run that differs",
    "json FILE": "write the result as JSON; - for standard output",
    ...EXPORT_FLAG,
  },
  usageCode: 1,
  async run({ flags, operands: [recorded = "", file], terminal }) {
    const { readRecording } = await import(
      "../testing/replay/read_recording.ts"
    );
    const object = textOf(flags, "object");
    if (file === undefined) {
      const given = ["first", "json", "export"].find((name) =>
        flags[name] !== undefined
      );
      if (given !== undefined) {
        throw new UsageError(
          `Cannot use --${given} without the file of an operator: nothing is repeated`,
        );
      }
      terminal.out(recordedText(await readRecording(recorded), object));
      return 0;
    }
    const path = await findOperatorFile(file);
    await requireOutput(textOf(flags, "json") ?? "-");
    const recording = await readRecording(recorded);
    const { replayOperator } = await import(
      "../testing/replay/replay_operator.ts"
    );
    const progress = progressLine(terminal);
    try {
      const report = await replayOperator({
        file: path,
        export: textOf(flags, "export"),
        recording,
        object,
        untilFirst: flags["first"] === true,
        onProgress: (done, all) =>
          progress.show(`${done} of ${all} runs repeated`),
      });
      progress.end();
      const json = () => `${JSON.stringify(report, null, 2)}\n`;
      await write(flags, terminal.out, { json, text: replayText(report) });
      if (report.differing > 0) return 2;
      const failed = Object.values(report.unrepeatable)
        .reduce((sum, count) => sum + count, 0);
      return failed === report.runs ? 1 : 0;
    } finally {
      progress.end();
    }
  },
};

async function write(
  flags: FlagValues,
  out: (text: string) => void,
  { json, text }: { readonly json: () => string; readonly text: string },
): Promise<void> {
  const target = textOf(flags, "json");
  if (target === "-") return out(json());
  if (target !== undefined) await writeOutput(target, json());
  out(text);
}

/** Runs of a recording, as `coracle why` shows them. */
function recordedText(
  recording: Recording,
  object: string | undefined,
): string {
  const histories = recordedHistories(recording, object);
  if (histories.length === 0) {
    throw new UsageError(
      `Cannot show the runs of ${object}: the recording has none of them`,
    );
  }
  return histories.map(historyText).join("");
}
