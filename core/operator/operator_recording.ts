import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import { loadModule } from "../clock.ts";
import type { RunRecorder } from "../controller/record/run_recorder.ts";
import type { OperatorSettings } from "./operator_options.ts";

/**
 * Opens the recording of runs; undefined if none is wanted, or in a simulation,
 * whose runs are not those of the operator.
 */
export async function openRecording(
  { record, clock, logger: log, metrics }: Pick<
    OperatorSettings,
    "clock" | "logger" | "metrics" | "record"
  >,
  client: Client,
): Promise<RunRecorder | undefined> {
  if (record === undefined || host().ended !== undefined) return undefined;
  const { RunRecorder } = await loadModule(
    import("../controller/record/run_recorder.ts"),
  );
  return new RunRecorder({ settings: record, clock, log, metrics }, client);
}
