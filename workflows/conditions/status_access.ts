import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf } from "../../core/api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/option_rules.ts";
import type { Client } from "../../core/client/client.ts";
import type { Context } from "../../core/controller/reconciler.ts";
import type { PatchBody } from "../../core/controller/resource_client.ts";

/** Which part of an object a patch is about. */
export type ObjectPart = "object" | "status";

/** How one object is read and written; see {@linkcode accessByContext}. */
export interface StatusAccess<P extends KubernetesObject> {
  /** The object as the server has it now. */
  read(): Promise<P>;
  /**
   * Changes one part by a JSON merge patch.
   *
   * @param body The patch; of the status part only its `status` counts.
   * @param part Which part.
   */
  patch(body: object, part: ObjectPart): Promise<P>;
}

/**
 * Access to the primary of a run: what is written is seen by later reads of the
 * controller's cache at once, and triggers no further run.
 *
 * @param kind The kind of the primary.
 * @param ctx The context of the run.
 */
export function accessByContext<P extends KubernetesObject>(
  kind: Kind<P>,
  ctx: Context<P>,
): StatusAccess<P> {
  return {
    read: () => ctx.client.get(kind, ctx.key, { signal: ctx.signal }),
    patch: (body, part) =>
      // It was matched with what was read, which is newer than the cache.
      ctx.patch(kind, ctx.key, body, {
        type: "merge",
        match: false,
        ...(part === "status" && { subresource: part }),
      }),
  };
}

/** What {@linkcode accessByClient} works with. */
export interface ClientAccessOptions {
  /** Speaks to the cluster. */
  readonly client: Client;
  /**
   * Whose fields are written.
   *
   * @default {the client's `fieldManager`}
   */
  readonly fieldManager?: string | undefined;
  /** Ends the requests when it fires. */
  readonly signal?: AbortSignal | undefined;
}

const CLIENT_PARTS: OptionRules<Pick<Client, "get" | "patch">> = {
  get: "function",
  patch: "function",
};
const RULES: OptionRules<ClientAccessOptions> = {
  client: "object",
  fieldManager: "name?",
  signal: "signal?",
};

/**
 * Access to an object outside of a run, by a client alone.
 *
 * @param kind The kind of the object.
 * @param object Which object; only this incarnation is read.
 * @param options The client, and how it writes.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 */
export function accessByClient<P extends KubernetesObject>(
  kind: Kind<P>,
  object: P,
  options: ClientAccessOptions,
): StatusAccess<P> {
  checkKind(kind, "accessByClient()");
  checkOptions(options, RULES, "accessByClient()");
  const { client, fieldManager, signal } = options;
  checkParts(client, CLIENT_PARTS, "accessByClient(), client");
  const key = keyOf(object);
  return {
    read: () => client.get(kind, key, { signal }),
    patch(body, part) {
      const writer = part === "status" ? client.status : client;
      return writer.patch(kind, key, body as PatchBody<P>, {
        type: "merge",
        fieldManager,
        signal,
      });
    },
  };
}
