import type {
  MatchResources,
  MutatingWebhook,
  RuleWithOperations,
  ServiceReference,
  ValidatingAdmissionPolicySpec,
  ValidatingWebhook,
} from "../../../core/kinds/admissionregistration_v1.ts";
import type { DiscoveryEndpointPort } from "../../../core/kinds/discovery_v1.ts";
import type {
  ExemptPriorityLevelConfiguration,
  FlowSchemaSpec,
  LimitedPriorityLevelConfiguration,
  QueuingConfiguration,
} from "../../../core/kinds/flowcontrol_v1.ts";
import type {
  IngressClass,
  NetworkPolicy,
  NetworkPolicyPort,
} from "../../../core/kinds/networking_v1.ts";
import type { RoleRef, Subject } from "../../../core/kinds/rbac_v1.ts";
import type { PriorityClass } from "../../../core/kinds/scheduling_v1.ts";
import type {
  CSIDriver,
  StorageClass,
} from "../../../core/kinds/storage_v1.ts";
import { type DefaultRules, rule } from "./default_rule.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

function defaultNetworkPolicy({ spec }: NetworkPolicy): void {
  if (spec === undefined) return;
  spec.policyTypes ??= spec.egress === undefined
    ? ["Ingress"]
    : ["Ingress", "Egress"];
}

function defaultCsiDriver({ spec }: CSIDriver): void {
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= "ReadWriteOnceWithFSType";
  spec.volumeLifecycleModes ??= ["Persistent"];
  spec.requiresRepublish ??= false;
  spec.seLinuxMount ??= false;
}

function defaultWebhook(webhook: ValidatingWebhook | MutatingWebhook): void {
  webhook.failurePolicy ??= "Fail";
  webhook.matchPolicy ??= "Equivalent";
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= 10;
}

/** Default rules of networking, storage, RBAC, admission and other cluster kinds. */
export const CLUSTER_DEFAULTS: DefaultRules = [
  rule("api.networking.v1.NetworkPolicy", defaultNetworkPolicy),
  rule("api.networking.v1.NetworkPolicyPort", (port: NetworkPolicyPort) => {
    port.protocol ??= "TCP";
  }),
  rule("api.networking.v1.IngressClass", ({ spec }: IngressClass) => {
    if (spec?.parameters) spec.parameters.scope ??= "Cluster";
  }),
  rule("api.storage.v1.StorageClass", (storageClass: StorageClass) => {
    storageClass.reclaimPolicy ??= "Delete";
    storageClass.volumeBindingMode ??= "Immediate";
  }),
  rule("api.storage.v1.CSIDriver", defaultCsiDriver),
  rule("api.rbac.v1.RoleRef", (reference: RoleRef) => {
    reference.apiGroup ||= RBAC_GROUP;
  }),
  rule("api.rbac.v1.Subject", (subject: Subject) => {
    if (subject.kind === "User" || subject.kind === "Group") {
      subject.apiGroup ??= RBAC_GROUP;
    }
  }),
  rule("api.scheduling.v1.PriorityClass", (priority: PriorityClass) => {
    priority.preemptionPolicy ??= "PreemptLowerPriority";
  }),
  rule("api.discovery.v1.EndpointPort", (port: DiscoveryEndpointPort) => {
    port.name ??= "";
    port.protocol ??= "TCP";
  }),
  rule("api.admissionregistration.v1.ValidatingWebhook", defaultWebhook),
  rule(
    "api.admissionregistration.v1.MutatingWebhook",
    (webhook: MutatingWebhook) => {
      defaultWebhook(webhook);
      webhook.reinvocationPolicy ??= "Never";
    },
  ),
  rule(
    "api.admissionregistration.v1.RuleWithOperations",
    (rules: RuleWithOperations) => {
      rules.scope ??= "*";
    },
  ),
  rule(
    "api.admissionregistration.v1.NamedRuleWithOperations",
    (rules: RuleWithOperations) => {
      rules.scope ??= "*";
    },
  ),
  rule(
    "api.admissionregistration.v1.ServiceReference",
    (reference: ServiceReference) => {
      reference.port ??= 443;
    },
  ),
  rule(
    "kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference",
    (reference: ServiceReference) => {
      reference.port ??= 443;
    },
  ),
  rule(
    "api.admissionregistration.v1.ValidatingAdmissionPolicySpec",
    (spec: ValidatingAdmissionPolicySpec) => {
      spec.failurePolicy ??= "Fail";
    },
  ),
  rule(
    "api.admissionregistration.v1.MatchResources",
    (match: MatchResources) => {
      match.matchPolicy ??= "Equivalent";
      match.namespaceSelector ??= {};
      match.objectSelector ??= {};
    },
  ),
  rule("api.flowcontrol.v1.FlowSchemaSpec", (spec: FlowSchemaSpec) => {
    spec.matchingPrecedence ||= 1000;
  }),
  rule(
    "api.flowcontrol.v1.ExemptPriorityLevelConfiguration",
    (level: ExemptPriorityLevelConfiguration) => {
      level.nominalConcurrencyShares ??= 0;
      level.lendablePercent ??= 0;
    },
  ),
  rule(
    "api.flowcontrol.v1.LimitedPriorityLevelConfiguration",
    (level: LimitedPriorityLevelConfiguration) => {
      level.nominalConcurrencyShares ??= 30;
      level.lendablePercent ??= 0;
    },
  ),
  rule(
    "api.flowcontrol.v1.QueuingConfiguration",
    (queues: QueuingConfiguration) => {
      queues.handSize ||= 8;
      queues.queues ||= 64;
      queues.queueLengthLimit ||= 50;
    },
  ),
];
