import { loadModule } from "@coracle/operator/internal";
import { ADMISSION_GROUP } from "../admission/hooks.ts";
import type { PolicyHook } from "../admission/hooks.ts";
import type { ApiContext } from "../api_context.ts";
import { answerOf } from "../settle.ts";
import { updateStored } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

/** Resource of validating policies. */
const POLICIES = {
  group: ADMISSION_GROUP,
  plural: "validatingadmissionpolicies",
};

/**
 * Starts the controller of validating admission policies, which checks the types
 * of their expressions and reports the result in their status.
 */
export function startPolicyController(context: ApiContext): WorkQueue<string> {
  const queue = new WorkQueue<string>(
    context,
    "Cannot check the types of a policy",
    (name) => checkTypes(context, name),
  );
  context.store.listen(({ type, object }, { resource: { group, plural } }) => {
    if (type === "DELETED") return;
    if (group !== POLICIES.group || plural !== POLICIES.plural) return;
    queue.add(object.name);
  });
  return queue;
}

function checkTypes(context: ApiContext, name: string): void {
  const { store, resources } = context;
  const stored = store.collection(POLICIES).get(name);
  if (stored === undefined) return;
  const policy = stored.parse() as PolicyHook & {
    readonly status?: { readonly observedGeneration?: number };
  };
  const { generation: observedGeneration = 0 } = policy.metadata;
  if ((policy.status?.observedGeneration ?? 0) >= observedGeneration) return;
  const warnings = answerOf(
    `types ${stored.uid} ${observedGeneration}`,
    async () => {
      const { expressionWarnings } = await loadModule(
        import("../admission/type_checking.ts"),
      );
      return await expressionWarnings(policy, resources);
    },
  );
  const typeChecking = warnings.length === 0
    ? {}
    : { expressionWarnings: warnings };
  updateStored(context, stored, {
    manager: "validatingadmissionpolicy-status",
    subresource: "status",
    next: (live) => ({
      ...live,
      status: { ...live.status as object, observedGeneration, typeChecking },
    }),
  });
}
