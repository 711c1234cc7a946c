import type { AdmissionPlugin } from "./admission.ts";
import {
  BUNDLE_ATTEST,
  CERTIFICATE_APPROVAL,
  CERTIFICATE_SIGNING,
  CERTIFICATE_SUBJECT,
} from "./certificates.ts";
import {
  DEFAULT_INGRESS_CLASS,
  DEFAULT_STORAGE_CLASS,
  DEFAULT_TOLERATION_SECONDS,
  TAINT_NODES,
} from "./defaulting.ts";
import { LIMIT_RANGER } from "./limit_ranger.ts";
import { NAMESPACE_LIFECYCLE } from "./namespace_lifecycle.ts";
import { NODE_FEATURES, POD_RESIZE } from "./pod_resize.ts";
import { POD_SECURITY } from "./pod_security.ts";
import { POD_TOPOLOGY_LABELS } from "./pod_topology.ts";
import { POD_PRIORITY } from "./priority.ts";
import { RESOURCE_QUOTA } from "./resource_quota.ts";
import { RUNTIME_CLASS } from "./runtime_class.ts";
import { CLAIM_RESIZE, STORAGE_PROTECTION } from "./storage.ts";
import { SERVICE_ACCOUNT } from "./service_account.ts";

/**
 * Admission plug-ins of kube-apiserver that are on by default, in its order.
 *
 * @param policies Plug-ins of policies and webhooks of the server.
 * @param disabled Names of the plug-ins to leave out.
 * @throws {RangeError} If no plug-in has one of these names.
 */
export function admissionPlugins(
  policies: readonly AdmissionPlugin[],
  disabled: readonly string[] = [],
): readonly AdmissionPlugin[] {
  const plugins = [
    NAMESPACE_LIFECYCLE,
    LIMIT_RANGER,
    SERVICE_ACCOUNT,
    TAINT_NODES,
    POD_SECURITY,
    POD_PRIORITY,
    DEFAULT_TOLERATION_SECONDS,
    DEFAULT_STORAGE_CLASS,
    STORAGE_PROTECTION,
    CLAIM_RESIZE,
    RUNTIME_CLASS,
    CERTIFICATE_APPROVAL,
    CERTIFICATE_SIGNING,
    BUNDLE_ATTEST,
    CERTIFICATE_SUBJECT,
    DEFAULT_INGRESS_CLASS,
    POD_TOPOLOGY_LABELS,
    NODE_FEATURES,
    POD_RESIZE,
    ...policies,
    RESOURCE_QUOTA,
  ];
  const names = plugins.map(({ name }) => name);
  const unknown = disabled.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(
      `Cannot start an API server: the names in "disabledAdmission" must be among ${
        names.join(", ")
      }: received ${JSON.stringify(unknown)}`,
    );
  }
  return plugins.filter(({ name }) => !disabled.includes(name));
}
