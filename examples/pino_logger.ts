/**
 * Logger of an operator that writes with pino.
 *
 * @module
 */
import type { LogFields, Logger } from "@coracle/operator";
import type { Logger as Pino } from "pino";

/** Makes the logger of an operator: `new Operator({ logger: … })`. */
export function pinoLogger(pino: Pino): Logger {
  return {
    debug: (message, fields) => pino.debug(forPino(fields), message),
    info: (message, fields) => pino.info(forPino(fields), message),
    warn: (message, fields) => pino.warn(forPino(fields), message),
    error: (message, fields) => pino.error(forPino(fields), message),
    with: (fields) => pinoLogger(pino.child(forPino(fields))),
  };
}

/**
 * Fields as pino expects them: it has the error in `err`, and would write other
 * fields of an error, which may contain the data of a request.
 */
function forPino({ error, ...others }: LogFields = {}): object {
  if (!(error instanceof Error)) {
    return error === undefined ? others : { ...others, err: error };
  }
  const { name, message, stack } = error;
  return { ...others, err: { type: name, message, stack } };
}
