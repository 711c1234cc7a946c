import type { LabelSelector } from "../../core/api/label_selector.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import type { MatchCondition, Rule } from "./webhook_hook.ts";

/** Requests that a policy or binding selects. */
export interface MatchResources {
  readonly resourceRules?: readonly Rule[];
  readonly excludeResourceRules?: readonly Rule[];
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
}

/** Binding of a policy. */
export interface PolicyBinding extends UntypedObject {
  readonly spec: {
    readonly policyName: string;
    readonly paramRef?: {
      readonly name?: string;
      readonly namespace?: string;
      readonly selector?: LabelSelector;
      readonly parameterNotFoundAction?: string;
    };
    readonly matchResources?: MatchResources;
    readonly validationActions?: readonly string[];
  };
}

/** Spec of validating and mutating policies. */
export interface PolicySpec {
  readonly paramKind?: { readonly apiVersion: string; readonly kind: string };
  readonly matchConstraints?: MatchResources;
  readonly matchConditions?: readonly MatchCondition[];
  readonly failurePolicy?: string;
  readonly variables?: readonly MatchCondition[];
  readonly validations?: readonly {
    readonly expression: string;
    readonly message?: string;
    readonly messageExpression?: string;
    readonly reason?: string;
  }[];
  readonly auditAnnotations?: readonly {
    readonly key: string;
    readonly valueExpression: string;
  }[];
  readonly mutations?: readonly {
    readonly patchType: string;
    readonly applyConfiguration?: { readonly expression: string };
    readonly jsonPatch?: { readonly expression: string };
  }[];
  readonly reinvocationPolicy?: string;
}

/** Policy with its bindings. */
export interface PolicyHook extends UntypedObject {
  readonly spec: PolicySpec;
  readonly bindings: readonly PolicyBinding[];
}
