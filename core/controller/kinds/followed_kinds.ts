import { kindText, type ResolvedKind, sameKind } from "../../api/kind.ts";
import type { UntypedObject } from "../../api/object.ts";
import type { InformerLease } from "../../cache/informer/informer_pool.ts";
import type { InformerHealth } from "../../cache/informer/shared_informer.ts";
import type { CrdObject } from "../../crd/crd_object.ts";
import type { Controller, ControllerDeps } from "../controller.ts";
import { namespaceSet } from "../namespaces.ts";
import type { Reconciler } from "../reconciler.ts";
import type { ControllerOptions } from "../controller_options.ts";
import { discoveredKinds, kindOfDefinition } from "./kind_selector.ts";
import type { FollowedKind, KindsSettings } from "./kinds_options.ts";
import { OwnerIndex } from "./owner_index.ts";

/** Controllers of the operator; each followed kind has one. */
export interface KindControllers {
  /** Registers a controller, and starts it if the operator is started. */
  register(
    kind: ResolvedKind<UntypedObject>,
    reconciler: Reconciler<UntypedObject>,
    options: ControllerOptions<UntypedObject>,
  ): KindController;
  /** Unregisters a controller, and waits until it has stopped. */
  unregister(name: string): Promise<void>;
}

/** Controller of a kind; its runs may outlive its registration. */
type KindController = Pick<Controller<UntypedObject>, "name" | "whenIdle">;

/** Paths of a definition that nothing here reads, and that make up most of it. */
export const CRD_PRUNE: readonly string[] = [
  "metadata.managedFields",
  'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]',
  "spec.conversion",
  "spec.versions[*].schema",
  "spec.versions[*].additionalPrinterColumns",
];

/** Kind with its informer. */
interface Followed {
  readonly kind: ResolvedKind<UntypedObject>;
  readonly lease: InformerLease<UntypedObject>;
  /** Its controller; undefined without one. */
  controller: KindController | undefined;
}

/**
 * Kinds that are followed: an informer each, which begins and ends with the kind, one
 * index of owners over all of them, and with a reconciler a controller each.
 */
export class FollowedKinds {
  readonly #settings: KindsSettings;
  readonly #controllers: KindControllers;
  /** Kinds by the names of their definitions, `plural.group`. */
  readonly #followed: Map<string, Followed> = new Map();
  /** Ends of informers and controllers that are under way. */
  readonly #ending: Set<Promise<void>> = new Set();
  /** Ends of the runs of controllers that have left, by definition. */
  readonly #runs: Map<string, Promise<void>> = new Map();
  #owners: OwnerIndex = new OwnerIndex();
  #deps: ControllerDeps | undefined;
  #isComplete = false;

  constructor(settings: KindsSettings, controllers: KindControllers) {
    this.#settings = settings;
    this.#controllers = controllers;
  }

