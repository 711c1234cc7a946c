import { loadModule } from "../../core/clock.ts";
import { ADMISSION_GROUP } from "../admission/hooks.ts";
import type { PolicyHook } from "../admission/hook_types.ts";
import type { ApiContext } from "../api_context.ts";
import { answerOf, rethrowMissing } from "../settle.ts";
import { updateObject } from "../write/update.ts";
import { internalRequest, internalWrite } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

/** Resource of validating policies. */
const POLICIES = {
  group: ADMISSION_GROUP,
  plural: "validatingadmissionpolicies",
};

/**
 * Controller of validating admission policies: checks the types of their
 * expressions and reports the result in their status.
 */
export class PolicyController {
  readonly #context: ApiContext;
  readonly #queue: WorkQueue<string> = new WorkQueue((name) =>
    this.#reconcile(name)
  );

  /** Creates the controller; it observes the store from now on. */
  constructor(context: ApiContext) {
    this.#context = context;
    context.store.listen(
      ({ type, object }, { resource: { group, plural } }) => {
        if (type === "DELETED") return;
        if (group !== POLICIES.group || plural !== POLICIES.plural) return;
        this.#queue.add(object.name, object.name);
      },
    );
  }

  stop(): void {
    this.#queue.stop();
  }

  #reconcile(name: string): void {
    const { store, resources, logger } = this.#context;
    const definition = resources.find(POLICIES.group, POLICIES.plural);
    const stored = store.collection(POLICIES).get(name);
    if (stored === undefined || definition === undefined) return;
    const policy = stored.parse() as PolicyHook & {
      readonly status?: { readonly observedGeneration?: number };
    };
    const { generation = 0 } = policy.metadata;
    if ((policy.status?.observedGeneration ?? 0) >= generation) return;
    try {
      const warnings = answerOf(
        `types ${stored.uid} ${generation}`,
        async () => {
          const { expressionWarnings } = await loadModule(
            import("../admission/type_checking.ts"),
          );
          return await expressionWarnings(policy, resources);
        },
      );
      updateObject(
        internalRequest(this.#context, definition, {
          namespace: "",
          name,
          subresource: "status",
        }),
        {
          options: internalWrite("validatingadmissionpolicy-status"),
          next: (live) => ({
            ...live,
            status: {
              ...live.status as object,
              observedGeneration: generation,
              typeChecking: warnings.length === 0
                ? {}
                : { expressionWarnings: warnings },
            },
          }),
        },
      );
    } catch (error) {
      rethrowMissing(error);
      logger.warn("Cannot check the types of a policy", { name, error });
    }
  }
}
