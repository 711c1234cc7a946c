import type { GroupResource } from "./registry.ts";

/** Resource of namespaces. */
export const NAMESPACES: GroupResource = { group: "", plural: "namespaces" };

/**
 * Whether `spec.finalizers` keeps objects of a resource until their content is
 * deleted, as for namespaces only.
 */
export function holdsContent({ group, plural }: GroupResource): boolean {
  return group === "" && plural === "namespaces";
}
