import { isOutcome } from "../conditions/outcome.ts";
import type { RolloutError } from "./rollout.ts";

/** How many errors of a chain are told. */
const LONGEST_CHAIN = 3;
/** How many characters a message may have. */
const LONGEST_MESSAGE = 2_048;

/**
 * An error as a status tells it: its reason, and the messages of it and its
 * causes, joined by arrows. The limits are those of the Flink operator.
 *
 * @param error What was thrown.
 */
export function rolloutError(error: unknown): RolloutError {
  const messages: string[] = [];
  let current: unknown = error;
  while (current !== undefined && messages.length < LONGEST_CHAIN) {
    messages.push(current instanceof Error ? current.message : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  const message = messages.join(" -> ");
  return {
    reason: isOutcome(error) ? error.reason : "Error",
    message: message.length > LONGEST_MESSAGE
      ? `${message.slice(0, LONGEST_MESSAGE - 3)}...`
      : message,
  };
}
