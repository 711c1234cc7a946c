/**
 * Rules that the API server enforces without a webhook, for what the rules of a
 * definition cannot see: built-in kinds, the user, the namespace, and parameters in
 * other objects.
 *
 * @module
 */
import {
  isResolved,
  isSubdomain,
  type Kind,
  type ResolvedKind,
} from "../api/kind.ts";
import { labelRequirements } from "../api/label_selector.ts";
import type { KubernetesObject } from "../api/object.ts";
import { checkOptions, type OptionRules, typeText } from "../api/options.ts";
import type {
  MatchResources,
  Mutation,
} from "../kinds/admissionregistration_v1.ts";
import type { LabelSelector } from "../kinds/meta_v1.ts";
import {
  checkRequestExpression,
  namedExpressions,
} from "./named_expressions.ts";

/** Operation on an object that a policy judges. */
export type PolicyOperation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** What validating and mutating policies have in common. */
export interface PolicyOptions {
  /** Name of the policy and of its binding, unique in the cluster. */
  readonly name: string;
  /**
   * Operations that it judges.
   *
   * @default {["CREATE", "UPDATE"]}
   */
  readonly operations?: readonly PolicyOperation[] | undefined;
  /**
   * Subresources that it judges in addition, such as `scale`.
   *
   * @default {[]}
   */
  readonly subresources?: readonly string[] | undefined;
  /**
   * What happens if an expression fails, or its parameters are missing.
   *
   * @default {"Fail"}
   */
  readonly failurePolicy?: "Fail" | "Ignore" | undefined;
  /** Conditions on the request in CEL, by name; without all of them it is left out. */
  readonly matchConditions?: Readonly<Record<string, string>> | undefined;
  /** Expressions by name, which the others use as `variables.name`. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** Label selector of the namespaces, such as `"team,env!=test"`. */
  readonly namespaceSelector?: string | undefined;
  /** Label selector of the objects. */
  readonly objectSelector?: string | undefined;
  /** Objects that the expressions read as `params`. */
  readonly params?: {
    /** Kind of the objects, which the API server must serve. */
    readonly kind: Kind;
    /** Name of the object; without it all that the selector matches. */
    readonly name?: string | undefined;
    /** Namespace of the object; by default that of the judged one. */
    readonly namespace?: string | undefined;
    /** Label selector of the objects. */
    readonly selector?: string | undefined;
    /**
     * Whether a request is denied for which there are none.
     *
     * @default {"Deny"}
     */
    readonly missing?: "Allow" | "Deny" | undefined;
  } | undefined;
}

/** Options of {@linkcode validatingPolicy}. */
export interface ValidatingPolicyOptions extends PolicyOptions {
  /** Expressions that must all be true. */
  readonly validations: readonly {
    /** CEL expression on `object`, `oldObject`, `request`, `params` and more. */
    readonly expression: string;
    /** Message for the user if it is false. */
    readonly message?: string | undefined;
    /** CEL expression that returns the message. */
    readonly messageExpression?: string | undefined;
    /** Reason of the denial; `Invalid` if absent. */
    readonly reason?:
      | "Unauthorized"
      | "Forbidden"
      | "Invalid"
      | "RequestEntityTooLarge"
      | undefined;
  }[];
  /**
   * What a violation causes. `["Warn"]` tries a policy out.
   *
   * @default {["Deny"]}
   */
  readonly actions?: readonly ("Deny" | "Warn" | "Audit")[] | undefined;
}

/** Options of {@linkcode mutatingPolicy}. */
export interface MutatingPolicyOptions extends PolicyOptions {
  /** Changes, in their order. */
  readonly mutations: readonly {
    /**
     * CEL expression that returns the fields to apply, such as
     * `Object{spec: Object.spec{replicas: 1}}`.
     */
    readonly apply?: string | undefined;
    /** CEL expression that returns a list of `JSONPatch{…}`. */
    readonly patch?: string | undefined;
  }[];
}

/**
 * Policy or binding, with the fields of its type in `@coracle/operator/kinds`, such
 * as `ValidatingAdmissionPolicy`.
 */
export interface PolicyObject extends KubernetesObject {
  /** What the policy demands, or where the binding puts it into force. */
  // deno-lint-ignore no-explicit-any
  readonly spec: any;
}

/**
 * A policy with its binding, for `operator.admit()`, or to be applied by others.
 *
 * @typeParam O The type of the objects.
 */
export interface AdmissionPolicy<
  O extends KubernetesObject = KubernetesObject,
> {
  /** Kind of the objects. */
  readonly kind: ResolvedKind<O>;
  /**
   * Kind of the objects that the expressions read as `params`; who applies the policy
   * must have the right to get them.
   */
  readonly params?: Kind | undefined;
  /** Version of Kubernetes from which the policy works without feature gates. */
  readonly since: string;
  /** Policy object. */
  readonly policy: PolicyObject;
  /** Binding, which puts the policy into force. */
  readonly binding: PolicyObject;
}

