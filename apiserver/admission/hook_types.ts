import type { UntypedObject } from "../../core/api/object.ts";
import type {
  MutatingAdmissionPolicySpec,
  MutatingWebhook,
  NamedRuleWithOperations,
  ValidatingAdmissionPolicyBindingSpec,
  ValidatingAdmissionPolicySpec,
  ValidatingWebhook,
} from "../../core/kinds/admissionregistration_v1.ts";

/** Rule of a webhook or policy. */
export type Rule = NamedRuleWithOperations;

/** Binding of a policy. */
export interface PolicyBinding extends UntypedObject {
  readonly spec: Partial<ValidatingAdmissionPolicyBindingSpec>;
}

/** Spec of validating and mutating policies. */
export type PolicySpec =
  & ValidatingAdmissionPolicySpec
  & MutatingAdmissionPolicySpec;

/** Policy with its bindings. */
export interface PolicyHook extends UntypedObject {
  readonly spec: PolicySpec;
  readonly bindings: readonly PolicyBinding[];
}

/** Webhook of a configuration. */
export interface WebhookHook
  extends ValidatingWebhook, Pick<MutatingWebhook, "reinvocationPolicy"> {
  /** Name of the configuration. */
  readonly configuration: string;
  readonly mutating: boolean;
}
