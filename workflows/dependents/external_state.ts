import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf } from "../../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { watch } from "../../sources/watch_source.ts";

/** The key of a resource that is the only one of its primary. */
export const ONLY_KEY = "id";

/**
 * Where the ids of outside resources are kept, for systems that give ids of
 * their own: written right after a resource was made, so that it is not made
 * twice, and removed after it was deleted.
 */
export interface ExternalState<P extends KubernetesObject> {
  /** The ids that are kept; none for a primary that has no resource. */
  read(primary: P, ctx: Context<P>): MaybePromise<ReadonlyMap<string, string>>;
  /** Keeps these ids and no others. */
  write(
    primary: P,
    ctx: Context<P>,
    ids: ReadonlyMap<string, string>,
  ): Promise<void>;
  /**
   * The sources that it reads from.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource<P>[] | undefined;
}

/**
 * Keeps ids in a ConfigMap beside the primary, which owns it.
 *
 * @param suffix What stands behind the primary's name in that of the ConfigMap.
 * @throws {TypeError | RangeError} If the suffix is no text, or empty.
 *
 * @example
 * ```ts
 * import { configMapState } from "@coracle/operator/workflows";
 *
 * const state = configMapState("-account");
 * if (state.sources?.length !== 1) throw new Error("Unexpected sources");
 * ```
 */
export function configMapState<P extends KubernetesObject>(
  suffix: string,
): ExternalState<P> {
  checkOption(suffix, "name", { name: "suffix", subject: "configMapState()" });
  const source = watch<P, ConfigMap>(ConfigMap, {
    name: `state${suffix}`,
    startPriority: "loader",
  });
  const keyIn = (primary: P) => ({
    name: `${primary.metadata.name}${suffix}`,
    namespace: primary.metadata.namespace,
  });
  return {
    sources: [source],
    async read(primary) {
      const map = await source.get?.(keyIn(primary));
      return new Map(Object.entries(map?.data ?? {}));
    },
    async write(primary, ctx, ids) {
      if (ids.size === 0) await ctx.delete(ConfigMap, keyIn(primary));
      else {
        await ctx.apply(ConfigMap, {
          metadata: keyIn(primary),
          data: Object.fromEntries(ids),
        });
      }
    },
  };
}

const RULES: OptionRules<
  NonNullable<Parameters<typeof statusState>[2]>
> = { many: "boolean?" };

/**
 * Keeps ids in a field of the primary's own status, where every later run sees
 * them at once. A reconciler that patches the status leaves the field out: then
 * it stays as it is.
 *
 * @param kind The kind of the primaries; their status must have the field.
 * @param field The name of the field.
 * @param options What the field holds.
 * @throws {TypeError | RangeError} If the kind is none, the field has no name, or
 * an option is unknown or of another type.
 *
 * @example
 * ```ts
 * import { untyped } from "@coracle/operator/core";
 * import { statusState } from "@coracle/operator/workflows";
 *
 * const Database = untyped({ group: "example.com", version: "v1", kind: "Database" });
 * const state = statusState(Database, "accountId");
 * if (state.sources !== undefined) throw new Error("Unexpected sources");
 * ```
 */
export function statusState<P extends KubernetesObject>(
  kind: Kind<P>,
  field: string,
  options: { readonly many?: boolean | undefined } = {},
): ExternalState<P> {
  const subject = "statusState()";
  checkKind(kind, subject);
  checkOption(field, "name", { name: "field", subject });
  checkOptions(options, RULES, subject);
  const { many = false } = options;
  const stored = (primary: P): Readonly<Record<string, unknown>> => {
    const { status } = primary as {
      readonly status?: Readonly<Record<string, unknown>> | undefined;
    };
    const value = status?.[field] ?? {};
    return typeof value === "object"
      ? value as Record<string, unknown>
      : { [ONLY_KEY]: value };
  };
  return {
    read(primary, ctx) {
      const entries = Object.entries(stored(ctx.current ?? primary));
      return new Map(
        entries.filter((entry): entry is [string, string] =>
          typeof entry[1] === "string" && entry[1] !== ""
        ),
      );
    },
    async write(primary, ctx, ids) {
      const before = Object.keys(stored(ctx.current ?? primary));
      const gone = before.filter((key) => !ids.has(key))
        .map((key) => [key, null]);
      const value = many
        ? Object.fromEntries([...ids, ...gone])
        : ids.get(ONLY_KEY) ?? null;
      // The uid keeps a primary that was made anew from getting the ids of the
      // one before it.
      const { uid } = primary.metadata;
      const body = { metadata: { uid }, status: { [field]: value } };
      await ctx.patch(kind, keyOf(primary), body, { subresource: "status" });
    },
  };
}
