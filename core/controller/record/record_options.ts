import { type Duration, milliseconds } from "../../api/duration.ts";
import { parseByteSize } from "../../api/byte_size.ts";
import type { OptionTable, Settings } from "../../api/options.ts";

/**
 * Options of the recording of runs: what they read and wrote, with times and causes,
 * which `coracle replay` repeats.
 */
export interface RecordOptions {
  /**
   * File of the recording, which only its owner may read. It never grows beyond
   * `size`: the oldest part is overwritten. Each replica needs a file of its own.
   */
  readonly path?: string | undefined;
  /**
   * Function that gets the recording in place of a file, in parts of about a minute.
   * Parts of a time, put one after the other, are a recording.
   */
  readonly sink?:
    | ((part: Uint8Array) => void | Promise<void>)
    | undefined;
  /**
   * Primaries whose runs are kept, by key: `namespace/name`, where `*` stands for any
   * text, as in `shop/*`.
   *
   * @default {["*"]}
   */
  readonly objects?: readonly string[] | undefined;
  /**
   * Time that the file goes back at most, if its size suffices.
   *
   * @default {"1h"}
   */
  readonly last?: Duration | undefined;
  /**
   * Maximum size of the file in bytes, or text such as `"64MiB"`; at least 8 MiB.
   *
   * @default {"64MiB"}
   */
  readonly size?: number | string | undefined;
}

/** Types and defaults of the options of a recording. */
export const RECORD_OPTIONS: OptionTable<RecordOptions, "path" | "sink"> = {
  path: "name?",
  sink: "function?",
  objects: { type: "strings", default: ["*"] },
  last: { type: "duration", default: "1h", check: checkLast },
  size: { type: "bytes", default: "64MiB", check: checkSize },
};

/** Options of a recording with every default filled in. */
export type RecordSettings =
  & Omit<Settings<RecordOptions, "path" | "sink">, "size">
  & { readonly size: number };

const MIN_LAST_MS = 60_000;
const MIN_SIZE = 8 * 1024 * 1024;

function checkLast(last: Duration, subject: string): void {
  if (milliseconds(last) >= MIN_LAST_MS) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "last" must be at least 1m: received ${last}`,
  );
}

function checkSize(size: number | string, subject: string): void {
  if (parseByteSize(size) >= MIN_SIZE) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "size" must be at least 8MiB: received ${size}`,
  );
}

/** Checks that a recording has one place. */
export function checkRecordPlace(
  { path, sink }: RecordOptions,
  subject: string,
): void {
  if ((path === undefined) !== (sink === undefined)) return;
  throw new TypeError(
    `Cannot read the options of ${subject}: "record" must have either "path" or "sink"`,
  );
}