  /** Whether each kind of the start was read, or could not be. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Kinds with their states. */
  get all(): readonly FollowedKind[] {
    return Array.from(this.#followed.values(), ({ kind, lease }) => {
      const { synced, watches } = lease.informer.health();
      const broken = watches.find(({ consecutiveFailures }) =>
        consecutiveFailures > 0
      );
      return { kind, synced, error: broken?.lastError?.message };
    });
  }

  /** Health of the informers of the kinds that no controller reports. */
  get informers(): readonly InformerHealth[] {
    return [...this.#followed.values()].flatMap(({ controller, lease }) =>
      controller === undefined ? [lease.informer.health()] : []
    );
  }

  /** Objects that an owner has. */
  ownedBy(uid: string): readonly UntypedObject[] {
    return this.#owners.ownedBy(uid);
  }

  /** Provides what kinds are followed with; called before each start. */
  open(deps: ControllerDeps): void {
    this.#deps = deps;
  }

  /**
   * Follows the kinds that exist at the start.
   *
   * @param definitions Definitions of kinds, all of them without a label selector.
   * @returns Fulfilled when each was read, or could not be.
   */
  async begin(definitions: readonly CrdObject[]): Promise<void> {
    const deps = this.#deps;
    if (deps === undefined) return;
    const { selector } = this.#settings;
    for (const crd of definitions) this.decide(crd, false);
    if (selector.labelSelector === undefined) {
      const names = new Set(definitions.map(({ metadata }) => metadata.name));
      const resources = await deps.client.resources();
      if (deps !== this.#deps) return;
      for (
        const kind of discoveredKinds(
          resources,
          selector,
          (name) => names.has(name),
        )
      ) this.#follow(nameOf(kind), kind);
    }
    await Promise.all(
      Array.from(
        this.#followed.values(),
        ({ lease }) => lease.informer.attempted,
      ),
    );
    if (deps === this.#deps) this.#isComplete = true;
  }

  /** Follows a kind, or no longer, as its definition says. */
  decide(crd: CrdObject, isDeleted: boolean): void {
    const { name } = crd.metadata;
    const version = this.#followed.get(name)?.kind.version;
    const kind = isDeleted
      ? undefined
      : kindOfDefinition(crd, this.#settings.selector, version);
    if (kind === undefined) this.#leave(name);
    else this.#follow(name, kind);
  }

  /** Ends everything; nothing is delivered any more. */
  async close(): Promise<void> {
    this.#deps = undefined;
    this.#isComplete = false;
    const followed = [...this.#followed];
    this.#followed.clear();
    this.#owners = new OwnerIndex();
    for (const [name, one] of followed) this.#end(name, one);
    await Promise.all(this.#ending);
  }

  #follow(name: string, kind: ResolvedKind<UntypedObject>): void {
    const known = this.#followed.get(name);
    if (
      known && sameKind(known.kind, kind) && known.kind.scope === kind.scope
    ) {
      return;
    }
    if (known !== undefined) this.#leave(name);
    const deps = this.#deps;
    if (deps === undefined) return;
    const { options, handler, name: watch } = this.#settings;
    const { labelSelector, fieldSelector, cache } = options;
    const namespaces = namespaceSet(
      options.namespaces ?? deps.namespaces,
      deps.currentNamespace,
      kind,
    );
    const lease = deps.informers.acquire<UntypedObject>(kind, {
      labelSelector,
      fieldSelector,
      ...cache,
      namespaces: namespaces === "all" ? undefined : namespaces,
    });
    const { informer } = lease;
    const followed: Followed = { kind, lease, controller: undefined };
    this.#followed.set(name, followed);
    const owners = this.#owners;
    informer.addHandler((event) => {
      owners.changed(event, informer);
      // The promise of an async handler, whose rejection is logged.
      return handler?.(event, kind);
    }, { name: watch });
    deps.log.info("Follows a kind", { watch, kind: kindText(kind) });
    if (this.#settings.reconciler === undefined) return;
    // A kind that may not be read has no controller, which would never be ready.
    Promise.all([informer.synced, this.#runs.get(name)])
      .then(() => this.#register(name, followed), () => {});
  }

  #register(name: string, followed: Followed): void {
    if (this.#followed.get(name) !== followed) return;
    const { name: watch, options, reconciler } = this.#settings;
    const controller = `${watch}-${name.replace(/\.$/, "")}`;
    const { kind } = followed;
    try {
      followed.controller = this.#controllers.register(
        kind,
        reconciler as Reconciler<UntypedObject>,
        { fieldManager: watch, ...options, name: controller },
      );
    } catch (error) {
      this.#deps?.log.error("Cannot reconcile a kind", {
        kind: kindText(kind),
        error,
      });
    }
  }

  #leave(name: string): void {
    const followed = this.#followed.get(name);
    if (followed === undefined) return;
    const { lease: { informer }, kind } = followed;
    this.#followed.delete(name);
    informer.deliverAllDeleted();
    this.#owners.forget(informer);
    this.#end(name, followed);
    this.#deps?.log.info("No longer follows a kind", {
      watch: this.#settings.name,
      kind: kindText(kind),
    });
  }

  #end(name: string, { controller, lease }: Followed): void {
    const ended = Promise.all([
      lease.release(),
      controller && this.#controllers.unregister(controller.name),
    ]).then(() => void this.#ending.delete(ended));
    this.#ending.add(ended);
    if (controller === undefined) return;
    // In another version its objects are the same: none runs twice.
    const runs = ended.then(() => controller.whenIdle()).then(() => {
      if (this.#runs.get(name) === runs) this.#runs.delete(name);
    });
    this.#runs.set(name, runs);
  }
}

/** Name of a definition of a kind. */
function nameOf({ plural, group }: ResolvedKind<UntypedObject>): string {
  return `${plural}.${group}`;
}
