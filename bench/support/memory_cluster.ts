import { Buffer } from "node:buffer";
import type { ResolvedKind } from "@coracle/operator/kinds";
import { Client } from "../../core/client/client.ts";

/** Options of {@linkcode memoryCluster}. */
export interface MemoryClusterOptions {
  /** The only kind that is served. */
  readonly kind: ResolvedKind;
  /** Answer to each list. */
  readonly list: Uint8Array;
  /** Bytes of a watch. */
  readonly changes: AsyncIterable<Uint8Array>;
  /** Returns the object after a patch. */
  readonly patched?: (() => Uint8Array) | undefined;
}

/**
 * Client of a cluster in memory, so that neither a socket nor a server is
 * measured.
 */
export function memoryCluster(options: MemoryClusterOptions): Client {
  const { kind, list, changes, patched } = options;
  const resource = {
    name: kind.plural,
    kind: kind.kind,
    namespaced: kind.scope === "Namespaced",
    verbs: ["list", "watch"],
  };
  const discovery = Buffer.from(JSON.stringify({
    kind: "APIResourceList",
    resources: [resource],
  }));
  const answer = (method: string, path: string) => {
    if (method === "PATCH" && patched !== undefined) return once(patched());
    if (path.includes("watch=")) return changes;
    return once(path.includes(`/${kind.plural}`) ? list : discovery);
  };
  return new Client({
    transport: {
      send: ({ method, path }) =>
        Promise.resolve({
          status: 200,
          headers: { "content-type": "application/json" },
          body: answer(method, path),
          cancel: () => Promise.resolve(),
        }),
      close: () => Promise.resolve(),
    },
  });
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
