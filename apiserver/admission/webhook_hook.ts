import type { LabelSelector } from "../../core/api/label_selector.ts";
import type { WebhookClientConfig } from "./webhook_caller.ts";

/** Rule of a webhook or policy. */
export interface Rule {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
  /** Names of objects, in rules of policies; empty for all. */
  readonly resourceNames?: readonly string[];
}

/** Condition in CEL under which a webhook or policy applies. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** Webhook of a configuration. */
export interface WebhookHook {
  readonly name: string;
  /** Name of the configuration. */
  readonly configuration: string;
  readonly mutating: boolean;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly Rule[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly matchConditions?: readonly MatchCondition[];
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly reinvocationPolicy?: string;
}
