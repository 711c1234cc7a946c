import { Quantity } from "../../../core/api/quantity.ts";
import type { LeaseSpec } from "../../../core/kinds/coordination_v1.ts";
import type {
  ConfigMap,
  Event,
  LimitRangeItem,
  ResourceQuotaSpec,
  Secret,
} from "../../../core/kinds/core_v1.ts";
import type { RuntimeClass } from "../../../core/kinds/node_v1.ts";
import type { PriorityClass } from "../../../core/kinds/scheduling_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  qualifiedNameProblems,
} from "../../validation/names.ts";
import { oneOf } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { configKeyProblems } from "./value_problems.ts";

/** Maximum size of the data of a ConfigMap or Secret in bytes. */
const MAX_DATA_BYTES = 1024 * 1024;

const encoder = new TextEncoder();

/** Size in bytes of base64 text after decoding. */
function decodedSize(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return text.length / 4 * 3 - padding;
}

function checkConfigMap(map: ConfigMap, fieldPath: FieldPath): void {
  const { data = {}, binaryData = {} } = map;
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    fieldPath.problems(`data[${key}]`, key, configKeyProblems(key));
    if (Object.hasOwn(binaryData, key)) {
      fieldPath.invalid(
        `data[${key}]`,
        key,
        "duplicate of key present in binaryData",
      );
    }
    size += encoder.encode(value).length;
  }
  for (const [key, value] of Object.entries(binaryData)) {
    fieldPath.problems(`binaryData[${key}]`, key, configKeyProblems(key));
    size += decodedSize(value);
  }
  if (size > MAX_DATA_BYTES) fieldPath.tooLong("", MAX_DATA_BYTES);
}

/** Required keys of Secrets, by type. */
const SECRET_KEYS: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
};

function checkSecret(secret: Secret, fieldPath: FieldPath): void {
  const { data = {}, type = "", metadata } = secret;
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    fieldPath.problems(`data[${key}]`, key, configKeyProblems(key));
    size += decodedSize(value);
  }
  if (size > MAX_DATA_BYTES) fieldPath.tooLong("data", MAX_DATA_BYTES);
  for (const key of SECRET_KEYS[type] ?? []) {
    if (!Object.hasOwn(data, key)) fieldPath.required(`data[${key}]`);
  }
  const basic = ["username", "password"];
  if (
    type === "kubernetes.io/basic-auth" &&
    !basic.some((key) => Object.hasOwn(data, key))
  ) { for (const key of basic) fieldPath.required(`data[${key}]`); }
  const account = "kubernetes.io/service-account.name";
  if (
    type === "kubernetes.io/service-account-token" &&
    !metadata.annotations?.[account]
  ) fieldPath.required(`metadata.annotations[${account}]`);
}

function checkEvent(event: Event, fieldPath: FieldPath): void {
  const { involvedObject, metadata, eventTime } = event;
  const { namespace = "" } = involvedObject;
  const own = metadata.namespace ?? "";
  const isOld = !eventTime;
  const agrees = namespace === ""
    ? own === "" || own === "default" || !isOld && own === "kube-system"
    : !isOld || own === namespace;
  if (!agrees) {
    fieldPath.invalid(
      "involvedObject.namespace",
      namespace,
      "does not match event.namespace",
    );
  }
  if (isOld) return;
  checkNewEvent(
    {
      controller: event.reportingComponent ?? "",
      instance: event.reportingInstance ?? "",
      action: event.action ?? "",
      reason: event.reason ?? "",
    },
    "reportingComponent",
    fieldPath,
  );
}

function checkNewEvent(
  event: {
    readonly controller: string;
    readonly instance: string;
    readonly action: string;
    readonly reason: string;
  },
  controllerField: string,
  fieldPath: FieldPath,
): void {
  const { controller, instance, action, reason } = event;
  if (!controller) fieldPath.required(controllerField);
  fieldPath.problems(
    controllerField,
    controller,
    qualifiedNameProblems(controller),
  );
  for (
    const [field, text] of [
      ["reportingInstance", instance],
      ["action", action],
      ["reason", reason],
    ] as const
  ) {
    if (!text) fieldPath.required(field);
    else if (text.length > 128) {
      fieldPath.invalid(field, "", "can have at most 128 characters");
    }
  }
}