const PARAM_RULES: OptionRules<NonNullable<PolicyOptions["params"]>> = {
  kind: "object",
  name: "name?",
  namespace: "name?",
  selector: "string?",
  missing: ["Allow", "Deny", undefined],
};
const POLICY_RULES: OptionRules<PolicyOptions> = {
  name: "name",
  operations: "strings?",
  subresources: "strings?",
  failurePolicy: ["Fail", "Ignore", undefined],
  matchConditions: "object?",
  variables: "object?",
  namespaceSelector: "string?",
  objectSelector: "string?",
  params: { type: "object?", options: PARAM_RULES },
};
const VALIDATING_RULES: OptionRules<ValidatingPolicyOptions> = {
  ...POLICY_RULES,
  validations: {
    type: "array",
    options: {
      expression: "name",
      message: "string?",
      messageExpression: "string?",
      reason: [
        "Unauthorized",
        "Forbidden",
        "Invalid",
        "RequestEntityTooLarge",
        undefined,
      ],
    },
  },
  actions: "strings?",
};
const MUTATING_RULES: OptionRules<MutatingPolicyOptions> = {
  ...POLICY_RULES,
  mutations: {
    type: "array",
    options: { apply: "string?", patch: "string?" },
  },
};

/**
 * Returns a ValidatingAdmissionPolicy and its binding: rules in CEL for objects of
 * any kind, enforced by the API server itself, from Kubernetes 1.30 on.
 *
 * @typeParam O The type of the objects.
 * @param kind Kind of the objects, built in or of `defineKind`; requests in its
 * other versions are converted to it.
 * @param options Name, expressions and what they apply to.
 * @throws {TypeError} If an option is unknown or of the wrong type, an expression
 * has an open bracket or text, or names a field that a kind of `defineKind` lacks.
 * @throws {RangeError} If a value is not among the allowed ones.
 *
 * @example Images from one registry
 * ```ts
 * import { validatingPolicy } from "@coracle/operator/crd";
 * import { Pod } from "@coracle/operator/kinds";
 *
 * const { policy, binding, since } = validatingPolicy(Pod, {
 *   name: "own-registry.sample.coracle.dev",
 *   validations: [{
 *     expression:
 *       "object.spec.containers.all(c, c.image.startsWith('registry.sample/'))",
 *     message: "images must come from registry.sample",
 *   }],
 *   namespaceSelector: "team",
 * });
 * if (since !== "1.30" || policy.kind === binding.kind) throw new Error("Expected both");
 * ```
 */
export function validatingPolicy<O extends KubernetesObject>(
  kind: Kind<O>,
  options: ValidatingPolicyOptions,
): AdmissionPolicy<O> {
  const known = resolvedKind(kind, "validatingPolicy()");
  checkOptions(options, VALIDATING_RULES, "validatingPolicy()");
  const { name, validations, actions = ["Deny"] } = options;
  const odd = actions.find((one) => !["Deny", "Warn", "Audit"].includes(one));
  if (odd !== undefined || actions.length === 0) {
    throw new RangeError(
      `Cannot make the policy ${name}: 'actions' must have Deny, Warn or Audit: received ${
        JSON.stringify(actions)
      }`,
    );
  }
  for (const { expression, messageExpression = "" } of validations) {
    checkText(known, name, expression, messageExpression);
  }
  const { metadata, policy, binding } = commonParts(known, options);
  return {
    kind: known,
    params: options.params?.kind,
    since: "1.30",
    policy: {
      apiVersion: API_VERSION,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: { ...policy, validations: validations.map((one) => ({ ...one })) },
    },
    binding: {
      apiVersion: API_VERSION,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { ...binding, validationActions: [...actions] },
    },
  };
}

/**
 * Returns a MutatingAdmissionPolicy and its binding: changes in CEL of objects of
 * any kind, made by the API server itself, from Kubernetes 1.36 on.
 *
 * @typeParam O The type of the objects.
 * @param kind Kind of the objects, built in or of `defineKind`.
 * @param options Name, changes and what they apply to.
 * @throws {TypeError} If an option is unknown or of the wrong type, an expression
 * has an open bracket or text, or a change has not one of `apply` and `patch`.
 * @throws {RangeError} If a value is not among the allowed ones.
 *
 * @example A default that depends on the namespace
 * ```ts
 * import { mutatingPolicy } from "@coracle/operator/crd";
 * import { Pod } from "@coracle/operator/kinds";
 *
 * const { since } = mutatingPolicy(Pod, {
 *   name: "priority.sample.coracle.dev",
 *   operations: ["CREATE"],
 *   matchConditions: { unset: "!has(object.spec.priorityClassName)" },
 *   mutations: [{ apply: "Object{spec: Object.spec{priorityClassName: 'low'}}" }],
 * });
 * if (since !== "1.36") throw new Error(since);
 * ```
 */
