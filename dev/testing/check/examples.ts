/**
 * Example objects, given or generated, that a server accepts.
 *
 * @module
 */
import { untyped, type UntypedObject } from "@coracle/operator/client";
import {
  crdManifest,
  type DefinedKind,
  installCrd,
} from "@coracle/operator/crd";
import {
  isJsonObject,
  type JsonObject,
  parseApiVersion,
} from "@coracle/operator/internal";
import { ApiServer } from "../../apiserver/server.ts";
import { conversionConfig, conversionServices } from "../conversion_service.ts";
import type { OperatorSource } from "./operator_source.ts";
import { metadataOf } from "./state.ts";
import { type Accepts, generatedObjects } from "./workload.ts";

/** Server for dry runs that determine which objects are valid. */
export interface ScratchServer {
  readonly accepts: Accepts;
  /** Applies an object, which stays. */
  apply(object: JsonObject): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server with the given kinds and no controllers. */
export async function scratchServer(
  kinds: readonly DefinedKind[],
): Promise<ScratchServer> {
  const server = await ApiServer.start({
    port: false,
    controllers: [],
    establishingDelay: 0,
    seed: 1,
    services: conversionServices(kinds),
  });
  const { client } = server;
  for (const kind of kinds) {
    await installCrd(client, kind, { conversion: conversionConfig(kind) });
  }
  const kindOf = ({ apiVersion, kind }: JsonObject) =>
    untyped({ ...parseApiVersion(String(apiVersion)), kind: String(kind) });
  const apply = async (object: JsonObject, dryRun = false) =>
    void await client.apply(
      kindOf(object),
      object as unknown as UntypedObject,
      { force: true, fieldManager: "user", dryRun },
    );
  const accepts: Accepts = async (object, from) => {
    try {
      if (from === undefined) {
        await apply(object, true);
        return true;
      }
      await apply(from);
      try {
        await apply(object, true);
        return true;
      } finally {
        const { namespace, name } = metadataOf(from);
        await client.delete(kindOf(from), {
          name: String(name),
          ...(namespace !== undefined && { namespace: String(namespace) }),
        });
      }
    } catch {
      return false;
    }
  };
  return { accepts, apply, close: () => server.stop() };
}

/**
 * Objects of the workload: the given ones, or a generated one for each primary
 * kind with a schema.
 */
export async function exampleObjects({ given, source, server }: {
  readonly given: readonly JsonObject[] | undefined;
  readonly source: OperatorSource;
  readonly server: ScratchServer;
}): Promise<readonly JsonObject[]> {
  if (given !== undefined && given.length > 0) {
    return given.map((object) => inNamespace(object, source));
  }
  const found: JsonObject[] = [];
  for (const kind of source.kinds) {
    const isPrimary = source.primaries.some((one) =>
      one.group === kind.group && one.kind === kind.kind
    );
    if (!isPrimary) continue;
    for (const object of generatedObjects(crdManifest(kind))) {
      if (!await server.accepts(object)) continue;
      found.push(object);
      break;
    }
  }
  return found;
}

/**
 * Applies examples in their order, since one may need another, as its namespace.
 *
 * @throws {Error} If the server refuses one of them.
 */
export async function requireAccepted(
  objects: readonly JsonObject[],
  kinds: readonly DefinedKind[],
): Promise<void> {
  const server = await scratchServer(kinds);
  try {
    for (const object of objects) await server.apply(object);
  } catch (error) {
    const { message } = error as Error;
    throw new Error(
      `Cannot check the operator: the API server must accept its examples: received ${message}`,
      { cause: error },
    );
  } finally {
    await server.close();
  }
}

/** Built-in cluster-scoped kinds that examples may have. */
const CLUSTER_SCOPED =
  /^(Namespace|Node|PersistentVolume|StorageClass|ClusterRole|ClusterRoleBinding|CustomResourceDefinition|PriorityClass|IngressClass|RuntimeClass)$/;

/** Adds the namespace `default` to a namespaced object without a namespace. */
function inNamespace(object: JsonObject, source: OperatorSource): JsonObject {
  const metadata = metadataOf(object);
  const kind = source.kinds.find((one) => one.kind === object["kind"]);
  const isCluster = kind?.scope === "Cluster" ||
    kind === undefined && CLUSTER_SCOPED.test(String(object["kind"]));
  if (isCluster || metadata["namespace"] !== undefined) return object;
  const named = isJsonObject(object["metadata"]) ? metadata : {};
  return { ...object, metadata: { ...named, namespace: "default" } };
}
