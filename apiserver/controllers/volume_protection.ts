import type { UntypedObject } from "../../core/api/object.ts";
import type { ApiContext } from "../api_context.ts";
import { rethrowMissing } from "../settle.ts";
import type { GroupResource } from "../registry.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change } from "../storage/history.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { updateObject } from "../write/update.ts";
import { internalRequest, internalWrite } from "./internal_request.ts";
import type { ControllerName } from "./controller_names.ts";
import { WorkQueue } from "./work_queue.ts";

const MANAGER = "kube-controller-manager";
const PODS: GroupResource = { group: "", plural: "pods" };
const CLAIMS: GroupResource = { group: "", plural: "persistentvolumeclaims" };

/** Finalizers that protect volumes and claims while they are in use, by resource. */
const PROTECTIONS: ReadonlyMap<string, string> = new Map([
  ["persistentvolumeclaims", "kubernetes.io/pvc-protection"],
  ["persistentvolumes", "kubernetes.io/pv-protection"],
]);

/**
 * Protection of volumes in use: removes the finalizer of deleted
 * PersistentVolumes that no claim is bound to, and of deleted
 * PersistentVolumeClaims that no pod uses.
 */
export class VolumeProtection {
  readonly #context: ApiContext;
  readonly #isEnabled: (name: ControllerName) => boolean;
  readonly #queue: WorkQueue<StoredObject> = new WorkQueue((stored) =>
    this.#reconcile(stored)
  );

  /**
   * Creates the controller; it observes the store from now on.
   *
   * @param context Shared state of the server.
   * @param isEnabled Checks whether a controller runs.
   */
  constructor(
    context: ApiContext,
    isEnabled: (name: ControllerName) => boolean,
  ) {
    this.#context = context;
    this.#isEnabled = isEnabled;
    context.store.listen((change, collection) =>
      this.#observe(change, collection)
    );
  }

  /** Resumes the protection of the objects of a loaded store. */
  begin(): void {
    this.#context.store.replay((change, collection) =>
      this.#observe(change, collection)
    );
  }

  stop(): void {
    this.#queue.stop();
  }

  #observe({ type, object }: Change, { resource }: Collection): void {
    if (resource.group !== "") return;
    if (PROTECTIONS.has(resource.plural)) {
      if (type !== "DELETED" && object.terminating) this.#add(object);
      return;
    }
    if (resource.plural !== PODS.plural) return;
    const { namespace } = object;
    for (
      const claim of this.#context.store.collection(CLAIMS).scan({ namespace })
    ) {
      if (claim.terminating) this.#add(claim);
    }
  }

  #add(stored: StoredObject): void {
    const controller = stored.definition.plural === CLAIMS.plural
      ? "persistentvolumeclaim-protection-controller"
      : "persistentvolume-protection-controller";
    if (!this.#isEnabled(controller)) return;
    this.#queue.add(`${stored.definition.plural}/${stored.key}`, stored);
  }

  #reconcile(seen: StoredObject): void {
    const { store, logger } = this.#context;
    const stored = store.collectionOf(seen.definition).get(seen.key);
    if (stored === undefined || !stored.terminating) return;
    try {
      if (!this.#isUsed(stored)) this.#release(stored);
    } catch (error) {
      rethrowMissing(error);
      const { plural } = stored.definition;
      logger.warn("Cannot remove the finalizer of a volume", {
        resource: plural,
        object: stored.key,
        error,
      });
    }
  }

  #isUsed(stored: StoredObject): boolean {
    if (stored.definition.plural !== CLAIMS.plural) {
      const { status } = stored.parse() as { status?: { phase?: string } };
      return status?.phase === "Bound";
    }
    const { namespace, name } = stored;
    return this.#context.store.collection(PODS).scan({ namespace })
      .some((pod) => mounts(pod.parse(), name));
  }

  #release(stored: StoredObject): void {
    const { definition, uid } = stored;
    const finalizer = PROTECTIONS.get(definition.plural);
    updateObject(internalRequest(this.#context, definition, stored), {
      options: internalWrite(MANAGER),
      uid,
      next: (live) => {
        const { metadata } = live;
        metadata.finalizers = metadata.finalizers?.filter((other) =>
          other !== finalizer
        );
        return live;
      },
    });
  }
}

/** Whether the pod uses the claim and has not terminated. */
function mounts(pod: UntypedObject, claim: string): boolean {
  const { spec, status } = pod as unknown as {
    spec?: {
      volumes?: { persistentVolumeClaim?: { claimName?: string } }[];
    };
    status?: { phase?: string };
  };
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return false;
  return spec?.volumes?.some(({ persistentVolumeClaim }) =>
    persistentVolumeClaim?.claimName === claim
  ) ?? false;
}
