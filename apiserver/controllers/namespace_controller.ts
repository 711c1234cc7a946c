import type { UntypedObject } from "../../core/api/object.ts";
import type { Timer } from "../../core/clock.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import type { ApiContext } from "../api_context.ts";
import { rethrowMissing } from "../settle.ts";
import { NAMESPACES } from "../namespace_checks.ts";
import type { ResourceDefinition } from "../registry.ts";
import { StatusError } from "../status.ts";
import type { Change } from "../storage/history.ts";
import type { Collection } from "../storage/collection.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { updateObject } from "../write/update.ts";
import { createObject } from "../write/create.ts";
import { deleteObject } from "../write/delete.ts";
import {
  internalDelete,
  internalRequest,
  internalWrite,
} from "./internal_request.ts";
import type { ControllerName } from "./controller_names.ts";
import { WorkQueue } from "./work_queue.ts";

const MANAGER = "kube-controller-manager";

/**
 * Delay in milliseconds between the deletion of a namespace and the deletion of
 * its objects; five seconds in kube-controller-manager, so that all API servers
 * have observed the deletion.
 */
const EMPTYING_DELAY_MS = 200;

/** Name of the ConfigMap with the certificate of the authority. */
const ROOT_CERTIFICATE = "kube-root-ca.crt";

/**
 * Object that every namespace has; it is created again after its deletion, and
 * its data is restored after a change.
 */
interface DefaultObject {
  readonly controller: ControllerName;
  readonly plural: string;
  readonly object: (namespace: string) => UntypedObject;
}

/**
 * Namespace controller: deletes the objects of deleted namespaces, and creates
 * in the others the service account `default` and the ConfigMap
 * `kube-root-ca.crt` with the certificate of the authority.
 */
