/**
 * Caches that follow the API server: informers, their handlers and namespaces.
 *
 * {@linkcode Informer} is the public class; {@linkcode MultiNamespaceInformer}
 * reads several namespaces as one cache, and `NamespaceInformer` covers one kind,
 * one namespace or all, and one selection: `cache/watch` lists and watches,
 * `StoreWriter` writes into a store of `cache/store` and delivers every change to
 * the `Subscriptions`. `InformerPool` shares namespace informers.
 *
 * Guarantees: see {@linkcode Informer} and `CacheEvent`. Events and headers follow
 * the borrow rule of `cache/watch/reflector.ts`: they are valid during the call.
 *
 * Must not import controllers, operators or sources.
 *
 * @module
 */

import { checkKind, type Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { checkOptions, checkParts } from "../../api/options.ts";
import type { InformerClient } from "../watch/watch_requests.ts";
import {
  CLIENT_PARTS,
  INFORMER_RULES,
  type InformerOptions,
} from "./informer_options.ts";
import {
  checkNamespaces,
  MultiNamespaceInformer,
} from "./multi_namespace_informer.ts";
import { NamespaceInformer } from "./namespace_informer.ts";

/**
 * Informer: a copy of the objects of one kind that follows the API server and
 * delivers every change.
 *
 * It lists, watches, resumes and relists by itself, whatever happens to the
 * connection; `health()` reports its state. Several namespaces have one watch
 * each and are read as one cache.
 *
 * Guarantees
 * - Once synced, the cache shows the state of the server at some moment, and from
 *   then on moves forward only, unless the server itself lost its data.
 * - Every change is delivered, alone or merged with later ones; see
 *   {@linkcode CacheEvent}.
 * - No failure ends the informer: failures are counted, reported in health and
 *   retried later.
 *
 * @typeParam T The type of the objects.
 *
 * @example Follow the ConfigMaps of a namespace
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { Informer } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({ port: false });
 * const informer = new Informer(server.client, ConfigMap, {
 *   namespaces: ["default"],
 * });
 * await informer.start().synced;
 * const metadata = { namespace: "default", name: "web" };
 * await server.client.create(ConfigMap, { metadata, data: { color: "blue" } });
 * for await (const { type, object } of informer) {
 *   if (type === "added" && object.data?.["color"] === "blue") break;
 * }
 * if (!informer.has("default/web")) throw new Error("Unexpected cache");
 * await informer.stop();
 * await server.stop();
 * ```
 */
export class Informer<T extends KubernetesObject>
  extends MultiNamespaceInformer<T> {
  /**
   * Creates an informer; nothing is sent before `start()`.
   *
   * @param client Client of the cluster.
   * @param kind Kind of the objects.
   * @param options Selection of the objects, and how to connect.
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   * @throws {SyntaxError} If a selector or a path to prune is malformed.
   */
  constructor(
    client: InformerClient,
    kind: Kind<T>,
    options: InformerOptions = {},
  ) {
    checkParts(client, CLIENT_PARTS, "an informer, client");
    checkKind(kind, "an informer");
    checkOptions(options, INFORMER_RULES, "an informer");
    checkNamespaces(kind, options.namespaces);
    super({
      kind,
      indexPrefix: "",
      open(namespace) {
        const informer = new NamespaceInformer(
          client,
          kind,
          options,
          namespace,
        );
        return {
          informer,
          stop: () => informer.stop(),
          close: () => informer.close(),
        };
      },
    }, options.namespaces);
  }
}
