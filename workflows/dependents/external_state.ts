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
import { watch } from "../../core/controller/watch/watch_source.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";

/** Key of a resource that is the only one of its primary. */
export const ONLY_KEY = "id";

/**
 * Store for the ids of external resources, for systems that assign ids. An id
 * is written right after the resource was created, so that it is not created
 * twice, and removed after it was deleted.
 */
export interface ExternalState<P extends KubernetesObject> {
  /**
   * Reads the ids by key; an empty map for a primary without resources. A
   * single resource has the key `id`.
   */
  read(primary: P, ctx: Context<P>): MaybePromise<ReadonlyMap<string, string>>;
  /** Replaces the stored ids. */
  write(
    ids: ReadonlyMap<string, string>,
    primary: P,
    ctx: Context<P>,
  ): Promise<void>;
  /**
   * Event sources from which the ids are read.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource<P>[] | undefined;
}

/**
 * Creates a store for ids in a ConfigMap that the primary owns.
 *
 * @param suffix The suffix of the ConfigMap's name, after the name of the
 * primary.
 * @throws {TypeError | RangeError} If the suffix is no string, or empty.
 *
 * @example
 * ```ts
 * import { configMapState } from "@coracle/operator/workflows";
 *
 * const state = configMapState("-account");
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
    async write(ids, primary, ctx) {
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
 * Creates a store for ids in a status field of the primary, where they are
 * visible to the next run. A reconciler must leave the field out of its results, so
 * that it is not changed.
 *
 * @param kind The kind of the primaries; their status must have the field.
 * @param field The name of the field.
 * @param options `many` makes the field an object with the id of each resource,
 * instead of a single id as a string (false by default).
 * @throws {TypeError | RangeError} If the kind is invalid, the field has no
 * name, or an option is unknown or of another type.
 *
 * @example
 * ```ts
 * import { untyped } from "@coracle/operator/core";
 * import { statusState } from "@coracle/operator/workflows";
 *
 * const Database = untyped({ group: "example.com", version: "v1", kind: "Database" });
 * const state = statusState(Database, "accountId");
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
    const { status } = primary as { readonly status?: unknown };
    const value = isJsonObject(status) ? status[field] : undefined;
    if (many || typeof value !== "string") {
      // A user may have edited the field.
      return isJsonObject(value) ? value : {};
    }
    return { [ONLY_KEY]: value };
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
    async write(ids, primary, ctx) {
      const before = Object.keys(stored(ctx.current ?? primary));
      const gone = before.filter((key) => !ids.has(key))
        .map((key) => [key, null]);
      const value = many
        ? Object.fromEntries([...ids, ...gone])
        : ids.get(ONLY_KEY) ?? null;
      // The uid keeps a recreated primary from getting the ids of its
      // predecessor.
      const { uid } = primary.metadata;
      const body = { metadata: { uid }, status: { [field]: value } };
      await ctx.patch(kind, keyOf(primary), body, {
        subresource: "status",
        // The `setStatus` of a reconciler keeps what other managers wrote.
        fieldManager: "coracle-state",
      });
    },
  };
}
