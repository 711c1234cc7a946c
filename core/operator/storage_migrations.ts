import type { Client } from "../client/client.ts";
import { type Clock, loadModule, sleep } from "../clock.ts";
import { isDefinedKind } from "../crd/kind_definition.ts";
import type { Logger } from "../logger.ts";
import { pauseAfter } from "../pace.ts";
import type { ManagedController } from "./controller_start.ts";

/** What {@linkcode StorageMigrations} depend on. */
interface StorageMigrationsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the controllers that the operator has at the time of the call. */
  readonly controllers: () => Iterable<ManagedController>;
}

/** Objects written in a second, as by `coracle migrate`. */
const RATE = 50;
/** Pauses after failed migrations, in milliseconds. */
const PAUSE = { initial: 10_000, max: 600_000 } as const;

/**
 * Migrations of stored objects that controllers ask for: each once, by the replica
 * that leads, beside its other work. A failed one is logged and tried again.
 */
export class StorageMigrations {
  readonly #deps: StorageMigrationsDeps;
  /** Definitions whose migration is done or in progress. */
  readonly #begun: Set<string> = new Set();

  constructor(deps: StorageMigrationsDeps) {
    this.#deps = deps;
  }

  /** Begins the migrations that have not begun. */
  begin(client: Client, signal: AbortSignal): void {
    const { controllers, log } = this.#deps;
    for (const { kind, settings } of controllers()) {
      if (!settings.migrateStorage || !isDefinedKind(kind)) continue;
      const name = `${kind.plural}.${kind.group}`;
      if (this.#begun.has(name)) continue;
      this.#begun.add(name);
      this.#migrate(client, name, signal).catch((error: unknown) => {
        this.#begun.delete(name);
        if (signal.aborted) return;
        log.error("Cannot migrate stored objects", { definition: name, error });
      });
    }
  }

  async #migrate(
    client: Client,
    name: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log } = this.#deps;
    const { migrateStorage } = await loadModule(
      import("../conversion/migrate_storage.ts"),
    );
    for (let failures = 1;; failures++) {
      try {
        const done = await migrateStorage(client, name, {
          clock,
          signal,
          rate: RATE,
          say: (text) => log.debug(text, { definition: name }),
        });
        const { before, version, written } = done;
        if (before.every((one) => one === version)) return;
        log.info("Migrated stored objects", {
          definition: name,
          before,
          version,
          written,
        });
        return;
      } catch (error) {
        signal.throwIfAborted();
        log.warn("Cannot migrate stored objects yet, which is tried again", {
          definition: name,
          error,
        });
        await sleep(pauseAfter(failures, PAUSE), { clock, signal });
      }
    }
  }
}
