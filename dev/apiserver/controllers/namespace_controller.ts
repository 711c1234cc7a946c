import {
  type Timer,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ApiContext } from "../api_context.ts";
import { rethrowMissing } from "../settle.ts";
import { NAMESPACES } from "../namespace_checks.ts";
import type { ResourceDefinition } from "../registry.ts";
import { StatusError } from "../status.ts";
import type { Change } from "../storage/history.ts";
import type { Collection } from "../storage/collection.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { createObject } from "../write/create.ts";
import {
  deleteStored,
  internalRequest,
  internalWrite,
  updateStored,
} from "./internal_request.ts";
import {
  type Condition,
  withCondition,
  withoutCondition,
} from "./conditions.ts";
import type { ControllerName } from "./controller_names.ts";
import { WorkQueue } from "./work_queue.ts";

const MANAGER = "kube-controller-manager";

/**
 * Delay in milliseconds between the deletion of a namespace and the deletion of
 * its objects; five seconds in kube-controller-manager, so that all API servers
 * have observed the deletion.
 */
const EMPTYING_DELAY_MS = 200;

/** Longest delay before a namespace is tried again, in milliseconds. */
const LONGEST_RETRY_MS = 60_000;

/** Name of the ConfigMap with the certificate of the authority. */
const ROOT_CERTIFICATE = "kube-root-ca.crt";

/**
 * Object that every namespace has; recreated after its deletion, and restored
 * after a change of its data.
 */
interface DefaultObject {
  readonly controller: ControllerName;
  readonly plural: string;
  readonly object: (namespace: string) => UntypedObject;
}

/**
 * Namespace controller: deletes the objects of deleted namespaces, and creates
 * in all others the service account `default` and the ConfigMap
 * `kube-root-ca.crt` with the certificate of the authority.
 */
export class NamespaceController {
  readonly #context: ApiContext;
  readonly #hasKubelet: boolean;
  readonly #empties: boolean;
  readonly #defaultObjects: readonly DefaultObject[];
  /** Timers of deleted namespaces whose objects are not deleted yet, by name. */
  readonly #emptying: Map<string, Timer> = new Map();
  /** Whether the controller writes the status of a namespace, which causes no work. */
  #isReporting = false;
  /** Default objects that need no change. */
  readonly #checked: WeakSet<StoredObject> = new WeakSet();
  readonly #queue: WorkQueue<string>;