function checkEventsEvent(event: {
  readonly eventTime?: string | null;
  readonly reportingController?: string;
  readonly reportingInstance?: string;
  readonly action?: string;
  readonly reason?: string;
}, fieldPath: FieldPath): void {
  if (!event.eventTime) {
    fieldPath.required("eventTime");
  }
  checkNewEvent(
    {
      controller: event.reportingController ?? "",
      instance: event.reportingInstance ?? "",
      action: event.action ?? "",
      reason: event.reason ?? "",
    },
    "reportingController",
    fieldPath,
  );
}

function checkLease(spec: LeaseSpec, fieldPath: FieldPath): void {
  const { leaseDurationSeconds: duration, leaseTransitions } = spec;
  if (duration !== undefined && duration <= 0) {
    fieldPath.invalid(
      "leaseDurationSeconds",
      duration,
      "must be greater than 0",
    );
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    fieldPath.invalid(
      "leaseTransitions",
      leaseTransitions,
      "must be greater than or equal to 0",
    );
  }
}

const HIGHEST_USER_PRIORITY = 1_000_000_000;

function checkPriorityClass(
  { metadata, value, preemptionPolicy }: PriorityClass,
  fieldPath: FieldPath,
): void {
  if (preemptionPolicy !== undefined && !preemptionPolicy) {
    fieldPath.required("preemptionPolicy");
  } else if (preemptionPolicy !== undefined) {
    oneOf(["PreemptLowerPriority", "Never"])(
      preemptionPolicy,
      "preemptionPolicy",
      fieldPath,
    );
  }
  if (metadata.name?.startsWith("system-")) {
    fieldPath.forbidden(
      "metadata.name",
      `priority class names with 'system-' prefix are reserved for system use only. error: ${metadata.name} is not a known system priority class`,
    );
  } else if (value > HIGHEST_USER_PRIORITY) {
    fieldPath.forbidden(
      "value",
      `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`,
    );
  }
}

function checkQuota(
  { hard = {} }: ResourceQuotaSpec,
  fieldPath: FieldPath,
): void {
  for (const [name, text] of Object.entries(hard)) {
    if (Quantity.parse(text).nano >= 0n) continue;
    fieldPath.invalid(
      `hard[${name}]`,
      text,
      "must be greater than or equal to 0",
    );
  }
}

function checkLimits(
  { type, min = {}, max = {}, default: limits = {} }: LimitRangeItem,
  fieldPath: FieldPath,
): void {
  fieldPath.problems("type", type, qualifiedNameProblems(type));
  for (const [name, text] of Object.entries(min)) {
    const most = max[name];
    if (most === undefined) continue;
    if (Quantity.parse(text).compare(Quantity.parse(most)) > 0) {
      fieldPath.invalid(
        `min[${name}]`,
        text,
        `min value ${text} is greater than max value ${most}`,
      );
    }
  }
  for (const [name, text] of Object.entries(limits)) {
    const most = max[name];
    if (most === undefined) continue;
    if (Quantity.parse(text).compare(Quantity.parse(most)) > 0) {
      fieldPath.invalid(
        `default[${name}]`,
        text,
        `default value ${text} is greater than max value ${most}`,
      );
    }
  }
}

/** Validation rules of ConfigMaps, Secrets, namespaces, quotas and similar kinds. */
export const CLUSTER_RULES: ValidationRules = [
  check("api.core.v1.ConfigMap", checkConfigMap),
  check("api.core.v1.Secret", checkSecret),
  check("api.core.v1.Event", checkEvent),
  check("api.events.v1.Event", checkEventsEvent),
  check("api.core.v1.ResourceQuotaSpec", checkQuota),
  check("api.core.v1.LimitRangeItem", checkLimits),
  check("api.coordination.v1.LeaseSpec", checkLease),
  check("api.scheduling.v1.PriorityClass", checkPriorityClass),
  check("api.node.v1.RuntimeClass", ({ handler }: RuntimeClass, fieldPath) => {
    fieldPath.problems("handler", handler, labelProblems(handler));
  }),
];
