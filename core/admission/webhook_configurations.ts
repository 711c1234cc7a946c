import { builtIn, type ResolvedKind } from "../api/kind.ts";
import {
  type LabelRequirement,
  labelRequirements,
  type LabelSelector,
} from "../api/label_selector.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import type { Admission, AdmissionHandlers } from "./admission_options.ts";

/** Webhook of a {@linkcode WebhookConfiguration}, in its fields of Kubernetes. */
export interface RegisteredWebhook {
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly [field: string]: unknown;
}

/** ValidatingWebhookConfiguration or MutatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly RegisteredWebhook[] | undefined;
}

const GROUP = "admissionregistration.k8s.io";

/** Kinds of the configurations, by the handler whose webhooks they have. */
export const CONFIGURATIONS: Readonly<
  Record<keyof AdmissionHandlers, ResolvedKind<WebhookConfiguration>>
> = {
  default: builtIn("MutatingWebhookConfiguration", "Cluster", GROUP),
  validate: builtIn("ValidatingWebhookConfiguration", "Cluster", GROUP),
};

/** Names of the handlers, in the order in which the API server calls them. */
export const HANDLERS = ["default", "validate"] as const;

/** Admission with what the registration has found out about it. */
export interface RegisteredAdmission
  extends Pick<Admission, "handlers" | "options" | "conditions"> {
  readonly kind: ResolvedKind;
  /** Path of each handler on the listener. */
  readonly paths: Readonly<Record<keyof AdmissionHandlers, string>>;
  /** Number among the admissions of the kind, from 1. */
  readonly number: number;
  /** Namespaces whose objects are admitted. */
  readonly namespaces: "all" | readonly string[];
}

/** Where the operator runs, and as whom: these are left out of admission. */
export interface OperatorIdentity {
  /** Namespace of the operator; undefined if it runs outside of the cluster. */
  readonly namespace: string | undefined;
  /** Service account of the operator; undefined for another user. */
  readonly account: string | undefined;
}

/** Webhooks of the admissions with a handler, for its configuration. */
export function registeredWebhooks(
  handler: keyof AdmissionHandlers,
  admissions: readonly RegisteredAdmission[],
  { operator, clientConfig }: {
    readonly operator: OperatorIdentity;
    readonly clientConfig: (path: string) => WebhookClientConfig;
  },
): readonly RegisteredWebhook[] {
  return admissions.filter(({ handlers }) => handlers[handler] !== undefined)
    .map((admission) => {
      const { kind, options, conditions, paths, number } = admission;
      const { group, version, plural } = kind;
      const place = `${plural}.${group === "" ? "core.k8s.io" : group}`;
      return {
        // At least three segments, as Kubernetes requires.
        name: `${handler}${number === 1 ? "" : `-${number}`}.${place}`,
        admissionReviewVersions: ["v1"],
        clientConfig: clientConfig(paths[handler]),
        failurePolicy: options.failurePolicy,
        // Requests in other versions of the kind are converted to this one.
        matchPolicy: "Equivalent",
        sideEffects: "None",
        timeoutSeconds: options.timeout / 1_000,
        ...(handler === "default" && { reinvocationPolicy: "IfNeeded" }),
        rules: [{
          apiGroups: [group],
          apiVersions: [version],
          resources: [
            plural,
            ...options.subresources.map((name) => `${plural}/${name}`),
          ],
          operations: options.operations.filter((one) =>
            handler === "validate" || one === "CREATE" || one === "UPDATE"
          ),
          scope: kind.scope === "Cluster" ? "Cluster" : "Namespaced",
        }],
        namespaceSelector: namespaceSelector(admission, operator),
        objectSelector: selector(
          labelRequirements(options.objectSelector ?? ""),
        ),
        matchConditions: [
          ...(operator.account === undefined ? [] : [{
            name: "not-the-operator",
            expression: `request.userInfo.username != "${operator.account}"`,
          }]),
          ...conditions,
        ],
      };
    });
}

/** Label with the name of a namespace, which every namespace has. */
const NAME_LABEL = "kubernetes.io/metadata.name";

/**
 * Selector of the namespaces: those of the controller; otherwise all but that of
 * the operator, whose pods could not start while it is away, and kube-system.
 */
function namespaceSelector(
  { namespaces, options }: RegisteredAdmission,
  operator: OperatorIdentity,
): LabelSelector {
  const own = [
    ...new Set([operator.namespace ?? "kube-system", "kube-system"]),
  ];
  const places: LabelRequirement = namespaces === "all"
    ? { key: NAME_LABEL, operator: "NotIn", values: own.sort() }
    : { key: NAME_LABEL, operator: "In", values: namespaces };
  return selector([
    ...labelRequirements(options.namespaceSelector ?? ""),
    places,
  ]);
}

function selector(requirements: readonly LabelRequirement[]): LabelSelector {
  return requirements.length === 0 ? {} : {
    matchExpressions: requirements.map(({ key, operator, values }) => ({
      key,
      operator,
      ...(values.length > 0 && { values }),
    })),
  };
}
