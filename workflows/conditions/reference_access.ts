import {
  labelRequirements,
  matchesLabels,
} from "../../core/api/label_selector.ts";
import { checkOption } from "../../core/api/options.ts";

/** Reference from one object to another, possibly in another namespace. */
export interface CrossReference {
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
}

/** An object does not let others refer to it from their namespace. */
export class AccessDeniedError extends Error {
  /**
   * Says which reference it is.
   *
   * @param reference What was refused.
   */
  constructor({ from, to }: CrossReference) {
    super(
      `Cannot refer to an object in namespace ${to.namespace}: its access list must let the namespace of the reference in: received ${from.namespace}`,
    );
    this.name = "AccessDeniedError";
  }
}

/**
 * Makes sure that an object may be referred to: from its own namespace always,
 * from another one if its access list lets the labels of that namespace in. The
 * rules are those of Flux.
 *
 * @param reference Who refers to what.
 * @throws {TypeError} If it does not say who refers to what.
 * @throws {AccessDeniedError} If it may not.
 *
 * @example Another namespace
 * ```ts
 * import { checkAccess } from "@coracle/operator/workflows";
 *
 * const from = { namespace: "shop", labels: { team: "blue" } };
 * const blue = { namespaceSelectors: [{ matchLabels: { team: "blue" } }] };
 * checkAccess({ from, to: { namespace: "data", accessFrom: blue } });
 * ```
 */
export function checkAccess(reference: CrossReference): void {
  const subject = "checkAccess()";
  checkOption(reference, "object", { name: "reference", subject });
  const { from, to } = reference;
  checkOption(from, "object", { name: "from", subject });
  checkOption(to, "object", { name: "to", subject });
  if (!to.namespace || to.namespace === from.namespace) return;
  const allowed = to.accessFrom?.namespaceSelectors.some(({ matchLabels }) =>
    matchesLabels(labelRequirements({ matchLabels }), from.labels ?? {})
  );
  if (!allowed) throw new AccessDeniedError(reference);
}
