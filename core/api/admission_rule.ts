/** A rule for objects of a kind, and where it is enforced. */
export interface AdmissionRule {
  /** Kind with its version, such as `batch.example.org/v1 CronJob`. */
  readonly kind: string;
  /** What the rule demands or fills in, such as `spec.size: minimum 1`. */
  readonly rule: string;
  /**
   * Where it is enforced: by the schema of the definition, by a CEL rule of the
   * definition, by a policy in the API server, by a webhook of the operator, or
   * nowhere.
   */
  readonly place: "schema" | "CEL rule" | "policy" | "webhook" | "nowhere";
  /** Why it is enforced there, and what follows from it. */
  readonly why: string;
}
