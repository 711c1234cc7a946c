import type { Job } from "../../../core/kinds/batch_v1.ts";
import type { Pod } from "../../../core/kinds/core_v1.ts";

type Policy = NonNullable<NonNullable<Job["spec"]>["podFailurePolicy"]>;

/** Action of a Job's failure policy for a failed pod; undefined if no rule matches. */
export function failureAction(
  pod: Pod,
  policy: Policy | undefined,
): { readonly action: string; readonly message: string } | undefined {
  if (pod.status?.phase !== "Failed") return undefined;
  const { namespace, name } = pod.metadata;
  for (const [index, rule] of policy?.rules?.entries() ?? []) {
    const { action, onExitCodes, onPodConditions = [] } = rule;
    const matching = `matching ${action} rule at index ${index}`;
    if (onExitCodes) {
      const { containerName, operator, values = [] } = onExitCodes;
      const failed = [
        ...pod.status.initContainerStatuses ?? [],
        ...pod.status.containerStatuses ?? [],
      ].find(({ name, state }) => {
        const code = state?.terminated?.exitCode ?? 0;
        return code !== 0 && (!containerName || containerName === name) &&
          values.includes(code) === (operator === "In");
      });
      if (failed) {
        const { exitCode } = failed.state?.terminated ?? {};
        const message =
          `Container ${failed.name} for pod ${namespace}/${name} failed with exit code ${exitCode} ${matching}`;
        return { action, message };
      }
      continue;
    }
    const condition = onPodConditions.find(({ type, status = "True" }) =>
      pod.status?.conditions?.some((one) =>
        one.type === type && one.status === status
      )
    );
    if (condition) {
      const message =
        `Pod ${namespace}/${name} has condition ${condition.type} ${matching}`;
      return { action, message };
    }
  }
  return undefined;
}
