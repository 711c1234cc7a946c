import type { Store } from "../storage/store.ts";
import type { UntypedObject } from "@coracle/operator/client";
import type {
  MutatingAdmissionPolicySpec,
  MutatingWebhook,
  NamedRuleWithOperations,
  ValidatingAdmissionPolicyBindingSpec,
  ValidatingAdmissionPolicySpec,
  ValidatingWebhook,
} from "@coracle/operator/kinds";

/** API group of webhook configurations and policies. */
export const ADMISSION_GROUP = "admissionregistration.k8s.io";

/** Webhooks and policies of a cluster, in the order in which they are called. */
export interface Hooks {
  readonly mutating: readonly WebhookHook[];
  readonly validating: readonly WebhookHook[];
  readonly mutatingPolicies: readonly PolicyHook[];
  readonly validatingPolicies: readonly PolicyHook[];
}

/** Empty set of webhooks and policies. */
export const NO_HOOKS: Hooks = {
  mutating: [],
  validating: [],
  mutatingPolicies: [],
  validatingPolicies: [],
};

/** Webhooks and policies of the store; read again after a change. */
export class AdmissionHooks {
  readonly #store: Store;
  #hooks: Hooks | undefined;

  constructor(store: Store) {
    this.#store = store;
    store.listen((_change, { resource }) => {
      if (resource.group === ADMISSION_GROUP) this.#hooks = undefined;
    });
  }

  /** Current webhooks and policies; `NO_HOOKS` without configurations. */
  get current(): Hooks {
    return this.#hooks ??= this.#read();
  }

  #read(): Hooks {
    const all = (plural: string) =>
      [...this.#store.collection({ group: ADMISSION_GROUP, plural }).values()]
        .map((stored) => stored.parse())
        .sort((a, b) => a.metadata.name < b.metadata.name ? -1 : 1);
    const webhooks = (plural: string) =>
      all(plural).flatMap(({ metadata, webhooks = [] }) =>
        (webhooks as WebhookHook[]).map((webhook) => ({
          ...webhook,
          configuration: metadata.name,
          mutating: plural.startsWith("mutating"),
        }))
      );
    const policies = (plural: string) => {
      const bindings = all(`${plural}policybindings`) as unknown as Writable<
        PolicyHook["bindings"]
      >;
      if (bindings.length === 0) return [];
      return all(`${plural}policies`).flatMap((policy) => {
        const own = bindings.filter(({ spec }) =>
          spec.policyName === policy.metadata.name
        );
        return own.length === 0
          ? []
          : [{ ...policy, bindings: own } as unknown as PolicyHook];
      });
    };
    const hooks = {
      mutating: webhooks("mutatingwebhookconfigurations"),
      validating: webhooks("validatingwebhookconfigurations"),
      mutatingPolicies: policies("mutatingadmission"),
      validatingPolicies: policies("validatingadmission"),
    };
    return Object.values(hooks).every(({ length }) => length === 0)
      ? NO_HOOKS
      : hooks;
  }
}

type Writable<T> = T extends readonly (infer Item)[] ? Item[] : never;

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
