/**
 * An amount such as `100m`, `1.5` or `2Gi`, as text: the form in which a server
 * returns it, even if it was given a number.
 */
export type Quantity = string;

/** A number, or a text such as a port's name or `25%`. */
export type IntOrString = number | string;

/** A moment to the second, as in `2024-01-02T03:04:05Z`. */
export type Time = string;

/** A moment to the microsecond, as in `2024-01-02T03:04:05.000000Z`. */
export type MicroTime = string;

/** Fields that the conditions of most kinds have. */
export interface ConditionFields {
  /** Time at which `status` changed last. */
  lastTransitionTime?: Time | undefined;
  message?: string | undefined;
  reason?: string | undefined;
  status: string;
  type: string;
}
