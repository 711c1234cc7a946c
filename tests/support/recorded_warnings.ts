import type { Logger } from "@coracle/operator/client";
import { jsonLogger } from "../../core/logger.ts";

/** Logger that records its warnings and errors as lines of JSON. */
export function recordedWarnings(): {
  readonly lines: readonly string[];
  readonly logger: Logger;
} {
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  return { lines, logger: jsonLogger({ level: "warn", write }) };
}
