import type { Duration } from "../api/duration.ts";
import { checkKind, type Kind, kindText } from "../api/kind.ts";
import {
  type LabelRequirement,
  labelRequirements,
  type LabelSelector,
} from "../api/label_selector.ts";
import type { KubernetesObject } from "../api/object.ts";
import {
  checkOptions,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
  shown,
} from "../api/options.ts";
import {
  type NamedExpression,
  namedExpressions,
} from "../crd/named_expressions.ts";
import type { AdmissionPolicy } from "../crd/policies.ts";
import { withoutTexts } from "../crd/rule_checks.ts";
import type { Logger } from "../logger.ts";
import type { AdmissionDecision } from "./admission_result.ts";

/** Request to the API server that an admission handler decides about. */
export interface AdmissionContext<
  O extends KubernetesObject = KubernetesObject,
> {
  /** Operation of the request. */
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** Object as it is stored, frozen; undefined when it is created. */
  readonly old: O | undefined;
  /** User who has sent the request. */
  readonly user: {
    /** Name, such as `system:serviceaccount:shop:web`. */
    readonly username: string;
    /** UID; empty if the user has none. */
    readonly uid: string;
    /** Groups of the user. */
    readonly groups: readonly string[];
    /** Further attributes that the authenticator has added. */
    readonly extra: Readonly<Record<string, readonly string[]>>;
  };
  /** Whether nothing is stored, so that the handler must not change anything. */
  readonly dryRun: boolean;
  /** Namespace of the object; undefined for cluster-scoped objects. */
  readonly namespace: string | undefined;
  /** Name of the object; undefined if the API server will generate it. */
  readonly name: string | undefined;
  /** Subresource, such as `status`; undefined for the object itself. */
  readonly subresource: string | undefined;
  /** Signal that aborts before the API server gives up. */
  readonly signal: AbortSignal;
  /** Logger with kind, object and operation as fields. */
  readonly log: Logger;
  /**
   * Reads one object: from the cache of a controller that watches the kind, else
   * from the server; undefined if it does not exist.
   *
   * @param kind Kind of the object.
   * @param name Name of the object. Defaults to that of the object of the request.
   * @param namespace Namespace. Defaults to that of the object of the request.
   */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    name?: string,
    namespace?: string,
  ): Promise<T | undefined>;
  /**
   * Reads all objects of a kind in a namespace, like `get`.
   *
   * @param kind Kind of the objects.
   * @param namespace Namespace, or `"*"` for all. Defaults to that of the object of
   * the request.
   */
  list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace?: string,
  ): Promise<readonly T[]>;
}

/** Handlers of the requests about the objects of a kind; at least one of them. */
export interface AdmissionHandlers<
  O extends KubernetesObject = KubernetesObject,
> {
  /**
   * Decides whether a request is allowed: `deny(…)`, `allow({ warnings })`, or
   * nothing to allow it. It must not have effects of its own.
   *
   * @param object Object as it would be stored, frozen; the stored one if it is
   * deleted.
   */
  validate?(
    object: O,
    ctx: AdmissionContext<O>,
  ):
    | AdmissionDecision
    | undefined
    | void
    | Promise<AdmissionDecision | undefined | void>;
  /**
   * Fills in what the user has left out, when an object is created or updated. It
   * runs before `validate`, and again if another webhook has changed the object:
   * it must not change what it has filled in before.
   *
   * @param object Object of the request, which may be changed.
   * @returns The changed object; the patch is the difference to the original.
   */
  default?(object: O, ctx: AdmissionContext<O>): O | Promise<O>;
}

