/** In which state an object is, in the words of kstatus. */
export type StatusValue =
  | "InProgress"
  | "Failed"
  | "Current"
  | "Terminating"
  | "NotFound"
  | "Unknown";

/** The state of one object, and why. */
export interface ObjectStatus {
  /** The state, as one word. */
  readonly status: StatusValue;
  /** Why, as one word; empty for objects that are Current. */
  readonly reason: string;
  /** Why, as a sentence for people. */
  readonly message: string;
}

/** The object has reached what it asks for. */
export function currentStatus(message: string): ObjectStatus {
  return { status: "Current", reason: "", message };
}

/** Somebody works on it. */
export function inProgressStatus(
  reason: string,
  message: string,
): ObjectStatus {
  return { status: "InProgress", reason, message };
}

/** Nobody will get it there without help. */
export function failedStatus(reason: string, message: string): ObjectStatus {
  return { status: "Failed", reason, message };
}

/** Gives the state of objects of one kind. */
export type StatusRule = (
  object: unknown,
  context: {
    /** The present, in milliseconds since the Unix epoch. */
    readonly now: number;
  },
) => ObjectStatus;
