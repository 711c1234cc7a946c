import { NAMESPACES } from "../namespace_checks.ts";
import { notFound, StatusError } from "../status.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";

/** Namespaces that cannot be deleted. */
const PROTECTED_NAMESPACES: ReadonlySet<string> = new Set([
  "default",
  "kube-public",
  "kube-system",
]);

/** Access reviews, which may be created in a missing namespace. */
const REVIEW = "localsubjectaccessreviews";

/**
 * Plug-in that rejects content of missing namespaces, new content of
 * terminating ones, and the deletion of the namespaces that every cluster
 * needs.
 */
export const NAMESPACE_LIFECYCLE: AdmissionPlugin = {
  name: "NamespaceLifecycle",
  operations: ["CREATE", "UPDATE", "DELETE"],
  mutate(attributes): void {
    const { request, operation, name } = attributes;
    const { definition, namespace } = request;
    if (namespace === undefined) {
      const protects = operation === "DELETE" && definition.group === "" &&
        definition.plural === NAMESPACES.plural;
      if (!protects || !PROTECTED_NAMESPACES.has(name)) return;
      throw refusal(attributes, "this namespace may not be deleted");
    }
    if (operation === "DELETE" || definition.plural === REVIEW) return;
    const stored = request.context.store.collection(NAMESPACES).get(namespace);
    if (stored === undefined) {
      throw notFound({ group: "", kind: "namespaces", name: namespace });
    }
    if (operation === "CREATE" && stored.terminating) {
      throw terminatingError(attributes, namespace);
    }
  },
};

function terminatingError(
  attributes: Attributes,
  namespace: string,
): StatusError {
  const { status } = refusal(
    attributes,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
  return new StatusError({
    ...status,
    details: {
      ...status.details,
      causes: [{
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      }],
    },
  });
}
