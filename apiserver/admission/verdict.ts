/** Outcome of webhooks or policies. */
export interface Verdict {
  readonly warnings: readonly string[];
  /** Annotations of the audit event. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Warnings and audit annotations that webhooks and policies collect. */
export class VerdictBuilder implements Verdict {
  readonly warnings: string[] = [];
  readonly annotations: Record<string, string> = {};
}