  /**
   * Creates the controller; it observes the store from now on.
   *
   * @param context Shared state of the server.
   * @param options The certificate of the authority that clients trust, in PEM,
   * and which controllers run.
   */
  constructor(
    context: ApiContext,
    { authority, isEnabled, hasKubelet }: {
      readonly authority: () => string;
      readonly isEnabled: (name: ControllerName) => boolean;
      readonly hasKubelet: boolean;
    },
  ) {
    this.#context = context;
    this.#queue = new WorkQueue(
      context,
      "Cannot reconcile a namespace",
      (name) => this.#reconcile(name),
      LONGEST_RETRY_MS,
    );
    this.#hasKubelet = hasKubelet;
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
      this.#queue.add(name);
    }
  }

  stop(): void {
    this.#queue.stop();
    for (const timer of this.#emptying.values()) timer.cancel();
    this.#emptying.clear();
  }

  #observe({ type, object, previous }: Change, { resource }: Collection): void {
    if (resource.plural === NAMESPACES.plural && resource.group === "") {
      if (this.#isReporting) return;
      if (type === "DELETED") {
        this.#emptying.get(object.name)?.cancel();
        this.#emptying.delete(object.name);
        return;
      }
      if (object.terminating && !previous?.terminating) {
        this.#scheduleEmptying(object.name);
      } else this.#queue.add(object.name);
    } else if (
      object.namespace !== "" &&
      (type === "DELETED" ||
        (object.name === ROOT_CERTIFICATE && resource.plural === "configmaps"))
    ) {
      this.#queue.add(object.namespace);
    }
  }

  #scheduleEmptying(name: string): void {
    const timer = this.#context.clock.setTimer(() => {
      this.#emptying.delete(name);
      this.#queue.add(name);
    }, EMPTYING_DELAY_MS);
    this.#emptying.set(name, timer);
  }

  #reconcile(name: string): void {
    const stored = this.#context.store.collection(NAMESPACES).get(name);
    if (stored === undefined || this.#emptying.has(name)) return;
    if (!stored.terminating) this.#createDefaults(name);
    else if (this.#empties) this.#empty(name);
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
      if (stored) {
        this.#restore(stored, wanted);
        continue;
      }
      const key = { namespace, name };
      createObject(internalRequest(this.#context, definition, key), wanted, {
        options: internalWrite(MANAGER),
        apply: false,
      });
    }
  }

  /** Restores the data of a default object. */
  #restore(
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
    updateStored(this.#context, stored, {
      manager: MANAGER,
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

  /**
   * Deletes the objects of a namespace, pods first, and the namespace once it is
   * empty.
   */
  #empty(namespace: string): void {
    const { resources } = this.#context;
    const seen = new Set<Collection>();
    const left: StoredObject[] = [];
    const failures: StatusError[] = [];
    const definitions = [...resources.definitions()];
    const pods = definitions.filter(isPods);
    const others = definitions.filter((one) => !isPods(one));
    for (const part of [pods, others]) {
      for (const definition of part) {
        if (definition.scope !== "Namespaced") continue;
        const collection = this.#context.store.collectionOf(definition);
        if (seen.has(collection)) continue;
        seen.add(collection);
        const home = resources.home(definition);
        left.push(...this.#deleteAll(home, namespace, failures));
      }
      if (left.length > 0) break;
    }
    if (left.length === 0) this.#finish(namespace);
    else this.#report(namespace, left, failures);
    // The queue tries again.
    if (failures.length > 0) throw failures[0];
  }

  /** Reports in the status of a namespace which objects remain. */
  #report(
    name: string,
    left: readonly StoredObject[],
    failures: readonly StatusError[],
  ): void {
    const { store, clock } = this.#context;
    const stored = store.collection(NAMESPACES).get(name);
    if (stored === undefined) return;
    const object = stored.parse();
    const status = (object.status ?? {}) as { conditions?: Condition[] };
    const time = timestamp(clock.wallTime());
    let { conditions } = status;
    for (const [type, status, reason, message] of remaining(left, failures)) {
      const before = conditions?.find((one) => one.type === type);
      // The counts in the message change without another reason.
      if (before !== undefined && before.message !== message) {
        conditions = withoutCondition(conditions, type);
      }
      conditions = withCondition(conditions, {
        type,
        status,
        lastTransitionTime: before?.status === status
          ? before.lastTransitionTime
          : time,
        reason,
        message,
      });
    }
    if (jsonEquals(conditions, status.conditions)) return;
    object.status = { ...status, conditions };
    this.#isReporting = true;
    store.put(stored.definition, object);
    this.#isReporting = false;
  }

  #deleteAll(
    definition: ResourceDefinition,
    namespace: string,
    failures: StatusError[],
  ): readonly StoredObject[] {
    const collection = this.#context.store.collectionOf(definition);
    let failure: StatusError | undefined;
    for (const stored of collection.scan({ namespace })) {
      if (stored.terminating && definition.gracePeriod === undefined) continue;
      try {
        // Without a kubelet nothing would stop the pods.
        const options = this.#hasKubelet ? {} : { gracePeriodSeconds: 0 };
        deleteStored(this.#context, stored, options);
      } catch (error) {
        rethrowMissing(error);
        if (!(error instanceof StatusError)) throw error;
        failure ??= error;
      }
    }
    if (failure !== undefined) failures.push(failure);
    return collection.scan({ namespace });
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

function isPods({ group, plural }: ResourceDefinition): boolean {
  return group === "" && plural === "pods";
}

/** Conditions of a namespace in which objects remain: type, status, reason, message. */
function remaining(
  left: readonly StoredObject[],
  failures: readonly StatusError[],
): (readonly [string, string, string, string])[] {
  const kinds = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const count = (counts: Map<string, number>, name: string) =>
    counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const stored of left) {
    const { group, plural } = stored.definition;
    count(kinds, `${plural}.${group}`);
    for (const name of stored.parse().metadata.finalizers ?? []) {
      count(finalizers, name);
    }
  }
  const list = (counts: Map<string, number>, verb: string) =>
    [...counts].map(([name, number]) =>
      `${name} ${verb} ${number} resource instances`
    ).sort().join(", ");
  return [
    [
      "NamespaceDeletionDiscoveryFailure",
      "False",
      "ResourcesDiscovered",
      "All resources successfully discovered",
    ],
    [
      "NamespaceDeletionGroupVersionParsingFailure",
      "False",
      "ParsedGroupVersions",
      "All legacy kube types successfully parsed",
    ],
    failures.length > 0
      ? [
        "NamespaceDeletionContentFailure",
        "True",
        "ContentDeletionFailed",
        `Failed to delete all resource types, ${failures.length} remaining: ${
          failures.map(({ message }) => message).sort().join(", ")
        }`,
      ]
      : [
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
      ],
    [
      "NamespaceContentRemaining",
      "True",
      "SomeResourcesRemain",
      `Some resources are remaining: ${list(kinds, "has")}`,
    ],
    finalizers.size > 0
      ? [
        "NamespaceFinalizersRemaining",
        "True",
        "SomeFinalizersRemain",
        `Some content in the namespace has finalizers remaining: ${
          list(finalizers, "in")
        }`,
      ]
      : [
        "NamespaceFinalizersRemaining",
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
      ],
  ];
}
