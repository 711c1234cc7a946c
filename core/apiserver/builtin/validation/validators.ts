import type { ResourceDefinition } from "../../registry.ts";

/** What is checked of the objects of a kind. */
export type Validators = Pick<
  ResourceDefinition,
  "validateCreate" | "validateUpdate"
>;

/** The validators of a resource, named as `deployments.apps` or `pods`. */
export function validatorsOf(_resource: string): Validators {
  return {};
}
