import { matchesLabels } from "../../core/api/label_selector.ts";
import { checkOption } from "../../core/api/options.ts";

/** Reference from one object to another, possibly in another namespace. */
export type CrossReference = Parameters<typeof checkAccess>[0];

/** Error for a reference that the access list of an object does not allow. */
export class AccessDeniedError extends Error {
  /**
   * Creates the error.
   *
   * @param reference The refused reference.
   */
  constructor({ from, to }: CrossReference) {
    super(
      `Cannot refer to an object in namespace ${to.namespace}: its access list must include the referring namespace: received ${from.namespace}`,
    );
    this.name = "AccessDeniedError";
  }
}

/**
 * Checks that an object may be referenced: always from its own namespace, and
 * from others if its access list matches their labels. The rules are those of
 * Flux.
 *
 * @param reference The reference.
 * @throws {TypeError} If the reference is incomplete.
 * @throws {AccessDeniedError} If it is not allowed.
 *
 * @example A reference from another namespace
 * ```ts
 * import { checkAccess } from "@coracle/operator/workflows";
 *
 * const from = { namespace: "shop", labels: { team: "blue" } };
 * const blue = { namespaceSelectors: [{ matchLabels: { team: "blue" } }] };
 * checkAccess({ from, to: { namespace: "data", accessFrom: blue } });
 * ```
 */
export function checkAccess(reference: {
  /** Namespace of the referring object, and its labels. */
  readonly from: {
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  };
  /** Referenced object. */
  readonly to: {
    /** Namespace of the object. Defaults to that of the referring object. */
    readonly namespace?: string | undefined;
    /**
     * Access list of the object. Without one, only references from the same
     * namespace are allowed.
     */
    readonly accessFrom?: {
      /**
       * Selectors of the allowed namespaces; a namespace must match one of them.
       * A selector without labels matches every namespace.
       */
      readonly namespaceSelectors: readonly {
        readonly matchLabels?: Readonly<Record<string, string>> | undefined;
      }[];
    } | undefined;
  };
}): void {
  const subject = "checkAccess()";
  checkOption(reference, "object", { name: "reference", subject });
  const { from, to } = reference;
  checkOption(from, "object", { name: "from", subject });
  checkOption(to, "object", { name: "to", subject });
  if (!to.namespace || to.namespace === from.namespace) return;
  const allowed = to.accessFrom?.namespaceSelectors.some(({ matchLabels }) =>
    matchesLabels({ matchLabels }, from.labels)
  );
  if (!allowed) throw new AccessDeniedError(reference);
}
