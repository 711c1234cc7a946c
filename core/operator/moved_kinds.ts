import { isResolved, kindText, type ResolvedKind } from "../api/kind.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";

/** What {@linkcode MovedKinds} depends on. */
interface MovedKindsDeps {
  readonly log: Logger;
  readonly controllers: () => Iterable<ManagedController>;
  readonly isStarted: () => boolean;
  /** Stops a controller and starts it again. */
  readonly startAgain: (controller: ManagedController) => Promise<void>;
}

/**
 * Kinds that the server serves under another plural or scope than before: their
 * controllers start again, since finalizer, paths and keys depend on it.
 */
export class MovedKinds {
  readonly #deps: MovedKindsDeps;
  /** Controllers that start again. */
  readonly #moving: Set<ManagedController> = new Set();

  constructor(deps: MovedKindsDeps) {
    this.#deps = deps;
  }

  /** Starts the controllers of a kind again that has moved. */
  follow(moved: ResolvedKind): void {
    const { log, controllers, isStarted, startAgain } = this.#deps;
    for (const controller of controllers()) {
      const isMoved = !controller.isRemote &&
        kindText(controller.kind) === kindText(moved) &&
        !isResolved(controller.kind) && !this.#moving.has(controller);
      if (!isMoved || !isStarted()) continue;
      const { plural, scope } = moved;
      const fields = { controller: controller.name, plural, scope };
      log.warn(
        "The server serves a kind under another plural or scope: its controller starts again",
        fields,
      );
      this.#moving.add(controller);
      startAgain(controller).catch((error: unknown) =>
        log.error("Cannot start a controller again", { ...fields, error })
      ).finally(() => this.#moving.delete(controller));
    }
  }
}
