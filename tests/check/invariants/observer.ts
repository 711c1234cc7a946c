import type {
  CacheEvent,
  Client,
  Clock,
  Kind,
  KubernetesObject,
} from "@coracle/operator/client";
import { Informer } from "../../../core/cache/informer/informer.ts";
import { sleep } from "../../../core/clock.ts";
import type { Random } from "../../soak/random.ts";

const INDEX = "by name";
/** Longest time that the loop takes for an event, in milliseconds. */
const LONGEST_MS = 5_000;

/** Dependencies of an {@linkcode Observer}. */
export interface ObserverDeps {
  /** Name for what does not hold. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly fail: (invariant: string, detail: string) => void;
}

/** Informer that a program reads beside its controllers, with a slow event loop. */
export class Observer<T extends KubernetesObject = KubernetesObject> {
  readonly informer: Informer<T>;
  /** Whether the loop takes no time for an event. */
  calm = false;
  readonly #deps: ObserverDeps;
  /** Whether other namespaces were watched. */
  #isChanged = false;
  /** Version of each object as the loop was shown it last. */
  readonly #shown: Map<string, string> = new Map();

  constructor(client: Client, kind: Kind<T>, deps: ObserverDeps) {
    this.#deps = deps;
    this.informer = new Informer(client, kind, { clock: deps.clock });
    this.#addIndex();
    this.informer.start();
    this.#loop().catch((error: unknown) =>
      deps.fail("the last state is shown", `${deps.name}: ${error}`)
    );
  }

  #addIndex(): void {
    this.informer.addIndex(INDEX, {
      byFunction: ({ metadata }) => [metadata.name],
    });
  }

  /** Removes the index and adds it again, while other namespaces are watched. */
  async change(namespaces: readonly string[] | undefined): Promise<void> {
    this.#isChanged = true;
    this.informer.removeIndex(INDEX);
    const changed = this.informer.changeNamespaces(namespaces);
    this.#addIndex();
    // Objects of removed namespaces leave without events.
    for (const key of this.#shown.keys()) {
      const [namespace = ""] = key.split("/");
      if (namespaces?.includes(namespace) === false) this.#shown.delete(key);
    }
    await changed;
  }

  async #loop(): Promise<void> {
    const { clock, random } = this.#deps;
    for await (const event of this.informer) {
      this.#judge(event);
      if (!this.calm && random.next() < 0.5) {
        await sleep(random.below(LONGEST_MS), { clock });
      }
    }
  }

  /** An event follows the one before, also if the loop has missed some. */
  #judge({ type, key, header, previousHeader }: CacheEvent<T>): void {
    const { name, fail } = this.#deps;
    const shown = this.#shown.get(key);
    const previous = previousHeader?.resourceVersion;
    if (type === "updated" && shown !== undefined && previous !== shown) {
      fail(
        "events follow each other",
        `${name}: ${key} was at ${shown}, and is ${type} from ${previous} to ${header.resourceVersion}`,
      );
    }
    if (type === "deleted") this.#shown.delete(key);
    else this.#shown.set(key, header.resourceVersion);
  }

  /** Compares cache, index and loop with the keys and versions on the server. */
  judge(stored: ReadonlyMap<string, string>): void {
    const { name, fail } = this.#deps;
    const objects = this.informer.list();
    const indexed = new Set(objects.map(({ metadata }) => metadata.name));
    const views: Record<string, Iterable<readonly [string, string]>> = {
      cache: versionsOf(objects),
      index: versionsOf(
        [...indexed].flatMap((value) => this.informer.byIndex(INDEX, value)),
      ),
      // What leaves with its namespace leaves without an event.
      ...this.#isChanged ? {} : { loop: this.#shown },
    };
    const text = (entries: Iterable<readonly [string, string]>) =>
      [...entries].map(([key, version]) => `${key} ${version}`).sort().join();
    for (const [view, entries] of Object.entries(views)) {
      if (text(entries) === text(stored)) continue;
      fail(
        "caches equal the server",
        `${view} of ${name}: ${text(entries)}, the server has ${text(stored)}`,
      );
    }
  }
}

function versionsOf(
  objects: readonly KubernetesObject[],
): (readonly [string, string])[] {
  return objects.map(({ metadata }) => [
    `${metadata.namespace}/${metadata.name}`,
    metadata.resourceVersion ?? "",
  ]);
}