export class NamespaceController {
  readonly #context: ApiContext;
  readonly #empties: boolean;
  readonly #defaultObjects: readonly DefaultObject[];
  /** Timers of deleted namespaces whose objects are not deleted yet, by name. */
  readonly #emptying: Map<string, Timer> = new Map();
  /** Default objects that need no change. */
  readonly #checked: WeakSet<StoredObject> = new WeakSet();
  readonly #queue: WorkQueue<string> = new WorkQueue((name) =>
    this.#reconcile(name)
  );

  /**
   * Creates the controller; it observes the store from now on.
   *
   * @param context Shared state of the server.
   * @param options The certificate of the authority that clients trust, in PEM,
   * and which controllers run.
   */
  constructor(
    context: ApiContext,
    { authority, isEnabled }: {
      readonly authority: () => string;
      readonly isEnabled: (name: ControllerName) => boolean;
    },
  ) {
    this.#context = context;
    this.#empties = isEnabled("namespace-controller");
    const defaults: readonly DefaultObject[] = [
      {
        controller: "serviceaccount-controller",
        plural: "serviceaccounts",
        object: (namespace) => ({
          apiVersion: "v1",
          kind: "ServiceAccount",
          metadata: { name: "default", namespace },
        }),
      },
      {
        controller: "root-ca-certificate-publisher-controller",
        plural: "configmaps",
        object: (namespace) => ({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            name: ROOT_CERTIFICATE,
            namespace,
            annotations: {
              "kubernetes.io/description":
                "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
            },
          },
          data: { "ca.crt": authority() },
        }),
      },
    ];
    this.#defaultObjects = defaults.filter(({ controller }) =>
      isEnabled(controller)
    );
    context.store.listen((change, collection) =>
      this.#observe(change, collection)
    );
  }

  /** Enqueues all namespaces. */
  begin(): void {
    for (
      const { name } of this.#context.store.collection(NAMESPACES).values()
    ) {
      this.#queue.add(name, name);
    }
  }

  stop(): void {
    this.#queue.stop();
    for (const timer of this.#emptying.values()) timer.cancel();
    this.#emptying.clear();
  }

  #observe(
    { type, object, previous }: Change,
    { resource }: Collection,
  ): void {
    if (resource.plural === NAMESPACES.plural && resource.group === "") {
      if (type === "DELETED") return;
      if (object.terminating && !previous?.terminating) {
        this.#scheduleEmptying(object.name);
      } else this.#queue.add(object.name, object.name);
    } else if (
      object.namespace !== "" &&
      (type === "DELETED" ||
        (object.name === ROOT_CERTIFICATE && resource.plural === "configmaps"))
    ) {
      this.#queue.add(object.namespace, object.namespace);
    }
  }

  #scheduleEmptying(name: string): void {
    const timer = this.#context.clock.setTimer(() => {
      this.#emptying.delete(name);
      this.#queue.add(name, name);
    }, EMPTYING_DELAY_MS);
    this.#emptying.set(name, timer);
  }

  #reconcile(name: string): void {
    const stored = this.#context.store.collection(NAMESPACES).get(name);
    if (stored === undefined || this.#emptying.has(name)) return;
    try {
      if (stored.terminating) {
        if (this.#empties) this.#empty(name);
      } else this.#createDefaults(name);
    } catch (error) {
      rethrowMissing(error);
      this.#context.logger.warn("Cannot reconcile a namespace", {
        namespace: name,
        error,
      });
    }
  }

  #createDefaults(namespace: string): void {
    const { store, resources } = this.#context;
    for (const { plural, object } of this.#defaultObjects) {
      const definition = resources.find("", plural);
      if (definition === undefined) continue;
      const wanted = object(namespace);
      const { name } = wanted.metadata;
      const stored = store.collectionOf(definition).get(`${namespace}/${name}`);
      if (stored && this.#checked.has(stored)) continue;
      const request = internalRequest(this.#context, definition, {
        namespace,
        name,
      });
      const options = internalWrite(MANAGER);
      if (stored) this.#restore(request, stored, wanted);
      else createObject(request, wanted, { options, apply: false });
    }
  }

  /** Restores the data of a default object. */
  #restore(
    request: ResourceRequest,
    stored: StoredObject,
    { data, metadata: { annotations = {} } }: UntypedObject,
  ): void {
    const { data: found, metadata } = stored.parse();
    const described = Object.keys(annotations).every((key) =>
      metadata.annotations?.[key]
    );
    if (data === undefined || (described && jsonEquals(data, found))) {
      this.#checked.add(stored);
      return;
    }
    updateObject(request, {
      options: internalWrite(MANAGER),
      conditional: false,
      mayCreate: false,
      next: (live) => ({
        ...live,
        metadata: {
          ...live.metadata,
          annotations: { ...live.metadata.annotations, ...annotations },
        },
        data,
      }),
    });
  }

  /** Deletes the objects of a namespace, and the namespace once it is empty. */
  #empty(namespace: string): void {
    const { resources } = this.#context;
    const seen = new Set<Collection>();
    let left = 0;
    for (const definition of resources.definitions()) {
      if (definition.scope !== "Namespaced") continue;
      const collection = this.#context.store.collectionOf(definition);
      if (seen.has(collection)) continue;
      seen.add(collection);
      left += this.#deleteAll(resources.home(definition), namespace);
    }
    if (left === 0) this.#finish(namespace);
  }

  #deleteAll(definition: ResourceDefinition, namespace: string): number {
    const collection = this.#context.store.collectionOf(definition);
    for (const stored of collection.scan({ namespace })) {
      if (stored.terminating && definition.gracePeriod === undefined) continue;
      const request = internalRequest(this.#context, definition, stored);
      try {
        // No kubelet runs here that would have to stop pods.
        deleteObject(
          request,
          stored,
          internalDelete({ gracePeriodSeconds: 0 }),
        );
      } catch (error) {
        rethrowMissing(error);
        if (!(error instanceof StatusError)) throw error;
        this.#context.logger.warn("Cannot delete an object in a namespace", {
          resource: definition.plural,
          object: stored.key,
          error,
        });
      }
    }
    return collection.scan({ namespace }).length;
  }

  #finish(name: string): void {
    const { store, resources } = this.#context;
    const stored = store.collection(NAMESPACES).get(name);
    const definition = resources.find("", NAMESPACES.plural);
    if (stored === undefined || definition === undefined) return;
    const object = stored.parse();
    const { finalizers = [] } = object.metadata;
    const spec = object.spec as { finalizers?: string[] } | undefined;
    const others = (spec?.finalizers ?? []).filter((finalizer) =>
      finalizer !== "kubernetes"
    );
    if (others.length === 0 && finalizers.length === 0) store.delete(stored);
    else if (others.length !== spec?.finalizers?.length) {
      object.spec = { ...spec, finalizers: others };
      store.put(definition, object);
    }
  }
}
