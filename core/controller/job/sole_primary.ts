import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import type { NamespaceSet } from "../event_source.ts";
import {
  NO_OWN_WRITE,
  type Primaries,
  type PrimaryHandler,
  type PrimaryStore,
} from "../watch/primary_source.ts";
import type { TriggerHandler } from "../watch/source_group.ts";

/**
 * Primaries of a job: one object, which exists as long as the job runs, and is in no
 * cluster.
 */
export class SolePrimary<P extends KubernetesObject> implements Primaries<P> {
  readonly cache: PrimaryStore<P>;
  #handler: TriggerHandler | undefined;
  /** Namespaces of the watches; undefined for all. */
  #namespaces: readonly string[] | undefined = [];
  #hasStarted = false;

  /** @param runsAtStart Whether its start is an event. */
  constructor(primary: P, { runsAtStart }: { readonly runsAtStart: boolean }) {
    const { name } = primary.metadata;
    const has = (key: ObjectKey | string) =>
      name === (typeof key === "string" ? key : keyText(key));
    const get = (key: ObjectKey | string) => has(key) ? primary : undefined;
    const namespaces = () => this.#namespaces;
    this.cache = {
      size: 0,
      get namespaces() {
        return namespaces();
      },
      has,
      get,
      read: (key) => Promise.resolve(get(key)),
      keys: () => [name],
      list: () => [primary],
      readList: () => Promise.resolve([primary]),
      byIndex: () => [],
      placeOf: (key) => has(key) ? 0 : -1,
      keyAt: (place) => place === 0 ? name : undefined,
      getAt: (place) => place === 0 ? primary : undefined,
      open: () => Promise.resolve(),
      attach: (names) => {
        const before = this.#namespaces;
        this.#namespaces = before && names && [...before, ...names];
        if (runsAtStart && !this.#hasStarted) {
          this.#handler?.onTrigger(name, "", { initial: true });
        }
        this.#hasStarted = true;
        return Promise.resolve();
      },
      keep: (names) => {
        this.#namespaces =
          this.#namespaces?.filter((one) => names?.includes(one)) ?? names;
        return Promise.resolve();
      },
    };
  }

  handle(handler: PrimaryHandler<P> & TriggerHandler): void {
    this.#handler = handler;
  }

  health(): readonly never[] {
    return [];
  }

  namespacesOf(namespaces: NamespaceSet): readonly string[] | undefined {
    return namespaces === "all" ? undefined : namespaces;
  }

  beginWrite(): typeof NO_OWN_WRITE {
    return NO_OWN_WRITE;
  }

  release(): Promise<void> {
    return Promise.resolve();
  }
}
