/**
 * What is wrong with a connection or with what came over it, where no server
 * said so.
 *
 * - `"silent"`: nothing came for too long.
 * - `"overdue"`: the server did not end a watch when its time was over.
 * - `"broken"`: an answer ended before it was complete.
 * - `"garbage"`: what came is not what was asked for.
 * - `"backwards"`: the server tells older states than it did before.
 * - `"no-end"`: the initial events of a watch do not end; the server probably
 *   ignores that they were asked for.
 */
export type ConnectionFaultReason =
  | "silent"
  | "overdue"
  | "broken"
  | "garbage"
  | "backwards"
  | "no-end";

/** A fault that the reflector found by itself. */
export class ConnectionFault extends Error {
  readonly reason: ConnectionFaultReason;

  constructor(
    reason: ConnectionFaultReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "ConnectionFault";
    this.reason = reason;
  }
}
