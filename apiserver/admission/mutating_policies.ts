import type { MutatedObject, Round } from "./mutated_object.ts";
import type { PolicyHook } from "./policy_hooks.ts";

/** Runs one round of the mutating policies that match a request. */
export async function mutateByPolicies(
  _object: MutatedObject,
  _policies: readonly PolicyHook[],
  _how: { readonly round: Round; readonly again: boolean },
): Promise<void> {
}
