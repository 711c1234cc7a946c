import { kindText } from "../../api/kind.ts";
import type { UntypedObject } from "../../api/object.ts";
import { CRD_KIND, type CrdObject } from "../../crd/crd_object.ts";
import { Controller, type ControllerDeps } from "../controller.ts";
import type { ControllerHealth } from "../controller_health.ts";
import {
  CRD_PRUNE,
  FollowedKinds,
  type KindControllers,
} from "./followed_kinds.ts";
import type { WatchedSelection } from "./kind_selector.ts";
import type {
  FollowedKind,
  KindsHandle,
  KindsSettings,
} from "./kinds_options.ts";

/**
 * Controller of many kinds: its primaries are the CustomResourceDefinitions, and a run
 * of one begins or ends to follow its kind. Built-in kinds are found by discovery at
 * the start.
 */
export class KindsController extends Controller<CrdObject>
  implements KindsHandle {
  readonly #kinds: FollowedKinds;
  readonly #given: KindsSettings;

  constructor(given: KindsSettings, controllers: KindControllers) {
    const kinds = new FollowedKinds(given, controllers);
    const { selector: { labelSelector }, name } = given;
    super(
      CRD_KIND,
      { reconcile: (crd, { deleted }) => kinds.decide(crd, deleted) },
      {
        name,
        labelSelector,
        namespaces: "all",
        allEvents: true,
        // The status says whether a kind is served.
        generationAware: false,
        maxInterval: false,
        pauseAnnotation: false,
        cache: { prune: CRD_PRUNE },
      },
    );
    this.#kinds = kinds;
    this.#given = given;
  }

  /** Caches are filled on every replica; the controllers of the kinds wait. */
  override get leaderOnly(): boolean {
    return false;
  }

  /** Selector of the kinds, and whether a reconciler writes their objects. */
  override get watchedSelection(): WatchedSelection {
    const { selector, reconciler, options: { namespaces } } = this.#given;
    return { selector, isReconciled: reconciler !== undefined, namespaces };
  }

  get followed(): readonly FollowedKind[] {
    return this.#kinds.all;
  }

  ownedBy(
    owner: string | {
      readonly metadata: { readonly uid?: string | undefined };
    },
  ): readonly UntypedObject[] {
    const uid = typeof owner === "string" ? owner : owner.metadata.uid;
    return uid === undefined ? [] : this.#kinds.ownedBy(uid);
  }

  override async start(
    deps: ControllerDeps,
    options: { readonly partly?: boolean | undefined } = {},
  ): Promise<void> {
    this.#kinds.open(deps);
    await super.start(deps, options);
    await this.#kinds.begin(this.primaries.list());
  }

  override async cancelStart(): Promise<void> {
    await super.cancelStart();
    await this.#kinds.close();
  }

  override health(): ControllerHealth {
    const { informers, healthy, ready, ...health } = super.health();
    const followed = this.#kinds.informers;
    const kinds = this.#kinds.all;
    return {
      ...health,
      kinds: {
        followed: kinds.length,
        unread: kinds.flatMap(({ kind, synced, error }) =>
          synced || error === undefined ? [] : [kindText(kind)]
        ),
      },
      ready: ready && this.#kinds.isComplete,
      // A kind that could never be read is named, and no reason for an alert.
      healthy: healthy &&
        followed.every(({ healthy, synced }) => healthy || !synced),
      informers: [...informers, ...followed],
    };
  }
}
