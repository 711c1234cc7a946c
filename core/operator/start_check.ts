import { ApiError } from "../api/api_error.ts";
import {
  apiVersionOf,
  type Kind,
  kindText,
  type ResolvedKind,
  untyped,
} from "../api/kind.ts";
import type { Client } from "../client/client.ts";
import type { NamespaceSet } from "../controller/event_source.ts";

/**
 * Looks whether a kind can be watched, and says what to do if not: the server
 * must serve it, with the scope that the program thinks, and let us list it.
 *
 * @param client The cluster.
 * @param kind The kind of a controller.
 * @param namespaces Where it is to be watched.
 * @throws {Error} If it cannot be watched, with what is missing.
 */
export async function checkWatchable(
  client: Client,
  kind: Kind,
  namespaces: NamespaceSet,
): Promise<void> {
  const served = await servedKind(client, kind);
  if (kind.scope !== undefined && kind.scope !== served.scope) {
    throw new TypeError(
      `Cannot watch ${
        kindText(kind)
      }: the server has it with another scope, so change the definition of the kind or of its CustomResourceDefinition: received ${kind.scope} for ${served.scope}`,
    );
  }
  const places = namespaces === "all" || served.scope === "Cluster"
    ? [undefined]
    : namespaces;
  for (const namespace of places) {
    try {
      await client.list(kind, { namespace, limit: 1 });
    } catch (error) {
      if (!ApiError.is(error) || !error.isForbidden) throw error;
      throw new Error(
        `Cannot watch ${kindText(kind)}${
          namespace === undefined ? "" : ` in namespace ${namespace}`
        }: the right is missing, so give the operator's account ${
          namespace === undefined ? "a ClusterRole" : "a Role"
        } with ${ruleText(served)}: received ${error.message}`,
        { cause: error },
      );
    }
  }
}

async function servedKind(client: Client, kind: Kind): Promise<ResolvedKind> {
  const { group, version } = kind;
  try {
    return await client.resolve(untyped({ group, version, kind: kind.kind }));
  } catch (error) {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
    throw new Error(
      `Cannot watch ${
        kindText(kind)
      }: the server does not serve it, so install its CustomResourceDefinition first, or let the operator do it with { install: true }: received ${error.message}`,
      { cause: error },
    );
  }
}

/** The rule of a role that lets one watch a kind. */
function ruleText({ group, plural }: ResolvedKind): string {
  return `{ apiGroups: ["${group}"], resources: ["${plural}"], verbs: ["get", "list", "watch"] }`;
}

/** What is missing when caches do not fill in time. */
export function syncTimeoutError(
  controller: { readonly name: string; readonly kind: Kind },
  timeout: number,
  lastError: string | undefined,
): Error {
  return new Error(
    `Cannot start controller "${controller.name}": its caches (${
      apiVersionOf(controller.kind)
    } ${controller.kind.kind} and its event sources) were not complete within ${timeout} ms: received ${
      lastError ?? "no error"
    }`,
  );
}
