/** Status of an object, and its reason, in the terms of kstatus. */
export interface ObjectStatus {
  /** Status value. */
  readonly status:
    | "InProgress"
    | "Failed"
    | "Current"
    | "Terminating"
    | "NotFound"
    | "Unknown";
  /** Machine-readable reason; empty if the object is Current. */
  readonly reason: string;
  /** Human-readable message. */
  readonly message: string;
}

export function currentStatus(message: string): ObjectStatus {
  return { status: "Current", reason: "", message };
}

export function inProgressStatus(
  reason: string,
  message: string,
): ObjectStatus {
  return { status: "InProgress", reason, message };
}

export function failedStatus(reason: string, message: string): ObjectStatus {
  return { status: "Failed", reason, message };
}

/** Rule that computes the status of the objects of a kind. */
export type StatusRule = (
  object: unknown,
  context: {
    /** Current time in milliseconds since the Unix epoch. */
    readonly now: number;
  },
) => ObjectStatus;
