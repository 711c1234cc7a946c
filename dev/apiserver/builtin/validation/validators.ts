/**
 * Validation of the built-in kinds with kube-apiserver's messages in its order.
 * Rules are data (`tools/kubernetes/data/rules`); `typed_validation.ts`
 * walks the object and runs them with the path of each struct (`FieldPath`,
 * upstream's `field.Path` with its `field.ErrorList`). Pure functions of objects; must not import storage, requests
 * or HTTP.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { StatefulSet } from "@coracle/operator/kinds";
import type { StatusCause } from "@coracle/operator/internal";
import type { HookContext, ResourceDefinition } from "../../registry.ts";
import { definitionOfKind, type GoType, goType } from "../go_types.ts";
import { changeCauses, newCauses, typedCauses } from "./typed_validation.ts";
import type { ResourceData } from "../data/resource_table.ts";

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
export function validatorsOf(
  resource: string,
  { isValidatedTwice }: Pick<ResourceData, "isValidatedTwice">,
): Validators {
  const mainCauses = (
    object: UntypedObject,
    { isDeclarative }: Pick<HookContext, "isDeclarative">,
    declared: StatusCause[],
  ) =>
    typedCauses(
      typeOf(object),
      resource === "statefulsets.apps" ? withClaimedVolumes(object) : object,
      { part: "main", isDeclarative, declared },
    );
  return {
    validateCreate: (object, context) => {
      const declared: StatusCause[] = [];
      return [
        ...mainCauses(object, context, declared),
        ...newCauses(resource, object, context),
        ...declared,
      ];
    },
    validateUpdate: (object, live, context) => {
      const { subresource, isDeclarative } = context;
      const declared: StatusCause[] = [];
      if (subresource === "status") {
        return [
          ...typedCauses(typeOf(object), object, {
            part: "status",
            isDeclarative,
            declared,
          }),
          ...changeCauses(`${resource}/status`, object, live, context),
          ...declared,
        ];
      }
      const causes = mainCauses(object, context, declared);
      const changes = changeCauses(
        subresource === "resize" ? "pods/resize" : resource,
        object,
        live,
        context,
      );
      return [
        ...causes,
        ...isValidatedTwice ? causes : [],
        ...changes,
        ...declared,
      ];
    },
  };
}
