/**
 * Level, form and sampling of the log: from the options of the operator, from a
 * directory such as a mounted ConfigMap, which is read again, and by a signal.
 *
 * @module
 */
import { join } from "node:path";
import type { OptionTable, Settings } from "../api/options.ts";
import type { Clock, Timer } from "../clock.ts";
import { hostProcess } from "../config/host_process.ts";
import { fileFault, readLimited } from "../config/limited_file.ts";
import {
  LEVELS,
  type Logger,
  type LogLevel,
  type LogSettings,
  logSettingsOf,
} from "../logger.ts";

/** Options of the log, the option `log` of an operator. */
export interface LogOptions {
  readonly level?: LogLevel | undefined;
  readonly format?: "json" | "text" | undefined;
  readonly sampling?: number | false | undefined;
  readonly directory?: string | undefined;
}

const FORMATS = ["json", "text"] as const;

export const LOG_OPTIONS: OptionTable<
  LogOptions,
  "level" | "directory" | "format"
> = {
  level: [...LEVELS, undefined],
  format: [...FORMATS, undefined],
  sampling: { type: "positive", default: Infinity, off: Infinity },
  directory: "name?",
};

/** Options of the log with defaults. */
export type LogOptionSettings = Settings<
  LogOptions,
  "level" | "directory" | "format"
>;

/** Interval at which the directory is read, in milliseconds. */
const READ_INTERVAL_MS = 5_000;
/** Maximum size of a file of the directory, in bytes. */
const MAX_FILE_BYTES = 1_024;

/**
 * Signal that switches to the level `debug` and back. The other signal for programs
 * starts the inspector on Node and Bun.
 */
const SIGNAL = "SIGUSR2";

/** What {@linkcode LogConfiguration} depends on. */
interface LogConfigurationDeps {
  readonly settings: LogOptionSettings;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Configuration of a logger of `jsonLogger`; others have their own. */
export class LogConfiguration {
  readonly #deps: LogConfigurationDeps;
  readonly #lines: LogSettings | undefined;
  /** Settings without those of the directory and the signal. */
  readonly #base: LogSettings;
  #files: Partial<LogSettings> = {};
  #isDebugged = false;
  #follows = false;
  /** Fault that was logged last. */
  #fault: string | undefined;
  #timer: Timer | undefined;

  /** Applies the options. */
  constructor(deps: LogConfigurationDeps) {
    const { level, format, sampling } = deps.settings;
    const lines = this.#lines = logSettingsOf(deps.logger);
    this.#deps = deps;
    this.#base = {
      level: level ?? lines?.level ?? "info",
      format: format ?? lines?.format ?? "json",
      sampling,
    };
    if (lines !== undefined) Object.assign(lines, this.#base);
    else if (level !== undefined || format !== undefined) {
      deps.logger.warn(
        "The option log has no effect: the logger is not one of jsonLogger()",
      );
    }
  }

  /** Reads the directory, and follows it until {@linkcode stop}. */
  async start(): Promise<void> {
    const { directory } = this.#deps.settings;
    if (directory === undefined || this.#lines === undefined) return;
    this.#follows = true;
    await this.#follow(directory);
  }

  /** Ends {@linkcode start}. */
  stop(): void {
    this.#follows = false;
    this.#timer?.cancel();
  }

  async #follow(directory: string): Promise<void> {
    await this.#read(directory);
    if (!this.#follows) return;
    this.#timer = this.#deps.clock.setTimer(
      () => void this.#follow(directory),
      READ_INTERVAL_MS,
    );
  }

  /**
   * Listens for the signal that switches to `debug` and back; Windows has none.
   *
   * @returns Function that removes the listener.
   */
  onSignal(): () => void {
    if (this.#lines === undefined || hostProcess.platform === "win32") {
      return () => {};
    }
    const toggle = () => {
      this.#isDebugged = !this.#isDebugged;
      this.#apply(SIGNAL);
    };
    hostProcess.on(SIGNAL, toggle);
    return () => hostProcess.off(SIGNAL, toggle);
  }

  async #read(directory: string): Promise<void> {
    try {
      const [level, format, sampling] = await Promise.all(
        ["level", "format", "sampling"].map((name) => valueOf(directory, name)),
      );
      this.#files = {
        ...level && { level: oneOf(LEVELS, level, join(directory, "level")) },
        ...format &&
          { format: oneOf(FORMATS, format, join(directory, "format")) },
        ...sampling && {
          sampling: limitOf(sampling, join(directory, "sampling")),
        },
      };
      this.#fault = undefined;
      this.#apply(directory);
    } catch (error) {
      const text = String(error);
      if (text === this.#fault) return;
      this.#fault = text;
      // An error, as it is about what is written: no level leaves it out.
      this.#deps.logger.error("The settings of the log stay as they are", {
        error,
      });
    }
  }

  #apply(because: string): void {
    const lines = this.#lines as LogSettings;
    const next = {
      ...this.#base,
      ...this.#files,
      ...this.#isDebugged && { level: "debug" as const },
    };
    const { level, format, sampling } = next;
    const isSame = level === lines.level && format === lines.format &&
      sampling === lines.sampling;
    if (isSame) return;
    const say = () =>
      this.#deps.logger.info("The settings of the log have changed", {
        logLevel: level,
        format,
        sampling: sampling === Infinity ? false : sampling,
        because,
      });
    // A line that the new level leaves out is written before.
    const isQuieter = LEVELS.indexOf(level) > LEVELS.indexOf("info");
    if (isQuieter) say();
    Object.assign(lines, next);
    if (!isQuieter) say();
  }
}

/** Content of a file of the directory; undefined if none exists. */
async function valueOf(
  directory: string,
  name: string,
): Promise<string | undefined> {
  const path = join(directory, name);
  try {
    const text = await readLimited(path, MAX_FILE_BYTES);
    if (text !== undefined) return text.trim();
  } catch (error) {
    const fault = fileFault(error);
    if (fault === "ENOENT" || fault === "ENOTDIR") return undefined;
    throw new Error(
      `Cannot read the settings of the log: ${path} must be a readable file: received ${fault}`,
    );
  }
  throw new RangeError(
    `Cannot read the settings of the log: ${path} must have at most ${MAX_FILE_BYTES} bytes: received more`,
  );
}

function oneOf<T extends string>(
  values: readonly T[],
  text: string,
  path: string,
): T {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  throw new RangeError(
    `Cannot use the settings of the log: ${path} must be one of ${
      values.join(", ")
    }: received ${JSON.stringify(text)}`,
  );
}

/** Limit of a sampler; `false` for no limit. */
function limitOf(text: string, path: string): number {
  if (text === "false") return Infinity;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new RangeError(
    `Cannot use the settings of the log: ${path} must be false, or a number of lines in a second: received ${
      JSON.stringify(text)
    }`,
  );
}
