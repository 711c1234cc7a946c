/** Outcome of webhooks or policies. */
export interface Verdict {
  readonly warnings: readonly string[];
  /** Annotations of the audit event. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Builder of a verdict: collects the warnings and audit annotations of webhooks and policies. */
export class VerdictBuilder implements Verdict {
  readonly warnings: string[] = [];
  readonly annotations: Record<string, string> = {};
}