/** Options of `operator.admit`. */
export interface AdmissionOptions {
  /**
   * Outcome of a request that no handler could decide, because the operator is
   * away, late, or a handler has failed: `"Fail"` refuses it, `"Ignore"` allows it.
   * There is no default: with `"Fail"` an operator that is down stops all writes of
   * the kind, with `"Ignore"` wrong objects get through.
   */
  readonly failurePolicy: "Fail" | "Ignore";
  /**
   * Operations that the handlers see. `default` sees only CREATE and UPDATE of
   * these.
   *
   * @default {["CREATE", "UPDATE"]}
   */
  readonly operations?:
    | readonly ("CREATE" | "UPDATE" | "DELETE" | "CONNECT")[]
    | undefined;
  /**
   * Time limit of a call in whole seconds, from 1 s to 30 s. Time-outs of several
   * webhooks add up. The handlers get four fifths of it.
   *
   * @default {"5s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * Conditions in CEL on `object`, `oldObject` and `request`, by name, as those of
   * a policy. Requests that do not meet all of them never leave the API server.
   *
   * @default {{}}
   */
  readonly matchConditions?: Readonly<Record<string, string>> | undefined;
  /** Labels of the namespaces whose objects are admitted. Defaults to all. */
  readonly namespaceSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /** Labels of the objects that are admitted. Defaults to all. */
  readonly objectSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /**
   * Subresources that the handlers see beside the object itself, such as `status`.
   *
   * @default {[]}
   */
  readonly subresources?: readonly string[] | undefined;
}

/** Handlers and options of the kind of a controller, in its option `admission`. */
export interface ControllerAdmission<
  P extends KubernetesObject = KubernetesObject,
> extends AdmissionHandlers<P>, AdmissionOptions {}

const HANDLER_RULES: OptionRules<AdmissionHandlers<never>> = {
  validate: "function?",
  default: "function?",
};

const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;

const OPTIONS: OptionTable<
  AdmissionOptions,
  "namespaceSelector" | "objectSelector"
> = {
  failurePolicy: ["Fail", "Ignore"],
  operations: {
    type: "strings",
    default: ["CREATE", "UPDATE"],
    check: checkOperations,
  },
  timeout: { type: "duration", default: "5s" },
  matchConditions: { type: "object", default: {} },
  namespaceSelector: { type: "selector?", check: checkSelector },
  objectSelector: { type: "selector?", check: checkSelector },
  subresources: { type: "strings", default: [] },
};

/** Admission of a kind: handlers and options, checked and with defaults. */
export interface Admission {
  readonly kind: Kind;
  readonly handlers: AdmissionHandlers;
  readonly options: Settings<
    AdmissionOptions,
    "namespaceSelector" | "objectSelector"
  >;
  /** Conditions of the options, as webhooks have them. */
  readonly conditions: readonly NamedExpression[];
  /** Policy in whose place the handlers stand where the API server lacks its type. */
  readonly policy?: AdmissionPolicy | undefined;
}

/**
 * Checks handlers and options of a kind.
 *
 * @param subject Caller for errors, such as `operator.admit()`.
 * @throws {TypeError | RangeError | SyntaxError} If there is no handler, or an
 * option is unknown, missing or not valid.
 */
export function admissionOf<O extends KubernetesObject>(
  kind: Kind<O>,
  handlers: AdmissionHandlers<O>,
  options: AdmissionOptions,
): Admission {
  const subject = "operator.admit()";
  checkKind(kind, subject);
  const owner = `admission of ${kindText(kind)}`;
  checkOptions(handlers, HANDLER_RULES, `the handlers of ${owner}`);
  if (options?.failurePolicy === undefined) {
    throw new TypeError(
      `Cannot read the options of ${owner}: "failurePolicy" must be chosen: "Fail" refuses requests while the operator is away, "Ignore" allows them`,
    );
  }
  checkOptions(options, OPTIONS, owner);
  const settings = resolveOptions(options, OPTIONS);
  const { timeout, operations } = settings;
  if (timeout < 1_000 || timeout > 30_000 || timeout % 1_000 !== 0) {
    throw new RangeError(
      `Cannot read the options of ${owner}: "timeout" must be a whole number of seconds from 1 to 30: received ${
        shown(options.timeout)
      }`,
    );
  }
  if (handlers.validate === undefined && handlers.default === undefined) {
    throw new TypeError(
      `Cannot read the handlers of ${owner}: there must be "validate" or "default"`,
    );
  }
  if (
    handlers.default !== undefined &&
    !operations.some((one) => one === "CREATE" || one === "UPDATE")
  ) {
    throw new TypeError(
      `Cannot read the options of ${owner}: "default" sees only CREATE and UPDATE, and "operations" has neither`,
    );
  }
  return {
    kind,
    handlers: handlers as unknown as AdmissionHandlers,
    options: settings,
    conditions: webhookConditions(kind, settings.matchConditions, owner),
  };
}

