import type { GroupResource } from "./registry.ts";

/** Resource of namespaces. */
export const NAMESPACES: GroupResource = { group: "", plural: "namespaces" };

/**
 * Whether objects of a resource are kept by `spec.finalizers` until their
 * content is deleted: only namespaces are.
 */
export function holdsContent({ group, plural }: GroupResource): boolean {
  return group === "" && plural === "namespaces";
}
