import type { UntypedObject } from "../../../core/api/object.ts";
import type { ResourceDefinition } from "../../registry.ts";
import { definitionOfKind, type GoType, goType } from "../go_types.ts";
import { typedCauses } from "./typed_validation.ts";
import { changeCauses } from "./update_rules.ts";

/**
 * Kinds of which kube-apiserver checks the whole object and then the change,
 * which includes the whole object; clients see each cause twice.
 */
const CHECKED_TWICE: ReadonlySet<string> = new Set([
  "nodes",
  "persistentvolumes",
  "persistentvolumeclaims",
  "replicationcontrollers",
  "daemonsets.apps",
  "replicasets.apps",
  "jobs.batch",
  "networkpolicies.networking.k8s.io",
  "roles.rbac.authorization.k8s.io",
  "clusterroles.rbac.authorization.k8s.io",
  "rolebindings.rbac.authorization.k8s.io",
  "clusterrolebindings.rbac.authorization.k8s.io",
  "csinodes.storage.k8s.io",
  "csistoragecapacities.storage.k8s.io",
  "storageclasses.storage.k8s.io",
  "volumeattachments.storage.k8s.io",
]);

/** What is checked of the objects of a kind. */
export type Validators = Required<
  Pick<ResourceDefinition, "validateCreate" | "validateUpdate">
>;

function typeOf({ apiVersion = "", kind = "" }: UntypedObject): GoType {
  return goType(definitionOfKind(apiVersion, kind) ?? "");
}

/** The validators of a resource, named as `deployments.apps` or `pods`. */
export function validatorsOf(resource: string): Validators {
  return {
    validateCreate: (object) =>
      typedCauses(typeOf(object), object, { part: "main" }),
    validateUpdate: (object, live, { subresource }) => {
      const type = typeOf(object);
      if (subresource === "status") {
        return typedCauses(type, object, { part: "status" });
      }
      const causes = typedCauses(type, object, { part: "main" });
      const changes = changeCauses(resource, object, live);
      return CHECKED_TWICE.has(resource)
        ? [...causes, ...causes, ...changes]
        : [...causes, ...changes];
    },
  };
}
