import type { UntypedObject } from "../../../api/object.ts";
import type { ResourceDefinition } from "../../registry.ts";
import { definitionOfKind, type GoType, goType } from "../go_types.ts";
import { typedCauses } from "./typed_validation.ts";
import { changeCauses } from "./update_rules.ts";

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
      return [
        ...changeCauses(resource, object, live),
        ...typedCauses(type, object, { part: "main" }),
      ];
    },
  };
}