/** Variables of policies that the conditions of webhooks lack. */
const POLICY_VARIABLES = /(?<![\w.])(?:params|variables|namespaceObject)\b/;

function webhookConditions(
  kind: Kind,
  given: Readonly<Record<string, string>>,
  subject: string,
): readonly NamedExpression[] {
  const option = "matchConditions";
  const conditions = namedExpressions(given, { kind, subject, option });
  for (const { name, expression } of conditions) {
    const [variable] =
      POLICY_VARIABLES.exec(withoutTexts(expression, subject)) ?? [];
    if (variable === undefined) continue;
    throw new TypeError(
      `Cannot read the options of ${subject}: "${option}" must not use "${variable}", which only policies have: received ${
        shown(name)
      }`,
    );
  }
  return conditions;
}

/** Handler that does what a policy does, by the type of the policy. */
const POLICY_HANDLERS: Readonly<Record<string, keyof AdmissionHandlers>> = {
  ValidatingAdmissionPolicy: "validate",
  MutatingAdmissionPolicy: "default",
};

/**
 * Admission by a policy, with the handlers that stand in its place where the API
 * server lacks its type; these see the requests that the policy sees.
 *
 * @throws {TypeError} If there is a handler of another type than the policy, or a
 * condition of the policy uses variables that webhooks do not have.
 */
export function policyAdmission(
  policy: AdmissionPolicy,
  handlers: AdmissionHandlers,
): Admission {
  const { kind, policy: { kind: type = "", metadata, spec } } = policy;
  const subject = `the handlers of policy ${metadata.name}`;
  checkOptions(handlers, HANDLER_RULES, subject);
  const wanted = POLICY_HANDLERS[type];
  const given = Object.keys(handlers);
  const odd = given.find((name) => name !== wanted);
  if (odd !== undefined) {
    throw new TypeError(
      `Cannot read the options of ${subject}: only "${wanted}" can stand in the place of a ${type}: received ${
        shown(odd)
      }`,
    );
  }
  const [rule] = spec.matchConstraints.resourceRules;
  const listed: readonly NamedExpression[] | undefined = spec.matchConditions;
  const matchConditions = Object.fromEntries(
    listed?.map(({ name, expression }) => [name, expression]) ?? [],
  );
  const options = resolveOptions<
    AdmissionOptions,
    "namespaceSelector" | "objectSelector"
  >({
    failurePolicy: spec.failurePolicy,
    operations: rule.operations,
    subresources: rule.resources.slice(1).map((name: string) =>
      name.slice(name.indexOf("/") + 1)
    ),
    namespaceSelector: spec.matchConstraints.namespaceSelector,
    objectSelector: spec.matchConstraints.objectSelector,
    matchConditions,
  }, OPTIONS);
  return {
    kind,
    handlers,
    options,
    conditions: given.length === 0
      ? []
      : webhookConditions(kind, matchConditions, subject),
    policy,
  };
}

function checkOperations(value: readonly string[], subject: string): void {
  const known: readonly string[] = OPERATIONS;
  const isValid = value.length > 0 && value.every((one) => known.includes(one));
  if (isValid) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "operations" must be some of ${
      known.join(", ")
    }: received ${value.map(shown).join(", ") || "none"}`,
  );
}

function checkSelector(
  value: string | LabelSelector | readonly LabelRequirement[],
  subject: string,
  name: string,
): void {
  const unfit = labelRequirements(value).find(({ operator }) =>
    operator === "Gt" || operator === "Lt"
  );
  if (unfit === undefined) return;
  throw new TypeError(
    `Cannot read the options of ${subject}: "${name}" must not compare numbers, which webhooks cannot do: received "${unfit.key}" with ${unfit.operator}`,
  );
}