export function mutatingPolicy<O extends KubernetesObject>(
  kind: Kind<O>,
  options: MutatingPolicyOptions,
): AdmissionPolicy<O> {
  const known = resolvedKind(kind, "mutatingPolicy()");
  checkOptions(options, MUTATING_RULES, "mutatingPolicy()");
  const { name, mutations } = options;
  const { metadata, policy, binding } = commonParts(known, options);
  const changes = mutations.map(({ apply, patch }): Mutation => {
    if ((apply === undefined) === (patch === undefined)) {
      throw new TypeError(
        `Cannot make the policy ${name}: each of 'mutations' must have one of 'apply' and 'patch': received ${
          apply === undefined ? "none" : "both"
        }`,
      );
    }
    checkText(known, name, apply ?? patch ?? "");
    return apply === undefined
      ? { patchType: "JSONPatch", jsonPatch: { expression: patch } }
      : {
        patchType: "ApplyConfiguration",
        applyConfiguration: { expression: apply },
      };
  });
  return {
    kind: known,
    params: options.params?.kind,
    since: "1.36",
    policy: {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicy",
      metadata,
      spec: {
        ...policy,
        mutations: changes,
        reinvocationPolicy: "IfNeeded",
      },
    },
    binding: {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicyBinding",
      metadata,
      spec: binding,
    },
  };
}

const API_VERSION = "admissionregistration.k8s.io/v1";

/** Metadata and what policies of both types, and their bindings, have in common. */
function commonParts(kind: ResolvedKind, options: PolicyOptions) {
  const { name, matchConditions = {}, variables = {}, params } = options;
  if (!isSubdomain(name)) {
    throw new RangeError(
      `Cannot make the policy ${name}: 'name' must be a DNS subdomain, such as "own-registry.sample.coracle.dev": received ${
        JSON.stringify(name)
      }`,
    );
  }
  const operations = options.operations ?? ["CREATE", "UPDATE"];
  const odd = operations.find((one) =>
    !["CREATE", "UPDATE", "DELETE", "CONNECT"].includes(one)
  );
  if (odd !== undefined || operations.length === 0) {
    throw new RangeError(
      `Cannot make the policy ${name}: 'operations' must have CREATE, UPDATE, DELETE or CONNECT: received ${
        JSON.stringify(operations)
      }`,
    );
  }
  const owner = { kind, subject: `policy ${name}` };
  const conditions = namedExpressions(matchConditions, {
    ...owner,
    option: "matchConditions",
  });
  const values = namedExpressions(variables, { ...owner, option: "variables" });
  const paramKind = params && {
    apiVersion: apiVersion(params.kind),
    kind: params.kind.kind,
  };
  return {
    metadata: { name },
    policy: {
      failurePolicy: options.failurePolicy ?? "Fail",
      matchConstraints: matchResources(kind, operations, options),
      ...conditions.length > 0 && { matchConditions: conditions },
      ...values.length > 0 && { variables: values },
      ...paramKind && { paramKind },
    },
    binding: {
      policyName: name,
      ...params && {
        paramRef: {
          parameterNotFoundAction: params.missing ?? "Deny",
          ...params.name !== undefined && { name: params.name },
          ...params.namespace !== undefined && { namespace: params.namespace },
          ...params.name === undefined &&
            { selector: selector(params.selector) ?? {} },
        },
      },
    },
  };
}

function matchResources(
  { group, version, plural }: ResolvedKind,
  operations: readonly PolicyOperation[],
  options: PolicyOptions,
): MatchResources {
  const { subresources = [] } = options;
  const [namespaces, objects] = [
    selector(options.namespaceSelector),
    selector(options.objectSelector),
  ];
  return {
    // Requests in other versions of the kind are converted to this one.
    matchPolicy: "Equivalent",
    resourceRules: [{
      apiGroups: [group],
      apiVersions: [version],
      resources: [plural, ...subresources.map((name) => `${plural}/${name}`)],
      operations: [...operations],
    }],
    ...namespaces && { namespaceSelector: namespaces },
    ...objects && { objectSelector: objects },
  };
}

function selector(text: string | undefined): LabelSelector | undefined {
  if (text === undefined) return undefined;
  return {
    matchExpressions: labelRequirements(text).map(
      ({ key, operator, values }) => ({
        key,
        operator,
        ...values.length > 0 && { values: [...values] },
      }),
    ),
  };
}

function apiVersion({ group, version }: Kind): string {
  return group === "" ? version : `${group}/${version}`;
}

function resolvedKind<O extends KubernetesObject>(
  kind: Kind<O>,
  subject: string,
): ResolvedKind<O> {
  if (typeof kind === "object" && kind !== null && isResolved(kind)) {
    return kind;
  }
  throw new TypeError(
    `Cannot use ${subject}: the kind must have a plural, as those of @coracle/operator/kinds and defineKind(): received ${
      typeText(kind)
    }`,
  );
}

/** Checks expressions of a policy. */
function checkText(
  kind: ResolvedKind,
  name: string,
  ...expressions: readonly string[]
): void {
  for (const expression of expressions) {
    checkRequestExpression(kind, expression, `policy ${name}`);
  }
}
