/**
 * Validation of the built-in kinds with kube-apiserver's messages in its order.
 * Rules are listed by definition and area (`*_rules.ts`); `typed_validation.ts`
 * walks the object and runs them with the path of each struct (`FieldPath`,
 * upstream's `field.Path` with its `field.ErrorList`); `update_rules.ts` has the
 * immutable fields. Pure functions of objects; must not import storage, requests
 * or HTTP.
 *
 * @module
 */
import type { UntypedObject } from "../../../core/api/object.ts";
import type { StatefulSet } from "../../../core/kinds/apps_v1.ts";
import type { ResourceDefinition } from "../../registry.ts";
import { definitionOfKind, type GoType, goType } from "../go_types.ts";
import { changeCauses, typedCauses } from "./typed_validation.ts";

/**
 * Resources that kube-apiserver validates twice on update: the object as a
 * whole and within the update. Clients receive each cause twice.
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

/** Validation hooks of a resource. */
export type Validators = Required<
  Pick<ResourceDefinition, "validateCreate" | "validateUpdate">
>;

function typeOf({ apiVersion = "", kind = "" }: UntypedObject): GoType {
  return goType(definitionOfKind(apiVersion, kind) ?? "");
}

/** StatefulSet whose template has a volume for each claim, like its Pods. */
function withClaimedVolumes(object: UntypedObject): UntypedObject {
  const { spec } = object as unknown as StatefulSet;
  const claims = spec?.volumeClaimTemplates ?? [];
  const pod = spec?.template?.spec;
  if (claims.length === 0 || !pod) return object;
  const claimed = new Map(claims.map(({ metadata }) => {
    const name = metadata?.name ?? "";
    return [name, { name, persistentVolumeClaim: { claimName: name } }];
  }));
  const others = (pod.volumes ?? []).filter(({ name }) => !claimed.has(name));
  const volumes = [...claimed.values(), ...others];
  const template = { ...spec.template, spec: { ...pod, volumes } };
  return { ...object, spec: { ...spec, template } } as UntypedObject;
}

/** Validation hooks of a resource, named like `deployments.apps` or `pods`. */
export function validatorsOf(resource: string): Validators {
  const mainCauses = (object: UntypedObject) =>
    typedCauses(
      typeOf(object),
      resource === "statefulsets.apps" ? withClaimedVolumes(object) : object,
      { part: "main" },
    );
  return {
    validateCreate: mainCauses,
    validateUpdate: (object, live, { subresource }) => {
      if (subresource === "status") {
        return typedCauses(typeOf(object), object, { part: "status" });
      }
      const causes = mainCauses(object);
      const changes = changeCauses(
        subresource === "resize" ? "pods/resize" : resource,
        object,
        live,
      );
      return CHECKED_TWICE.has(resource)
        ? [...causes, ...causes, ...changes]
        : [...causes, ...changes];
    },
  };
}
