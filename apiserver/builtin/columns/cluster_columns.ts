import type {
  MutatingWebhookConfiguration,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingWebhookConfiguration,
} from "../../../core/kinds/admissionregistration_v1.ts";
import type { APIService } from "../../../core/kinds/apiregistration_v1.ts";
import type { CertificateSigningRequest } from "../../../core/kinds/certificates_v1.ts";
import type { Lease } from "../../../core/kinds/coordination_v1.ts";
import type {
  FlowSchema,
  PriorityLevelConfiguration,
} from "../../../core/kinds/flowcontrol_v1.ts";
import type { LabelSelector } from "../../../core/kinds/meta_v1.ts";
import type { RuntimeClass } from "../../../core/kinds/node_v1.ts";
import type {
  ClusterRoleBinding,
  RoleBinding,
} from "../../../core/kinds/rbac_v1.ts";
import type { PriorityClass } from "../../../core/kinds/scheduling_v1.ts";
import { humanDuration } from "../../human_duration.ts";
import { ageOf, nameOf, type Printer } from "./cell_text.ts";

/** Printers of the kinds for access, admission and cluster administration. */
export const CLUSTER_COLUMNS: Readonly<Record<string, Printer>> = {
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhookCells,
  "validatingwebhookconfigurations.admissionregistration.k8s.io": webhookCells,
  "validatingadmissionpolicies.admissionregistration.k8s.io": policyCells,
  "validatingadmissionpolicybindings.admissionregistration.k8s.io":
    policyBindingCells,
  "apiservices.apiregistration.k8s.io": apiServiceCells,
  "certificatesigningrequests.certificates.k8s.io": certificateCells,
  "leases.coordination.k8s.io": (object: Lease, now) => [
    nameOf(object),
    object.spec?.holderIdentity ?? "",
    ageOf(object, now),
  ],
  "flowschemas.flowcontrol.apiserver.k8s.io": flowSchemaCells,
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":
    priorityLevelCells,
  "runtimeclasses.node.k8s.io": (object: RuntimeClass, now) => [
    nameOf(object),
    object.handler,
    ageOf(object, now),
  ],
  "priorityclasses.scheduling.k8s.io": (object: PriorityClass, now) => [
    nameOf(object),
    object.value,
    object.globalDefault ?? false,
    ageOf(object, now),
    object.preemptionPolicy ?? "",
  ],
  "rolebindings.rbac.authorization.k8s.io": bindingCells,
  "clusterrolebindings.rbac.authorization.k8s.io": bindingCells,
};

function webhookCells(
  object: MutatingWebhookConfiguration | ValidatingWebhookConfiguration,
  now: number,
): readonly unknown[] {
  return [nameOf(object), object.webhooks?.length ?? 0, ageOf(object, now)];
}

function policyCells(
  object: ValidatingAdmissionPolicy,
  now: number,
): readonly unknown[] {
  const kind = object.spec?.paramKind;
  return [
    nameOf(object),
    object.spec?.validations?.length ?? 0,
    kind ? `${kind.apiVersion ?? ""}/${kind.kind ?? ""}` : "<unset>",
    ageOf(object, now),
  ];
}

function policyBindingCells(
  object: ValidatingAdmissionPolicyBinding,
  now: number,
): readonly unknown[] {
  return [
    nameOf(object),
    object.spec?.policyName ?? "",
    parametersText(object),
    ageOf(object, now),
  ];
}

function parametersText({ spec }: ValidatingAdmissionPolicyBinding): string {
  const { name, namespace, selector } = spec?.paramRef ?? {};
  if (name) return `${namespace || "*"}/${name}`;
  return selector === undefined ? "<unset>" : goSelectorText(selector);
}

/** Selector as the generated `String()` method of Go writes it. */
function goSelectorText(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
): string {
  const labels = Object.entries(matchLabels).sort().map(([key, value]) =>
    `${key}: ${value},`
  );
  const expressions = matchExpressions.map(({ key, operator, values = [] }) =>
    `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${
      values.join(" ")
    }],},`
  );
  return `&LabelSelector{MatchLabels:map[string]string{${
    labels.join("")
  }},MatchExpressions:[]LabelSelectorRequirement{${expressions.join("")}},}`;
}

function apiServiceCells(object: APIService, now: number): readonly unknown[] {
  const { spec, status = {} } = object;
  const service = spec?.service;
  const available = status.conditions?.find(({ type }) => type === "Available");
  const shown = available === undefined
    ? "Unknown"
    : available.status !== "True" && available.reason
    ? `${available.status} (${available.reason})`
    : available.status;
  return [
    nameOf(object),
    service ? `${service.namespace ?? ""}/${service.name ?? ""}` : "Local",
    shown,
    ageOf(object, now),
  ];
}

function certificateCells(
  object: CertificateSigningRequest,
  now: number,
): readonly unknown[] {
  const { signerName, username, expirationSeconds } = object.spec;
  return [
    nameOf(object),
    ageOf(object, now),
    signerName || "<none>",
    username ?? "",
    expirationSeconds === undefined
      ? "<none>"
      : humanDuration(expirationSeconds * 1_000),
    certificateStatus(object),
  ];
}

function certificateStatus({ status = {} }: CertificateSigningRequest): string {
  const has = (type: string) =>
    status.conditions?.some((condition) => condition.type === type);
  const decision = has("Denied")
    ? "Denied"
    : has("Approved")
    ? "Approved"
    : "Pending";
  const failed = has("Failed") ? ",Failed" : "";
  return `${decision}${failed}${status.certificate ? ",Issued" : ""}`;
}

function flowSchemaCells(object: FlowSchema, now: number): readonly unknown[] {
  const { spec, status = {} } = object;
  const dangling = status.conditions?.find(({ type }) => type === "Dangling");
  return [
    nameOf(object),
    spec?.priorityLevelConfiguration.name ?? "",
    spec?.matchingPrecedence ?? 0,
    spec?.distinguisherMethod?.type ?? "<none>",
    ageOf(object, now),
    dangling ? dangling.status ?? "" : "?",
  ];
}

function priorityLevelCells(
  object: PriorityLevelConfiguration,
  now: number,
): readonly unknown[] {
  const limited = object.spec?.limited;
  const queuing = limited?.limitResponse?.queuing;
  const shown = (given: object | undefined, value: number | undefined) =>
    given === undefined ? "<none>" : value ?? 0;
  return [
    nameOf(object),
    object.spec?.type ?? "",
    shown(limited, limited?.nominalConcurrencyShares),
    shown(queuing, queuing?.queues),
    shown(queuing, queuing?.handSize),
    shown(queuing, queuing?.queueLengthLimit),
    ageOf(object, now),
  ];
}

function bindingCells(
  object: RoleBinding | ClusterRoleBinding,
  now: number,
): readonly unknown[] {
  const { roleRef, subjects = [] } = object;
  const named = (kind: string) =>
    subjects.filter((subject) => subject.kind === kind);
  return [
    nameOf(object),
    `${roleRef.kind}/${roleRef.name}`,
    ageOf(object, now),
    named("User").map(({ name }) => name).join(", "),
    named("Group").map(({ name }) => name).join(", "),
    named("ServiceAccount").map(({ namespace = "", name }) =>
      `${namespace}/${name}`
    ).join(", "),
  ];
}
