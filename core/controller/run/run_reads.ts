import { checkKind, type Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyToRead, type ObjectKey } from "../../api/object_key.ts";
import { typeText } from "../../api/options.ts";
import type { EventSource } from "../event_source.ts";
import type { Run } from "./run.ts";
import type { RunDeps } from "./run_deps.ts";

/** What a run reads: objects from the caches and the server, and secondaries. */
export class RunReads<P extends KubernetesObject> {
  readonly #run: Run<P>;
  readonly #deps: RunDeps<P>;

  constructor(run: Run<P>, deps: RunDeps<P>) {
    this.#run = run;
    this.#deps = deps;
  }

  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    ...names: readonly [name?: string, namespace?: string]
  ): Promise<T | undefined> {
    this.#run.throwIfAborted();
    const { metadata } = this.#run.primary;
    const key = checkedKey(kind, keyToRead(kind, names, metadata));
    return await this.#deps.sources.read(kind, key, this.#run.signal);
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace: string | undefined = this.#run.primary.metadata.namespace,
  ): Promise<readonly T[]> {
    this.#run.throwIfAborted();
    checkKind(kind, "ctx.list()");
    checkedKey(kind, { namespace, name: "" });
    const where = namespace === "*" ? undefined : namespace;
    return await this.#deps.sources.readList(kind, where, this.#run.signal);
  }

  secondary<T extends KubernetesObject>(kind: Kind<T>): Promise<T | undefined>;
  secondary<T>(source: EventSource<P, T>): Promise<T | undefined>;
  async secondary(which: Kind | EventSource<P>): Promise<unknown> {
    const found = await this.secondaries(which as Kind);
    if (found.length > 1) {
      throw new RangeError(
        `Cannot choose the secondary: there is more than one, so use ctx.secondaries: received ${found.length}`,
      );
    }
    return found[0];
  }

  secondaries<T extends KubernetesObject>(kind: Kind<T>): Promise<readonly T[]>;
  secondaries<T>(source: EventSource<P, T>): Promise<readonly T[]>;
  async secondaries(which: Kind | EventSource<P>): Promise<readonly unknown[]> {
    this.#run.throwIfAborted();
    const { primary } = this.#run;
    if (!isSource(which)) {
      checkKind(which, "ctx.secondaries()");
      return await this.#deps.sources.secondaries(which, primary);
    }
    return await this.#deps.sources.secondariesOf(which, primary);
  }
}

/** Checks the key of an object that a reconciler names, and returns it. */
export function checkedKey(kind: Kind, key: ObjectKey): ObjectKey {
  const { name, namespace } = Object(key) as Partial<ObjectKey>;
  const isKey = typeof name === "string" &&
    (namespace === undefined || typeof namespace === "string");
  if (isKey) return key;
  throw new TypeError(
    `Cannot find ${kind.kind} objects: name and namespace must be texts, as in metadata: received ${
      typeText(typeof name === "string" ? namespace : name ?? key)
    }`,
  );
}

function isSource<P extends KubernetesObject>(
  which: Kind | EventSource<P>,
): which is EventSource<P> {
  return typeof which === "object" && which !== null && "start" in which;
}
