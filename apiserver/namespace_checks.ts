import type { UntypedObject } from "../core/api/object.ts";
import type { ResourceRequest } from "./request/resource_request.ts";
import { subjectOf } from "./request/resource_request.ts";
import type { GroupResource } from "./registry.ts";
import { forbidden, notFound, StatusError } from "./status.ts";

/** Resource of namespaces. */
export const NAMESPACES: GroupResource = { group: "", plural: "namespaces" };

/** Namespaces that cannot be deleted. */
const PROTECTED_NAMESPACES: ReadonlySet<string> = new Set([
  "default",
  "kube-public",
  "kube-system",
]);

/**
 * Whether objects of a resource are kept by `spec.finalizers` until their
 * content is deleted: only namespaces are.
 */
export function holdsContent({ group, plural }: GroupResource): boolean {
  return group === "" && plural === "namespaces";
}

/**
 * Checks that a new object's namespace exists and is not terminating.
 *
 * @throws {StatusError} 404 or 403 if not.
 */
export function checkNamespaceAccepts(
  request: ResourceRequest,
  object: UntypedObject,
): void {
  const { definition, context } = request;
  const { namespace, name } = object.metadata;
  if (definition.scope !== "Namespaced" || namespace === undefined) return;
  const stored = context.store.collection(NAMESPACES).get(namespace);
  if (stored === undefined) {
    throw notFound({ group: "", kind: "namespaces", name: namespace });
  }
  if (!stored.terminating) return;
  const error = forbidden(
    subjectOf(request, name),
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
  throw new StatusError({
    ...error.status,
    details: {
      ...error.status.details,
      causes: [{
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      }],
    },
  });
}

/**
 * Checks that an object may be deleted.
 *
 * @throws {StatusError} 403 for a protected namespace.
 */
export function checkMortal(request: ResourceRequest): void {
  const { definition, name = "" } = request;
  if (holdsContent(definition) && PROTECTED_NAMESPACES.has(name)) {
    throw forbidden(subjectOf(request), "this namespace may not be deleted");
  }
}
