import { ApiError } from "../../core/api/api_error.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/option_rules.ts";
import type { Client } from "../../core/client/client.ts";
import {
  type ObjectReference,
  referencedKind,
} from "../kstatus/object_reference.ts";
import { compareForApply } from "./apply_order.ts";
import {
  type AppliedChange,
  type ApplyAction,
  ApplySetError,
} from "./change_set.ts";
import {
  hasWish,
  isOwnedBy,
  ownerLabels,
  type SetOptions,
} from "./set_options.ts";

/** Options of {@linkcode pruneSet}. */
export interface PruneSetOptions extends Pick<SetOptions, "owner" | "signal"> {
  /**
   * Whether to find out only what would be deleted.
   *
   * @default {false}
   */
  readonly dryRun?: boolean | undefined;
  /**
   * Where what happened is added.
   *
   * @default {a new list}
   */
  readonly changes?: AppliedChange[] | undefined;
}

const RULES: OptionRules<PruneSetOptions> = {
  owner: "object",
  signal: "signal?",
  dryRun: "boolean?",
  changes: "array?",
};

/**
 * Deletes objects of a set, in the reverse of the order in which they are
 * applied: the whole set before its owner goes, or what is in it no longer.
 *
 * Only objects that bear the labels of the owner are deleted, and none with the
 * annotation `<group>/prune: disabled`. What is gone counts as deleted.
 *
 * @param client Speaks to the cluster.
 * @param references Which ones: the `inventory` of what was applied.
 * @param options Whose they are.
 * @returns What happened to each.
 * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
 * sense.
 * @throws {ApplySetError} If the server refuses a deletion.
 */
export async function pruneSet(
  client: Client,
  references: readonly ObjectReference[],
  options: PruneSetOptions,
): Promise<readonly AppliedChange[]> {
  const subject = "pruneSet()";
  checkOption(references, "array", { name: "references", subject });
  checkOptions(options, RULES, subject);
  ownerLabels(options.owner);
  const { signal, changes = [] } = options;
  for (const reference of references.toSorted(compareForApply).reverse()) {
    try {
      const action = await pruneObject(client, reference, options);
      changes.push({ reference, action, fields: [] });
    } catch (error) {
      signal?.throwIfAborted();
      throw new ApplySetError(error, { reference, changes });
    }
  }
  return changes;
}

async function pruneObject(
  client: Client,
  reference: ObjectReference,
  { owner, dryRun, signal }: PruneSetOptions,
): Promise<ApplyAction> {
  const kind = referencedKind(reference);
  const live = await client.find(kind, reference, { signal });
  if (live === undefined) return "deleted";
  const stays = !isOwnedBy(live, owner) ||
    hasWish(live, owner, ["prune", "disabled"]) ||
    hasWish(live, owner, ["apply", "ignore"]);
  if (stays) return "skipped";
  if (live.metadata.deletionTimestamp !== undefined) return "deleted";
  try {
    await client.delete(kind, reference, {
      dryRun,
      propagationPolicy: "Background",
      preconditions: { uid: live.metadata.uid },
      signal,
    });
  } catch (error) {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
  }
  return "deleted";
}
