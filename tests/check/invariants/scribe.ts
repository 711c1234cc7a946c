import type {
  CacheEvent,
  Client,
  Clock,
  HandlerRegistration,
  Kind,
  KubernetesObject,
} from "@coracle/operator/client";
import { keyOf, keyText } from "../../../core/api/object_key.ts";
import { Informer } from "../../../core/cache/informer/informer.ts";
import { NAMESPACES } from "./seed_plan.ts";

/** Writes in a row of one object. */
const WRITES = 3;

/** Program that writes the objects of its informer, each several times in a row. */
export class Scribe<T extends KubernetesObject> {
  readonly informer: Informer<T>;
  readonly #client: Client;
  readonly #kind: Kind<T>;
  readonly #fail: (invariant: string, detail: string) => void;
  readonly #registration: HandlerRegistration<T>;
  /** Objects and versions that it has written. */
  readonly #written: Set<string> = new Set();
  /** Objects that are being written. */
  readonly #busy: Set<string> = new Set();
  #writes = 0;

  constructor(client: Client, kind: Kind<T>, { clock, fail }: {
    readonly clock: Clock;
    readonly fail: (invariant: string, detail: string) => void;
  }) {
    this.#client = client;
    this.#kind = kind;
    this.#fail = fail;
    this.informer = new Informer(client, kind, {
      clock,
      namespaces: NAMESPACES,
    });
    this.#registration = this.informer.addHandler((event) =>
      this.#judge(event)
    );
    this.informer.start();
  }

  /** Writes all objects of the cache, concurrently. */
  write(): void {
    for (const object of this.informer.list()) {
      const key = keyText(keyOf(object));
      // An event during overlapping writes may cover the change of another client.
      if (this.#busy.has(key)) continue;
      this.#busy.add(key);
      void this.#writeOne(object).finally(() => this.#busy.delete(key));
    }
  }

  async #writeOne(object: T): Promise<void> {
    let latest = object;
    for (let count = 0; count < WRITES; count++) {
      const { metadata } = latest;
      const annotations = {
        ...metadata.annotations,
        scribe: String(this.#writes++),
      };
      const own = this.#registration.beginWrite(keyOf(latest));
      try {
        latest = await this.#client.replace(this.#kind, {
          ...latest,
          metadata: { ...metadata, annotations },
        });
      } catch {
        // Somebody else has changed the object, or the server refuses.
        return own.fail();
      }
      const { resourceVersion } = latest.metadata;
      this.#written.add(`${keyText(keyOf(latest))} ${resourceVersion}`);
      own.succeed(latest, { base: metadata.resourceVersion });
    }
  }

  /** The echo of an own write is no event, except where a list may hide others. */
  #judge({ key, type, header, initial, relist }: CacheEvent<T>): void {
    const version = `${key} ${header.resourceVersion}`;
    if (type === "deleted" || initial || relist) return;
    if (!this.#written.has(version)) return;
    this.#fail("own writes cause no event", `${version} was ${type}`);
  }
}
