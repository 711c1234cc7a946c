import type { Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyText } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import { messageWithCause } from "../../core/error_text.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import type { ObjectReference } from "../kstatus/wait_for.ts";

interface InventoryObject extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
}

const INVENTORY_KIND: Kind<InventoryObject> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  scope: "Namespaced",
};

/** Reference to the ConfigMap of an inventory. */
export function inventoryReference(
  key: { readonly name: string; readonly namespace: string },
): ObjectReference {
  return { apiVersion: "v1", kind: INVENTORY_KIND.kind, ...key };
}

/** Field of the ConfigMap that lists the objects. */
const FIELD = "inventory";

/** List of the objects of a set, which a ConfigMap keeps. */
export interface SetInventory {
  /** Objects of the last apply, and those of one that failed since. */
  readonly objects: readonly ObjectReference[];
  /** Writes the list, unless it is the same. */
  keep(objects: readonly ObjectReference[]): Promise<void>;
}

/**
 * Reads the inventory of a set.
 *
 * @param client The client of the cluster.
 * @param key Name and namespace of the ConfigMap.
 * @param options Labels of the set, which the ConfigMap has too; field manager and
 * signal of the requests.
 * @throws {Error} If the ConfigMap is that of another set, or lists no objects.
 */
export async function readInventory(
  client: Client,
  key: { readonly name: string; readonly namespace: string },
  { labels, ...options }: {
    readonly labels: Readonly<Record<string, string>>;
    readonly fieldManager?: string | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<SetInventory> {
  const { signal } = options;
  const stored = await client.find(INVENTORY_KIND, key, { signal });
  let text = stored?.data?.[FIELD];
  const place = `the inventory of the set in ConfigMap ${keyText(key)}`;
  const isOurs = Object.entries(labels).every(([name, value]) =>
    stored?.metadata.labels?.[name] === value
  );
  if (text !== undefined && !isOurs) {
    throw new Error(
      `Cannot use ${place}: it is that of another set, as its labels say`,
    );
  }
  const objects = text === undefined ? [] : referencesFrom(text);
  if (objects === undefined) {
    throw new Error(
      `Cannot read ${place}: its field "${FIELD}" must list objects with apiVersion, kind and name as JSON`,
    );
  }
  return {
    objects,
    async keep(objects) {
      const lines = objects.map(({ apiVersion, kind, namespace, name }) =>
        JSON.stringify({ apiVersion, kind, namespace, name })
      );
      const next = `[\n${[...new Set(lines)].sort().join(",\n")}\n]\n`;
      if (next === text) return;
      const metadata = { ...key, labels };
      const data = { [FIELD]: next };
      try {
        await client.apply(INVENTORY_KIND, { metadata, data }, {
          ...options,
          force: true,
        });
      } catch (error) {
        signal?.throwIfAborted();
        throw new Error(`Cannot keep ${place}: ${messageWithCause(error)}`, {
          cause: error,
        });
      }
      text = next;
    },
  };
}

/** References of a list; undefined if the text is not a list of them. */
function referencesFrom(text: string): ObjectReference[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(list) && list.every(isReference) ? list : undefined;
}

function isReference(value: unknown): value is ObjectReference {
  if (!isJsonObject(value)) return false;
  const { apiVersion, kind, name, namespace = "" } = value;
  return [apiVersion, kind, name].every((text) =>
    typeof text === "string" && text !== ""
  ) && typeof namespace === "string";
}
